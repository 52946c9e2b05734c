"""Outbox: events of a feed that are not yet known to have arrived, oldest first, so many at most.

Each has a number, and keeps it however often it is sent: so its consumer knows it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

KEPT_EVENTS_MAX = 10_000
KEPT_BYTES_MAX = 16 << 20
IN_FLIGHT_MAX = 256  # sent, and not answered; a conversation keeps track of 1,000


class Kept(NamedTuple):
    """An event under its number, the so-manieth of its feed; its element as it is sent."""

    number: str
    at: int
    content: bytes


class Outbox:
    """An event that is put in goes out by `settle`, or is `dropped` for want of room."""

    def __init__(
        self,
        events_max: int = KEPT_EVENTS_MAX,
        bytes_max: int = KEPT_BYTES_MAX,
        in_flight_max: int = IN_FLIGHT_MAX,
        new_number: Callable[[], str] | None = None,
    ) -> None:
        numbers = count(1)
        self._new_number = new_number or (lambda: f"e{next(numbers)}")
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._in_flight_max = in_flight_max
        self._unsent: OrderedDict[str, Kept] = OrderedDict()
        self._in_flight: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0
        self._count = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._unsent) + len(self._in_flight)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def put(self, content: bytes) -> None:
        """Keep an event; the oldest go if there is no room."""
        self._count += 1
        kept = Kept(self._new_number(), self._count, content)
        self._unsent[kept.number] = kept
        self._size += len(content)
        while len(self) > self._events_max or (self._size > self._bytes_max and len(self) > 1):
            _, oldest = (self._in_flight or self._unsent).popitem(last=False)
            self._size -= len(oldest.content)
            self.dropped += 1

    def next(self) -> Kept | None:
        """What to send now, which is then in flight; None if enough is."""
        if not self._unsent or len(self._in_flight) >= self._in_flight_max:
            return None
        number, kept = self._unsent.popitem(last=False)
        self._in_flight[number] = kept
        return kept

    def settle(self, number: str) -> bool:
        """It has arrived, or will never; False if it is not in flight."""
        kept = self._in_flight.pop(number, None)
        if kept is None:
            return False
        self._size -= len(kept.content)
        return True

    def rewind(self) -> None:
        """The connection is gone: what is in flight is to be sent again, before the rest."""
        for number, kept in reversed(self._in_flight.items()):
            self._unsent[number] = kept
            self._unsent.move_to_end(number, last=False)
        self._in_flight.clear()
