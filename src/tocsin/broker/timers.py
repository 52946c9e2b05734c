"""Timers: what is to happen when. Time is told to them; they look at no clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[int], None]


class Timers:
    """Actions by their moment; those of one moment run in the order in which they were set.

    There is no cancel: an action checks, when its time has come, whether it is still wanted.
    """

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Action]] = []
        self._numbers = count()

    def at(self, when_ns: int, action: Action) -> None:
        heapq.heappush(self._due, (when_ns, next(self._numbers), action))

    def next_ns(self) -> int | None:
        return self._due[0][0] if self._due else None

    def run(self, now_ns: int) -> None:
        """Run what is due. What an action sets for now or earlier waits for the next call."""
        ready: list[Action] = []
        while self._due and self._due[0][0] <= now_ns:
            ready.append(heapq.heappop(self._due)[2])
        for action in ready:
            action(now_ns)
