"""A broker and its services run by hand: a log in memory, time that moves when nothing else can.

It needs no socket, no thread and no event loop: `run` steps the coroutines of services, performs
what the broker asks for, and lets time pass only while everybody waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from tocsin.access.decision import EVERYBODY, Access, Action
from tocsin.access.quotas.quotas import WITHOUT_QUOTAS, Quotas
from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.engine import StreamSink
from tocsin.broker.limited_port import open_port
from tocsin.broker.log import EventStore, StoreReader
from tocsin.broker.options import BrokerOptions
from tocsin.broker.runtime import HttpAnswer
from tocsin.broker.snapshot import load_snapshot
from tocsin.errors import DiskFull, TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.store.memory import memory_store

T = TypeVar("T")
START_NS = 1_700_000_000 * NS_PER_S
STEPS_MAX = 1_000_000
NO_CONTENT = HttpAnswer(204, {}, b"")


class Cancelled(BaseException):
    """Raised in a task that was cancelled, where it waits."""


class ManualSignal:
    """One answer. Whoever awaits it is resumed by the runtime."""

    def __init__(self) -> None:
        self._result: list[object] = []
        self.on_answer: Callable[[], None] | None = None

    def answer(self, result: object) -> None:
        if not self._result:
            self._result.append(result)
            if self.on_answer is not None:
                self.on_answer()

    def is_answered(self) -> bool:
        return bool(self._result)

    def __await__(self) -> Generator[Any, Any, Any]:
        while not self._result:
            yield self
        if isinstance(self._result[0], TocsinError):
            raise self._result[0]
        return self._result[0]


class ManualTask:
    """A coroutine, stepped by the runtime."""

    def __init__(self, runtime: ManualRuntime, work: Coroutine[Any, Any, Any]) -> None:
        self._runtime = runtime
        self._work = work
        self._is_cancelled = False
        self.is_done = False
        self.result: Any = None
        self.error: BaseException | None = None
        runtime.ready.append(self)

    def cancel(self) -> None:
        if not self.is_done:
            self._is_cancelled = True
            self._runtime.ready.append(self)

    def step(self) -> None:
        if self.is_done:
            return
        try:
            waits_for: ManualSignal = (
                self._work.throw(Cancelled()) if self._is_cancelled else self._work.send(None)
            )
        except StopIteration as stop:
            self.is_done, self.result = True, stop.value
        except BaseException as error:
            self.is_done, self.error = True, error
        else:
            waits_for.on_answer = lambda: self._runtime.ready.append(self)


class ManualTimer:
    """A call that is due later."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class ManualRuntime:
    """Runs one broker and its services; `port` is the way in."""

    is_stopping = False

    def __init__(
        self,
        store: EventStore | None = None,
        options: BrokerOptions | None = None,
        access: Access = EVERYBODY,
        *,
        quotas: Quotas = WITHOUT_QUOTAS,
        now_ns: int = START_NS,
        trusts_sinks: bool = True,
    ) -> None:
        self.store = store or memory_store()
        self._now_ns = now_ns
        self._numbers = count(1)
        self._timers: list[tuple[int, int, ManualTimer]] = []
        self._streams: dict[int, StreamSink] = {}
        self.ready: deque[ManualTask] = deque()
        self.notes: list[tuple[str, str]] = []
        self.handshakes: list[do.Handshake] = []
        self.commits = 0
        self.posts: list[tuple[str, bytes]] = []
        self.on_post: Callable[[str, bytes], HttpAnswer] = lambda url, body: HttpAnswer(
            204, {}, b""
        )
        self.is_disk_slow = False  # then commits wait until it is set back
        self.is_disk_full = False  # then no commit is made
        self._late_commits: list[do.Commit] = []
        options = options or BrokerOptions()
        self.broker = Broker(
            options,
            new_id=self.new_id,
            jitter=self.jitter,
            stopwatch=lambda: 0,
            is_trusted=lambda sink: trusts_sinks,
            addresses_of=lambda sink: (),
            permit_of=lambda owner: access.permit(owner, Action.SUBSCRIBE),
        )
        self.broker.recover(load_snapshot(self.store, options), self._now_ns)
        self.port = open_port(self.broker, self, access, quotas)

    @property
    def runtime(self) -> ManualRuntime:
        return self

    # What services need

    def now_ns(self) -> int:
        return self._now_ns

    def steady_ns(self) -> int:
        return self._now_ns

    def elapsed_s(self) -> float:
        return (self._now_ns - START_NS) / NS_PER_S

    def new_id(self) -> str:
        return f"{next(self._numbers):024x}"

    def jitter(self) -> float:
        return 0.0

    def note(self, level: do.Level, message: str, **fields: object) -> None:
        self.notes.append((level, message))

    def wake(self) -> None:
        """The broker is looked at whenever something runs."""

    def signal(self) -> ManualSignal:
        return ManualSignal()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(call)
        due_ns = self._now_ns + int(delay_s * NS_PER_S)
        heappush(self._timers, (due_ns, next(self._numbers), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        awake = self.signal()
        self.call_later(seconds, lambda: awake.answer(None))
        await awake

    def spawn(self, work: Coroutine[Any, Any, None]) -> ManualTask:
        return ManualTask(self, work)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float = 10.0
    ) -> HttpAnswer:
        self.posts.append((url, body))
        return self.on_post(url, body)

    # What the port needs

    async def read(self, work: Callable[[StoreReader], T]) -> T:
        return work(self.store.reader())

    def attach(self, stream: int, sink: StreamSink) -> None:
        self._streams[stream] = sink

    def detach(self, stream: int) -> bool:
        return self._streams.pop(stream, None) is not None

    @property
    def streams_open(self) -> int:
        return len(self._streams)

    # What a test does

    def run(self, work: Awaitable[T]) -> T:
        """The result of one piece of work, and everything that runs beside it meanwhile."""
        [result] = self.run_all(work)
        if isinstance(result, BaseException):
            raise result
        return result  # type: ignore[no-any-return]

    def run_all(self, *works: Awaitable[Any]) -> list[Any]:
        """Begin all at the same moment; returns what each gave or raised."""

        async def awaited(work: Awaitable[T]) -> T:
            return await work

        tasks = [ManualTask(self, awaited(work)) for work in works]
        for _ in range(STEPS_MAX):
            self.settle()
            if all(task.is_done for task in tasks):
                return [task.result if task.error is None else task.error for task in tasks]
            if not self._next_moment(None):
                raise AssertionError("it waits for something that never comes")
        raise AssertionError("it never comes to an end")

    async def gather(self, *works: Awaitable[Any]) -> list[Any]:
        """Run these at the same moment; returns what each gave or raised."""
        outcomes: list[Any] = [None] * len(works)
        left, ended = len(works), self.signal()

        async def run(place: int, work: Awaitable[Any]) -> None:
            nonlocal left
            try:
                outcomes[place] = await work
            except TocsinError as error:
                outcomes[place] = error
            left -= 1
            if not left:
                ended.answer(None)

        for place, work in enumerate(works):
            self.spawn(run(place, work))
        await ended
        return outcomes

    def pass_s(self, seconds: float) -> None:
        """Let time pass, and all that is due in it happen."""
        until_ns = self._now_ns + int(seconds * NS_PER_S)
        self.settle()
        while self._next_moment(until_ns):
            self.settle()
        self._now_ns = until_ns
        self.broker.tick(self._now_ns)
        self.settle()

    def settle(self) -> None:
        """Do everything that can be done now."""
        while True:
            while self.ready:
                self.ready.popleft().step()
            if self._late_commits and not self.is_disk_slow:
                self._commit(self._late_commits.pop(0))
            effects = self.broker.flush(self._now_ns)
            if not effects and not self.ready and not self._late_commits_due():
                return
            for effect in effects:
                self._perform(effect)

    def restarted(self, quotas: Quotas = WITHOUT_QUOTAS) -> ManualRuntime:
        """Another broker on the same log, as after a crash."""
        after = ManualRuntime(self.store, now_ns=self._now_ns, quotas=quotas)
        after._numbers = self._numbers  # no id is given twice
        return after

    def _late_commits_due(self) -> bool:
        return bool(self._late_commits) and not self.is_disk_slow

    def _next_moment(self, until_ns: int | None) -> bool:
        """Go to when something is due; False if nothing is, until then."""
        while self._timers and self._timers[0][2].call is None:
            heappop(self._timers)
        wake_ns = self.broker.next_wake_ns()
        moments = [timer[0] for timer in self._timers[:1]]
        moments += [] if wake_ns is None else [wake_ns]
        if not moments or (until_ns is not None and min(moments) > until_ns):
            return False
        self._now_ns = max(self._now_ns, min(moments))
        if wake_ns is not None and wake_ns <= self._now_ns:
            self.broker.tick(self._now_ns)
        while self._timers and self._timers[0][0] <= self._now_ns:
            timer = heappop(self._timers)[2]
            if timer.call is not None:
                timer.call()
        return True

    def _perform(self, effect: do.Effect) -> None:
        broker, now_ns = self.broker, self._now_ns
        if isinstance(effect, do.Reply):
            effect.token.answer(effect.result)  # type: ignore[attr-defined]
        elif isinstance(effect, do.Commit):
            if self.is_disk_slow:
                self._late_commits.append(effect)
            else:
                self._commit(effect)
        elif isinstance(effect, do.ReadLog):
            page = self.store.reader().read(effect.after, effect.limit)
            broker.log_read(page.events, page.next, page.corrupt, now_ns)
        elif isinstance(effect, do.StreamOut):
            sink = self._streams.get(effect.stream)
            if sink is not None and not sink.write(effect.events):
                broker.stream_blocked(effect.stream)
        elif isinstance(effect, do.StreamDropped):
            self._streams[effect.stream].dropped(effect.dropped)
        elif isinstance(effect, do.StreamWithheld):
            self._streams[effect.stream].withheld(effect.withheld)
        elif isinstance(effect, do.StreamEnded):
            self._streams[effect.stream].end(effect.reason)
        elif isinstance(effect, do.CheckRetention):
            broker.retention_checked(0, now_ns)
        elif isinstance(effect, do.Handshake):
            self.handshakes.append(effect)
        elif isinstance(effect, do.LogLine):
            self.notes.append((effect.level, effect.message))
        elif isinstance(effect, do.Stop):
            raise effect.error

    def _commit(self, commit: do.Commit) -> None:
        if self.is_disk_full:
            full = DiskFull("the disk is full", remedy="Make room.")
            self.broker.commit_failed(full, self._now_ns)
            return
        applied = self.store.commit(commit.append, commit.change)
        self.commits += 1
        self.broker.committed(applied, self.store.first_seq, self._now_ns)
