"""Waiting: how many bytes of control messages wait for each neighbour, and for all of them.

They go over the same connection as everything else, in the order in which they were written. So
what of them still waits is known by how far the connection has been taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Waiting:
    """Of connections that end and are made again: see `forget`."""

    def __init__(
        self, bytes_max: int, bytes_total_max: int, taken_of: Callable[[str], int]
    ) -> None:
        """`taken_of`: of all bytes that were ever written on the connection to a neighbour, how
        many do not wait any more."""
        self._bytes_max = bytes_max
        self._bytes_total_max = bytes_total_max
        self._taken_of = taken_of
        self._written: dict[str, deque[tuple[int, int]]] = {}  # where each ends, and its size
        self._bytes: dict[str, int] = {}
        self.total = 0

    def of(self, neighbour: str) -> int:
        """What waited when it was last looked at."""
        return self._bytes.get(neighbour, 0)

    def has_room(self, neighbour: str, size: int) -> bool:
        """For so many bytes more."""
        self._look(neighbour)
        if self.of(neighbour) + size > self._bytes_max:
            return False
        if self.total + size > self._bytes_total_max:
            for each in list(self._written):
                self._look(each)
        return self.total + size <= self._bytes_total_max

    def add(self, neighbour: str, size: int, written: int) -> None:
        """A message of this size was written, so that so much was written in all."""
        self._written.setdefault(neighbour, deque()).append((written, size))
        self._bytes[neighbour] = self.of(neighbour) + size
        self.total += size

    def _look(self, neighbour: str) -> None:
        waiting = self._written.get(neighbour)
        taken = self._taken_of(neighbour) if waiting else 0
        while waiting and waiting[0][0] <= taken:
            _, size = waiting.popleft()
            self._bytes[neighbour] -= size
            self.total -= size

    def forget(self, neighbour: str) -> None:
        """Its connection has ended, and all that waited with it."""
        self._written.pop(neighbour, None)
        self.total -= self._bytes.pop(neighbour, 0)
