"""Where notifications wait for the program: a bounded queue, or a callback.

With a callback, a sender is answered when that has returned.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Final

from tocsin.client.closeable import Closeable
from tocsin.client.soap.message import Ended, Message
from tocsin.client.transport.arrivals import QUEUE_MAX, ArrivalQueue, Taken

POLL_S: Final = 0.5

Callback = Callable[[Message], object]


class Inbox(ArrivalQueue[Message]):
    """For one subscription, or for whoever knows its address."""

    def __init__(self, callback: Callback | None = None, *, queue_max: int = QUEUE_MAX) -> None:
        super().__init__(queue_max=queue_max)
        self._callback = callback
        self._calling = Lock()
        self.ended: Ended | None = None

    def deliver(self, messages: Sequence[Message]) -> Taken:
        """Hand messages over and wait until they were taken. Raises what the callback raises."""
        if self._callback is None:
            return super().deliver(messages)
        with self._calling:  # one at a time, in the order of arrival
            if self._closed:
                return Taken.GONE
            for message in messages:
                self._callback(message)
        return Taken.YES

    def end(self, ended: Ended) -> None:
        """No more will come, and why; what waits can still be taken."""
        if self.ended is None:
            self.ended = ended
        self.finish()


class MessageIterator(Closeable):
    """Iterate over it, in one thread; `close` it, from any, or use it as a context manager."""

    @abstractmethod
    def take(self, timeout_s: float) -> Message | None:
        """The next message; None if none came in time or none will."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """True if nothing more will come."""

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        while not self.is_over:
            message = self.take(POLL_S)
            if message is not None:
                return message
        raise StopIteration
