"""ArrivalQueue: what a listener received waits here until the program takes it.

A sender is answered when the program has its message, or has not taken it in time. Until then the
sender may send again, so a message may come twice and is not lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from threading import Condition
from typing import Final, Generic, TypeVar

QUEUE_MAX: Final = 100
TAKE_TIMEOUT_S: Final = 20.0  # less than a broker waits for an answer, so that it gets ours

M = TypeVar("M")


class Taken(Enum):
    """What became of messages that were delivered here."""

    YES = auto()
    LATER = auto()  # there is no room, or nobody took them in time
    GONE = auto()  # nobody will


class _Arrival(Generic[M]):
    __slots__ = ("message", "taken")

    def __init__(self, message: M) -> None:
        self.message = message
        self.taken = False


class ArrivalQueue(Generic[M]):
    """Bounded. For threads; `on_arrival`, if set, is called in the thread that delivers."""

    def __init__(self, *, queue_max: int = QUEUE_MAX) -> None:
        self._queue_max = queue_max
        self._changed = Condition()
        self._queue: deque[_Arrival[M]] = deque()
        self._finished = False
        self._closed = False
        self.on_arrival: Callable[[], object] | None = None

    def deliver(self, messages: Sequence[M]) -> Taken:
        """Queue messages and wait until all were taken."""
        arrivals = [_Arrival(message) for message in messages]
        deadline = time.monotonic() + TAKE_TIMEOUT_S
        with self._changed:
            if self._closed:
                return Taken.GONE
            # A message that alone brings more than the queue holds gets in when that is empty.
            if self._queue and len(self._queue) + len(arrivals) > self._queue_max:
                return Taken.LATER
            self._queue.extend(arrivals)
            self._wake()
            while not all(arrival.taken for arrival in arrivals):
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._closed:
                    self._queue = deque(each for each in self._queue if each not in arrivals)
                    return Taken.LATER
                self._changed.wait(left_s)
        return Taken.YES

    def take(self, timeout_s: float) -> M | None:
        """The next message; None if none came in time, or none will come."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._queue:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._closed or self._finished:
                    return None
                self._changed.wait(left_s)
            arrival = self._queue.popleft()
            arrival.taken = True
            self._changed.notify_all()
        return arrival.message

    def finish(self) -> None:
        """No more will come; what waits can still be taken."""
        with self._changed:
            self._finished = True
            self._wake()

    def close(self) -> None:
        """Take nothing any more."""
        with self._changed:
            self._closed = True
            self._wake()

    @property
    def is_over(self) -> bool:
        """True if nothing waits and nothing will come."""
        with self._changed:
            return self._closed or (self._finished and not self._queue)

    def _wake(self) -> None:
        self._changed.notify_all()
        if self.on_arrival is not None:
            self.on_arrival()
