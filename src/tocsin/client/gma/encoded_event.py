"""EncodedEvent: an event ready to be sent, written once for however many want it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tocsin.client.gma.elements import Values, event_of
from tocsin.errors import BadEvent, BadMessage
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import Seen, passes, seen
from tocsin.event.filter_text import parse_filter
from tocsin.event.xml_form import FORBIDDEN
from tocsin.wire.gma.messages import PerformanceEvent
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.normal import to_event
from tocsin.wire.gma.write import event_element

EVENT_BYTES_MAX = 1 << 20
EVENTS_MAX = 1_000  # of one call
DETAIL_CHARS_MAX = 1_000

One = Values | PerformanceEvent
Result = One | Sequence[One]


class Failed(NamedTuple):
    """What consumers are sent where no event could be made."""

    error: str
    detail: str


class EncodedEvent:
    """An event with its bytes; how filters see it is worked out when the first one asks."""

    __slots__ = ("_seen", "content", "event")

    def __init__(self, event: PerformanceEvent) -> None:
        self.event = event
        self.content = event_element(event).encode()
        self._seen: Seen | None = None

    def passes(self, wanted: Filter | None) -> bool:
        """True if the event passes the filter; without one, all do."""
        return wanted is None or passes(wanted, self._opened())

    def sampled_by(self, parameters: Collection[str]) -> Event:
        """The event as a rate sees it: what differs in a parameter is of another source."""
        event = self._opened().event
        values = {name: event.attributes[name] for name in parameters if name in event.attributes}
        return replace(event, source=f"{event.source} {values!r}") if values else event

    def _opened(self) -> Seen:
        if self._seen is None:
            self._seen = seen(to_event(self.event, self.content, event_id="0", sender="unknown"))
            self._seen.stopwatch = time.monotonic_ns
        return self._seen


def read_filter(text: str | None) -> Filter | None:
    """The filter that a text says, if it says one; BadFilter if it cannot be read."""
    return parse_filter(text) if text is not None and text.strip() else None


def encode_events(name: EventName, result: Result, *, host: str, now: str) -> list[EncodedEvent]:
    """What a call made, whichever of the forms it came in; BadEvent if it is none of them."""
    several = _several(result)
    if len(several) > EVENTS_MAX:
        raise BadEvent(
            f"{len(several)} events were made in one call", remedy=f"Make at most {EVENTS_MAX}."
        )
    try:
        return [_checked(EncodedEvent(_event(name, each, host, now))) for each in several]
    except BadMessage as error:
        raise BadEvent(error.problem, remedy=error.remedy) from None


def _several(result: Result) -> Sequence[One]:
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        return result
    return [result]  # a text is refused as what it is, not as its letters


def _checked(made: EncodedEvent) -> EncodedEvent:
    if len(made.content) > EVENT_BYTES_MAX:
        raise BadEvent(
            f"the event {made.event.name} has {len(made.content)} bytes",
            remedy=f"Send at most {EVENT_BYTES_MAX} in one event.",
        )
    return made


def _event(name: EventName, found: One, host: str, now: str) -> PerformanceEvent:
    if isinstance(found, PerformanceEvent):
        if found.name != name:
            raise BadEvent(
                f"an event {found.name} was made for the offer {name}",
                remedy="Make events of the name that is offered.",
            )
        return found
    if not hasattr(found, "items"):
        raise BadEvent(
            f"a {type(found).__name__} was made for the offer {name}",
            remedy="Return a dict of names and values, a PerformanceEvent, or a list of these.",
        )
    return event_of(name, found, host=host, now=now)


def failed(error: Exception | SystemExit) -> Failed:
    """An error as consumers are sent it."""
    detail = str(error)[:DETAIL_CHARS_MAX] or "no more is known"
    return Failed(type(error).__name__, FORBIDDEN.sub("\ufffd", detail))
