"""What the port needs of whatever runs the broker, and of whoever is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tocsin.broker.log import StoreReader
from tocsin.broker.runtime import Runtime
from tocsin.event.stored import Stored

T = TypeVar("T")


class Replier(Protocol):
    """Whoever published and waits. `answer` is called once and never raises."""

    def answer(self, result: object) -> None: ...


class StreamSink(Protocol):
    """The far end of an open stream."""

    def write(self, events: list[Stored]) -> bool:
        """Take the events; False if the transport is full until `stream_ready` is called."""
        ...

    def dropped(self, count: int) -> None: ...

    def withheld(self, count: int) -> None:
        """There were events that its reader has no right to."""

    def end(self, reason: str) -> None: ...


class Engine(Protocol):
    """What the port needs of whatever runs the broker, beside what services need."""

    @property
    def runtime(self) -> Runtime: ...

    def steady_ns(self) -> int:
        """The time that the broker is given; it never goes back."""

    def read(self, work: Callable[[StoreReader], T]) -> Awaitable[T]:
        """Ask the log something, where that holds nobody up."""

    def attach(self, stream: int, sink: StreamSink) -> None:
        """What the broker writes to the stream goes there."""

    def detach(self, stream: int) -> bool:
        """False if nothing was attached."""
