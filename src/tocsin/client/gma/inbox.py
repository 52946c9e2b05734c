"""Inbox: what has come and the program has not taken yet; full, it has its senders wait."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Final, NamedTuple

from tocsin.errors import TocsinError
from tocsin.wire.gma.messages import PerformanceEvent

EVENTS_MAX: Final = 1_000
BYTES_MAX: Final = 16 << 20  # as they were sent


class Arrival(NamedTuple):
    """An event, or nothing but something to do in its turn."""

    event: PerformanceEvent | None
    size: int
    seq: int | None = None
    taken: Callable[[], None] | None = None  # called when the program has it


class Inbox:
    """Filled by the loop's thread, emptied by any."""

    def __init__(
        self,
        has_room: Callable[[], None],
        events_max: int = EVENTS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._has_room = has_room
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._size = 0
        self._changed = Condition()
        self._arrivals: deque[Arrival] = deque()
        self._was_full = False
        self._ended = False
        self._error: TocsinError | None = None

    def put(self, arrival: Arrival) -> bool:
        """Add it; False if nothing more should come until `has_room` is called."""
        with self._changed:
            if self._ended:
                return True
            self._arrivals.append(arrival)
            self._size += arrival.size
            self._was_full = (
                self._was_full
                or len(self._arrivals) >= self._events_max
                or self._size >= self._bytes_max
            )
            self._changed.notify()
            return not self._was_full

    def take(self, timeout_s: float | None) -> Arrival | None:
        """The next that is an event; None if none came in time, or none will.

        Raises, after the last event, what ended it if that was an error.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            arrival = self._next(deadline)
            if arrival is None:
                return None
            if arrival.taken is not None:
                arrival.taken()
            if arrival.event is not None:
                return arrival

    def _next(self, deadline: float | None) -> Arrival | None:
        with self._changed:
            while not self._arrivals:
                if self._error is not None:
                    raise self._error
                left_s = None if deadline is None else deadline - time.monotonic()
                if self._ended or (left_s is not None and left_s <= 0):
                    return None
                self._changed.wait(left_s)
            arrival = self._arrivals.popleft()
            self._size -= arrival.size
            room = (
                self._was_full
                and len(self._arrivals) <= self._events_max // 2
                and self._size <= self._bytes_max // 2
            )
            if room:
                self._was_full = False
        if room:
            self._has_room()
        return arrival

    @property
    def is_over(self) -> bool:
        """True if nothing waits and nothing will come."""
        with self._changed:
            return self._ended and not self._arrivals

    def end(self, error: TocsinError | None = None) -> None:
        """Nothing more will come; what waits can still be taken."""
        with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
            self._changed.notify_all()
