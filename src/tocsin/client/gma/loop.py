"""LoopThread: an event loop in a thread of its own, in which all connections of an object live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Condition, Thread, current_thread
from typing import Any, Final, TypeVar
from weakref import finalize

STOP_S = 5.0

T = TypeVar("T")


class LoopThread:
    """Other threads `call` into it and go on, or `ask` and wait."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=_run, args=(self.loop,), name=name, daemon=True)
        self._thread.start()
        # A program may end without closing us: the loop then ends in good order all the same.
        finalize(self, _end, self.loop, self._thread)

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the function called there, soon; not at all if the loop has ended."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def ask(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """What the work returns or raises; TimeoutError if it takes too long, RuntimeError if the
        loop has ended or ends meanwhile. Work that nobody waits for any more is cancelled."""
        assert current_thread() is not self._thread, "it would wait for itself"
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:
            work.close()
            raise
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise RuntimeError("the loop has ended") from None
        finally:
            future.cancel()

    def close(self) -> None:
        """End the loop, and what is left in it."""
        _end(self.loop, self._thread)


def _end(loop: asyncio.AbstractEventLoop, thread: Thread) -> None:
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(loop.stop)
    if current_thread() is not thread:
        thread.join(STOP_S)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=1.0))
        loop.run_until_complete(asyncio.sleep(0))  # connections that were aborted close now
    finally:
        loop.close()


EMITTED_MAX: Final = 10_000
EMITTED_BYTES_MAX: Final = 16 << 20


class EmitLimit:
    """Limits events and bytes in flight; a single event passes however large it is."""

    def __init__(self, events_max: int = EMITTED_MAX, bytes_max: int = EMITTED_BYTES_MAX) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._changed = Condition()
        self._events = 0
        self._bytes = 0

    def enter(self, size: int, timeout_s: float) -> bool:
        """Wait until there is room for an event; False if there is none in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(size), timeout_s):
                return False
            self._events += 1
            self._bytes += size
        return True

    def leave(self, size: int) -> None:
        """The event was handled."""
        with self._changed:
            self._events -= 1
            self._bytes -= size
            self._changed.notify()

    def _has_room(self, size: int) -> bool:
        if not self._events:
            return True
        return self._events < self._events_max and self._bytes + size <= self._bytes_max
