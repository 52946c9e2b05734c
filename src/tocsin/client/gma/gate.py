"""Gate: how much may be on its way from the program to the loop; whoever brings more waits."""

from __future__ import annotations

from threading import Condition
from typing import Final

EMITTED_MAX: Final = 10_000
EMITTED_BYTES_MAX: Final = 16 << 20


class Gate:
    """Counts events and bytes; one event gets in however large it is."""

    def __init__(self, events_max: int = EMITTED_MAX, bytes_max: int = EMITTED_BYTES_MAX) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._changed = Condition()
        self._events = 0
        self._bytes = 0

    def enter(self, size: int, timeout_s: float) -> bool:
        """Let an event in, when there is room; False if there is none in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(size), timeout_s):
                return False
            self._events += 1
            self._bytes += size
        return True

    def leave(self, size: int) -> None:
        """It has come through."""
        with self._changed:
            self._events -= 1
            self._bytes -= size
            self._changed.notify()

    def _has_room(self, size: int) -> bool:
        if not self._events:
            return True
        return self._events < self._events_max and self._bytes + size <= self._bytes_max
