"""The runtime of services on an event loop: real time, real chance, real sockets."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, Protocol

from tocsin.broker.effects import Level
from tocsin.broker.runtime import HttpAnswer
from tocsin.errors import TocsinError


class LoopSignal:
    """Somebody who awaits an answer in a coroutine."""

    __slots__ = ("_future",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[Any] = loop.create_future()

    def answer(self, result: object) -> None:
        if self._future.done():
            return
        if isinstance(result, TocsinError):
            self._future.set_exception(result)
        else:
            self._future.set_result(result)

    def is_answered(self) -> bool:
        return self._future.done() and not self._future.cancelled()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._future.__await__()


class Post(Protocol):
    """Sends one message and gives the answer."""

    def __call__(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Awaitable[HttpAnswer]: ...


class Host(Protocol):
    """The node that services run beside."""

    loop: asyncio.AbstractEventLoop
    stopping: bool

    def now_ns(self) -> int: ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    def schedule_run(self) -> None: ...


class LoopRuntime:
    """Runs services on the node's loop."""

    def __init__(self, host: Host, post: Post) -> None:
        self._host = host
        self._loop = host.loop
        self._post = post
        self._tasks: set[asyncio.Task[None]] = set()
        self.now_ns = host.now_ns
        self.note = host.note
        self.wake = host.schedule_run
        self.elapsed_s = time.monotonic  # the loop looks at its clock once a turn
        self.jitter = random.random

    @property
    def is_stopping(self) -> bool:
        return self._host.stopping

    def new_id(self) -> str:
        return secrets.token_hex(12)

    def signal(self) -> LoopSignal:
        return LoopSignal(self._loop)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_s, call)

    def sleep(self, seconds: float) -> Awaitable[None]:
        return asyncio.sleep(seconds)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            trace = "".join(traceback.format_exception(error))
            self.note("error", "a service failed", task=task.get_name(), trace=trace)

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float = 10.0
    ) -> Awaitable[HttpAnswer]:
        return self._post(url, body, headers, timeout_s=timeout_s)

    async def close(self) -> None:
        """End every task that is left."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
