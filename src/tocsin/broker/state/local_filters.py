"""LocalFilters: what the clients of this broker subscribed to, for whoever asks other brokers.

A paused subscription counts: what it wants has to be in the log when it resumes. What neighbours
ask for does not, nor do the services of the broker itself.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.event.filter import Filter


class LocalFilters:
    """The distinct filters, and how many readers have each."""

    def __init__(self, notify: Callable[[], None]) -> None:
        """`notify` is called when there is something to take."""
        self._by_reader: dict[int, Filter] = {}
        self._counts: dict[Filter, int] = {}
        self._changed: dict[Filter, None] = {}
        self._notify = notify

    def set(self, reader: int, filter: Filter | None) -> None:
        """This reader wants that from now on; None if it is gone."""
        former = self._by_reader.get(reader)
        if former == filter:
            return
        if former is not None:
            del self._by_reader[reader]
            self._counts[former] -= 1
            if not self._counts[former]:
                del self._counts[former]
                self._change(former)
        if filter is not None:
            self._by_reader[reader] = filter
            self._counts[filter] = self._counts.get(filter, 0) + 1
            if self._counts[filter] == 1:
                self._change(filter)

    def _change(self, filter: Filter) -> None:
        if not self._changed:
            self._notify()
        self._changed[filter] = None

    def take_changed(self) -> list[tuple[Filter, bool]]:
        """The filters that came or went since the last call, with whether they are there now."""
        changed, self._changed = self._changed, {}
        return [(filter, filter in self._counts) for filter in changed]
