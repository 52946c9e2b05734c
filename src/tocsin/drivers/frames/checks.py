"""Checks: performance events held to what is asked of every event, at the cost of what differs.

Name and host of an event repeat, and its parts are made to fit; so the whole check is made once for
each name and host, and then only of what is different in the next one.
"""

from __future__ import annotations

from tocsin.event.event import Event
from tocsin.wire.cloudevents.attributes import check_event, check_time, check_value, too_long
from tocsin.wire.cloudevents.limits import Limits

KNOWN_MAX = 10_000  # names and hosts; then they are forgotten, and checked again


class Checks:
    """For events that `to_event` made."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: set[tuple[str, str, str, str | None]] = set()
        # What no event may hold by default was left out when the attributes were made.
        self._attributes_fit = limits.attribute_text_max >= Limits().attribute_text_max

    def check(self, event: Event) -> None:
        """Raises what is wrong with it."""
        key = event.type, event.source, event.topic, event.subject
        if key not in self._known or not event.id or not self._attributes_fit:
            check_event(event, self._limits)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known.add(key)
            return
        if event.data is not None and len(event.data) > self._limits.event_bytes_max:
            raise too_long(len(event.data), self._limits)
        check_value("id", event.id, self._limits)
        if event.time is not None:
            check_time(event.time)
