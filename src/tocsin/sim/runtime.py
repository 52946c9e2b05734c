"""SimRuntime: drives the coroutines of services from the queue of a simulated world.

The counterpart of the runtime on an event loop. A task goes on in a step of its own when what it
waits for is answered, as on a loop; when its process crashes, it is dropped where it stands.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from typing import Any, Protocol

from tocsin.broker.effects import Level
from tocsin.broker.runtime import HttpAnswer
from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.world import Action, Violation

Observer = Callable[[object], None]


class Cancelled(BaseException):
    """A task ends where it waits."""


class SimSignal:
    """One answer, awaited by the task that asked. Compared by identity: it is also a token."""

    __slots__ = ("_is_answered", "_observer", "_result", "_waiting")

    def __init__(self, observer: Observer | None = None) -> None:
        self._observer = observer  # a check, called at once
        self._is_answered = False
        self._result: object = None
        self._waiting: SimTask | None = None

    def answer(self, result: object) -> None:
        if self._is_answered:
            return
        self._is_answered = True
        self._result = result
        if self._observer is not None:
            self._observer(result)
        if self._waiting is not None:
            self._waiting.resume_soon()

    def is_answered(self) -> bool:
        return self._is_answered

    def waits(self, task: SimTask) -> None:
        self._waiting = task

    def __await__(self) -> Generator[SimSignal, None, Any]:
        if not self._is_answered:
            yield self
        if isinstance(self._result, TocsinError):
            raise self._result
        return self._result


class SimTimer:
    """A call that is due later."""

    __slots__ = ("call",)

    def __init__(self, call: Action) -> None:
        self.call: Action | None = call

    def cancel(self) -> None:
        self.call = None

    def fire(self) -> None:
        call, self.call = self.call, None
        if call is not None:
            call()


class Host(Protocol):
    """The process that tasks run in."""

    current: SimTask | None

    @property
    def is_stopping(self) -> bool: ...

    def later(self, low_ms: float, high_ms: float, action: Action) -> None:
        """Do it then, unless the process has ended."""

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout_s: float,
        answered: Callable[[HttpAnswer | TocsinError], None],
    ) -> None: ...

    def add(self, task: SimTask) -> None: ...

    def remove(self, task: SimTask) -> None: ...

    @property
    def new_id(self) -> Callable[[], str]: ...

    @property
    def jitter(self) -> Callable[[], float]: ...


class SimTask:
    """A coroutine under way."""

    __slots__ = (
        "_done",
        "_host",
        "_is_cancelled",
        "_work",
        "answers",
        "is_over",
        "is_overtaken",
        "taken",
    )

    def __init__(
        self,
        host: Host,
        work: Coroutine[Any, Any, Any],
        done: Callable[[object], None],
    ) -> None:
        self._host = host
        self._work = work
        self._done = done
        self.is_over = False
        self._is_cancelled = False
        self.taken: list[tuple[SubscriptionRecord, list[Stored]]] = []  # out of boxes
        self.answers: list[object] = []  # of the port, to what it asked
        self.is_overtaken = False  # what it asked to change, another asked later
        host.add(self)

    def resume_soon(self) -> None:
        self._host.later(0, 0, self.run)

    def cancel(self) -> None:
        if not self.is_over:
            self._is_cancelled = True
            self.resume_soon()

    def drop(self) -> None:
        """The process is gone. What its `finally` does reaches nobody any more."""
        self.is_over = True
        self._work.close()

    def run(self) -> None:
        """Go on to the next thing that it waits for."""
        if self.is_over:
            return
        former, self._host.current = self._host.current, self
        try:
            if self._is_cancelled:
                self._is_cancelled = False
                signal = self._work.throw(Cancelled())
            else:
                signal = self._work.send(None)
        except StopIteration as ended:
            self._end(ended.value)
        except Cancelled:
            self.is_over = True
            self._host.remove(self)
        except Exception as error:
            self._end(error)
        else:
            signal.waits(self)
        finally:
            self._host.current = former

    def _end(self, result: object) -> None:
        self.is_over = True
        self._host.remove(self)
        self._done(result)


class SimRuntime:
    """Time, chance, tasks and the network for the services of one broker."""

    def __init__(
        self,
        host: Host,
        *,
        now_ns: Callable[[], int],
        elapsed_s: Callable[[], float],
        note: Callable[..., None],
        wake: Action,
    ) -> None:
        self._host = host
        self.now_ns = now_ns
        self.elapsed_s = elapsed_s
        self._note = note
        self.wake = wake
        self._observer: Observer | None = None

    @property
    def is_stopping(self) -> bool:
        return self._host.is_stopping

    @property
    def current(self) -> SimTask | None:
        """The task that runs now."""
        return self._host.current

    def new_id(self) -> str:
        return self._host.new_id()

    def jitter(self) -> float:
        return self._host.jitter()

    def note(self, level: Level, message: str, **fields: object) -> None:
        self._note(level, message, **fields)

    def observe_next(self, observer: Observer | None) -> None:
        """The next signal shows its answer to this first."""
        self._observer = observer

    def signal(self) -> SimSignal:
        observer, self._observer = self._observer, None
        return SimSignal(observer)

    def call_later(self, delay_s: float, call: Action) -> SimTimer:
        timer = SimTimer(call)
        self._host.later(delay_s * 1e3, delay_s * 1e3, timer.fire)
        return timer

    def sleep(self, seconds: float) -> Awaitable[None]:
        over = SimSignal()
        self._host.later(seconds * 1e3, seconds * 1e3, lambda: over.answer(None))
        return over

    def spawn(self, work: Coroutine[Any, Any, None]) -> SimTask:
        task = SimTask(self._host, work, self._ended)
        task.resume_soon()
        return task

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this at once; it must not have to wait."""
        task = SimTask(self._host, work, self._ended)
        task.run()
        assert task.is_over

    def _ended(self, result: object) -> None:
        if isinstance(result, Exception):
            trace = "".join(traceback.format_exception(result))
            raise Violation(f"a service failed\n{trace}")

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float = 10.0
    ) -> Awaitable[HttpAnswer]:
        answer = SimSignal()
        self._host.post(url, body, headers, timeout_s, answer.answer)
        return answer
