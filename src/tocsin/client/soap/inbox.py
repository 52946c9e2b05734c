"""Where notifications wait for the program: a bounded queue, or a callback.

A sender is told that its message was taken when the program has it: when the callback has returned,
or the loop has been handed the message. Until then it may send again, so a message may come twice
and is not lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum, auto
from threading import Condition, Lock
from typing import Final

from tocsin.client.soap.message import Ended, Message

QUEUE_MESSAGES_MAX: Final = 100
TAKEN_WAIT_S: Final = 20.0  # less than a broker waits for an answer, so that it hears ours

Callback = Callable[[Message], object]


class Taken(Enum):
    """What became of messages that were delivered here."""

    YES = auto()
    LATER = auto()  # there is no room, or nobody took them in time
    GONE = auto()  # nobody will


class _Arrival:
    __slots__ = ("message", "taken")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.taken = False


class Inbox:
    """For one subscription, or for whoever knows its address."""

    def __init__(
        self, callback: Callback | None = None, *, queue_max: int = QUEUE_MESSAGES_MAX
    ) -> None:
        self._callback = callback
        self._queue_max = queue_max
        self._calling = Lock()
        self._changed = Condition()
        self._queue: deque[_Arrival] = deque()
        self._closed = False
        self.ended: Ended | None = None

    def deliver(self, messages: Sequence[Message]) -> Taken:
        """Hand messages over and wait until they were taken. Raises what the callback raises."""
        if self._callback is None:
            return self._queued(messages)
        with self._calling:  # one at a time, in the order of arrival
            if self._closed:
                return Taken.GONE
            for message in messages:
                self._callback(message)
        return Taken.YES

    def _queued(self, messages: Sequence[Message]) -> Taken:
        arrivals = [_Arrival(message) for message in messages]
        deadline = time.monotonic() + TAKEN_WAIT_S
        with self._changed:
            if self._closed:
                return Taken.GONE
            # A message that alone brings more than the queue holds gets in when that is empty.
            if self._queue and len(self._queue) + len(arrivals) > self._queue_max:
                return Taken.LATER
            self._queue.extend(arrivals)
            self._changed.notify_all()
            while not all(arrival.taken for arrival in arrivals):
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._closed:
                    untaken = [each for each in self._queue if each not in arrivals]
                    self._queue = deque(untaken)
                    return Taken.LATER
                self._changed.wait(left_s)
        return Taken.YES

    def take(self, timeout_s: float) -> Message | None:
        """The next message; None if none came in time, or none will come."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._queue:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or self._closed or self.ended is not None:
                    return None
                self._changed.wait(left_s)
            arrival = self._queue.popleft()
            arrival.taken = True
            self._changed.notify_all()
        return arrival.message

    def end(self, ended: Ended) -> None:
        """No more will come, and why; what waits can still be taken."""
        with self._changed:
            if self.ended is None:
                self.ended = ended
            self._changed.notify_all()

    def close(self) -> None:
        """Take nothing any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """True if nothing waits and nothing will come."""
        with self._changed:
            return self._closed or (self.ended is not None and not self._queue)
