"""What runs a broker and its services: sockets, a disk and a clock, or the simulator.

Services are coroutines that await nothing but what comes from here, so both runtimes drive the very
same code. Neither asyncio nor a clock is imported by anything that is written against this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, TypeVar

import msgspec

from tocsin.broker.effects import Level

T = TypeVar("T")


class Timer(Protocol):
    """A call that is due later."""

    def cancel(self) -> object: ...


class Task(Protocol):
    """A coroutine that runs beside its caller."""

    def cancel(self) -> object:
        """End it where it waits; what it holds open is released."""


class Signal(Protocol):
    """One answer, awaited by whoever asked. It is also a token of the broker."""

    def answer(self, result: object) -> None:
        """Wake whoever waits: with the result, or with a TocsinError, which is raised there. Only
        the first answer counts."""

    def is_answered(self) -> bool: ...

    def __await__(self) -> Generator[Any, Any, Any]: ...


class HttpAnswer(msgspec.Struct, frozen=True):
    """What a peer answered, whatever its status. Names of headers are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Signals(Protocol):
    """Makes signals."""

    def signal(self) -> Signal: ...


class Runtime(Signals, Protocol):
    """Time, chance, tasks, and the network, for services."""

    @property
    def is_stopping(self) -> bool: ...

    def now_ns(self) -> int:
        """The time of day."""

    def elapsed_s(self) -> float:
        """Seconds since some moment; it never goes back."""

    def new_id(self) -> str:
        """Twenty-four hexadecimal digits that nobody can guess."""

    def jitter(self) -> float:
        """A number from 0 up to 1, by chance."""

    def note(self, level: Level, message: str, **fields: object) -> None:
        """Write a line to the broker's own log."""

    def wake(self) -> None:
        """Something was put to the broker: perform what follows from it."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer: ...

    def sleep(self, seconds: float) -> Awaitable[None]: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> Task:
        """Run it beside the caller. What it raises is noted: it should raise nothing."""

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float = 10.0
    ) -> Awaitable[HttpAnswer]:
        """POST once and give the answer, also one that refuses.

        Raises BadSubscription if the URL is invalid, SinkRefused if nothing may be sent there, Busy
        if too many messages wait, PeerFailed if no whole answer comes in time, ShuttingDown.
        """


class Semaphore:
    """At most so many at a time; the others wait, in their order. With one it is a lock."""

    def __init__(self, signals: Signals, count: int = 1) -> None:
        self._signals = signals
        self._free = count
        self._waiting: deque[Signal] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_free(self) -> bool:
        """True if whoever comes now need not wait."""
        return self._free > 0

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = self._signals.signal()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.is_answered():  # cancelled with the turn already given: it goes on to the next
                self._pass_on()
            else:
                self._waiting.remove(turn)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting.popleft().answer(None)
        else:
            self._free += 1


class Tasks:
    """The coroutines that one service has running: it can count them, and end them with itself."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._running: dict[int, _Running] = {}
        self._spawned = 0

    def __len__(self) -> int:
        return len(self._running)

    def spawn(
        self, work: Coroutine[Any, Any, None], ended: Callable[[], None] | None = None
    ) -> None:
        """Run it; `ended` is called afterwards, also if it was cancelled before it began."""
        self._spawned += 1
        running = self._running[self._spawned] = _Running(work, ended)
        running.task = self._runtime.spawn(self._run(self._spawned, running))

    async def _run(self, number: int, running: _Running) -> None:
        running.has_begun = True
        try:
            await running.work
        finally:
            self._running.pop(number, None)
            running.end()

    def cancel(self) -> None:
        """End them all."""
        for number, running in list(self._running.items()):
            if not running.has_begun:
                running.work.close()
                del self._running[number]
                running.end()
            if running.task is not None:
                running.task.cancel()


class _Running:
    __slots__ = ("_ended", "has_begun", "task", "work")

    def __init__(self, work: Coroutine[Any, Any, None], ended: Callable[[], None] | None) -> None:
        self.work = work
        self._ended = ended
        self.task: Task | None = None
        self.has_begun = False

    def end(self) -> None:
        if self._ended is not None:
            self._ended()


def new_uuid(runtime: Runtime) -> str:
    """A random UUID, as RFC 9562 writes its version 4."""
    digits = runtime.new_id() + runtime.new_id()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


async def run_all(runtime: Runtime, works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run these beside each other, and return when all have ended, however they did."""
    started = list(works)
    left = len(started)
    ended = runtime.signal()

    async def run(work: Coroutine[Any, Any, None]) -> None:
        nonlocal left
        try:
            await work
        finally:
            left -= 1
            if not left:
                ended.answer(None)

    for work in started:
        runtime.spawn(run(work))
    if started:
        await ended
