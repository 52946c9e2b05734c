"""Timers: what is to happen when. Time is an argument; they look at no clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[int], None]

CANCELLED_KEPT_MIN = 32  # fewer are not worth the sweeping


class Timer:
    """One action that waits. Without an action it has run, or nobody wants it any more."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action


class Timers:
    """Actions by their moment; those of one moment run in the order in which they were set."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0  # about so many of those that are due are not wanted any more

    def __len__(self) -> int:
        return len(self._due)

    def at(self, when_ns: int, action: Action) -> Timer:
        timer = Timer(action)
        heapq.heappush(self._due, (when_ns, next(self._numbers), timer))
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """It does not run; what it held on to is let go of now, and its place soon."""
        if timer is None or timer.action is None:
            return
        timer.action = None
        self._cancelled += 1
        if self._cancelled > max(CANCELLED_KEPT_MIN, len(self._due) // 2):
            self._due = [entry for entry in self._due if entry[2].action is not None]
            heapq.heapify(self._due)
            self._cancelled = 0

    def next_ns(self) -> int | None:
        while self._due and self._due[0][2].action is None:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def run(self, now_ns: int) -> None:
        """Run what is due. What an action sets for now or earlier waits for the next call."""
        ready: list[Timer] = []
        while self._due and self._due[0][0] <= now_ns:
            ready.append(heapq.heappop(self._due)[2])
        for timer in ready:
            action, timer.action = timer.action, None
            if action is not None:
                action(now_ns)
