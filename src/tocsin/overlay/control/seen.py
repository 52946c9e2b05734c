"""Seen: which messages have come by, for a while, so that none is taken twice."""

from __future__ import annotations

from collections import deque


class Seen:
    """Remembers so many at most; while it is full, nothing new is taken."""

    def __init__(self, kept_ns: int, most: int) -> None:
        self._kept_ns = kept_ns
        self._most = most
        self._known: set[tuple[str, str]] = set()
        self._ends: deque[tuple[int, tuple[str, str]]] = deque()  # oldest first

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._known

    def forget(self, now_ns: int) -> None:
        """Those whose time is over."""
        while self._ends and self._ends[0][0] <= now_ns:
            self._known.discard(self._ends.popleft()[1])

    @property
    def is_full(self) -> bool:
        return len(self._known) >= self._most

    def add(self, key: tuple[str, str], now_ns: int) -> None:
        self._known.add(key)
        self._ends.append((now_ns + self._kept_ns, key))
