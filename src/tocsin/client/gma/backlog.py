"""Backlog: events that wait for a consumer that reads too slowly, the oldest given up first."""

from __future__ import annotations

from collections import Counter, deque

BACKLOG_BYTES_MAX = 1 << 20


class Backlog:
    """Of one connection. What is given up is counted for each of its subscriptions."""

    def __init__(self, bytes_max: int = BACKLOG_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._size = 0
        self._lost: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        return self._size

    def put(self, subscription_id: str, message: bytes) -> int:
        """Keep a message; how many were given up for it."""
        self._waiting.append((subscription_id, message))
        self._size += len(message)
        given_up = 0
        while self._size > self._bytes_max:
            whose, oldest = self._waiting.popleft()
            self._size -= len(oldest)
            self._lost[whose] += 1
            given_up += 1
        return given_up

    def take(self) -> bytes | None:
        """The oldest that is left."""
        if not self._waiting:
            return None
        _, message = self._waiting.popleft()
        self._size -= len(message)
        return message

    def take_lost(self) -> dict[str, int]:
        """How many each subscription has lost since this was last asked."""
        lost, self._lost = dict(self._lost), Counter()
        return lost

    def forget(self, subscription_id: str) -> None:
        """It has ended: what waits for it is no longer wanted."""
        self._waiting = deque(each for each in self._waiting if each[0] != subscription_id)
        self._size = sum(len(message) for _, message in self._waiting)
        self._lost.pop(subscription_id, None)
