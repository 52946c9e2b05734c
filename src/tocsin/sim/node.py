"""SimNode: the simulated counterpart of a node. It performs what one broker decides.

The broker, its delivery and its log are the shipped ones. What is simulated is how long each effect
takes, whether it happens, and when the process ends: anywhere, also between an effect and the
moment the broker hears of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Protocol, TypeVar

from tocsin.access.decision import EVERYBODY, Access
from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.commit.numbering import Applied
from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.delivery.follower import weight
from tocsin.broker.engine import StreamSink
from tocsin.broker.log import EventStore, OpenReader, StoreReader
from tocsin.broker.options import BrokerOptions
from tocsin.broker.recent.events import Recent
from tocsin.broker.retention import retention_reach
from tocsin.errors import DiskFailed, DiskFull, TocsinError
from tocsin.event.instant import NS_PER_MS
from tocsin.event.stored import Stored
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.faults.clock import MachineClock
from tocsin.sim.faults.crashes import CrashKind, CrashPoint, PlannedCrash
from tocsin.sim.faults.disk import FaultyDisk
from tocsin.sim.port import CheckedPort
from tocsin.sim.runtime import Host, SimRuntime, SimSignal
from tocsin.sim.world import Action, Violation, World
from tocsin.store.vfs import PowerCut

T = TypeVar("T")
Outcome = Applied | DiskFull | DiskFailed  # of a commit

COMMIT_OPERATIONS_MAX = 14  # of the disk; most commits take fewer
DEAD_LETTERS_MAX = 10_000
HEARD_MS_MAX = 20.0  # until a broker hears of what another one appended


class NodeProcess(Host, Protocol):
    """The process that a node runs in."""

    world: World
    clock: MachineClock
    disk: FaultyDisk
    disk_ms_max: float
    requests: count[int]
    is_alive: bool

    def reached(self, point: CrashPoint) -> None: ...

    def due(self, point: CrashPoint) -> PlannedCrash | None: ...

    def crash(self, kind: CrashKind, when: str) -> None: ...


class SimNode:
    """One broker on one log, from a start to the end of its process."""

    def __init__(
        self,
        process: NodeProcess,
        options: BrokerOptions,
        broker: Broker,
        store: EventStore,
        checks: DeliveryCheck,
        access: Access = EVERYBODY,
    ) -> None:
        self.broker = broker
        self.store = store
        self.options = options
        self.checks = checks
        self.reader: OpenReader = store.reader()
        self.recent = Recent(broker.head)
        self.on_ended: list[Callable[[do.Ended], None]] = []
        self.on_interest: list[Action] = []
        self.on_known: list[Callable[[list[Stored]], None]] = []  # what is in the log
        self.runtime = SimRuntime(
            process,
            now_ns=lambda: broker.clock.time_ns(process.clock.steady_ns),
            elapsed_s=lambda: process.world.elapsed_s,
            note=self._service_note,
            wake=self.wake,
        )
        self.port = CheckedPort(broker, self, process.world, checks, process.requests, access)
        self._process = process
        self._world = process.world
        self._clock = process.clock
        self._interest = broker.interest.version
        self._is_flushing = False
        self._timer_ns: int | None = None
        self.streams: dict[int, StreamSink] = {}
        self._delivered_until_ns = 0
        self._came_across: set[int] = set()  # unreadable events
        store.follow(broker.head, self._appended_elsewhere)
        self.perform: dict[type, Callable[[Any], None]] = {
            do.Commit: self._commit,
            do.ReadLog: self._read_log,
            do.CheckRetention: self._check_retention,
            do.StreamOut: self._stream_out,
            do.StreamDropped: self._stream_dropped,
            do.StreamWithheld: self._stream_withheld,
            do.StreamEnded: self._stream_ended,
            do.Ended: self._ended,
            do.Reply: self._reply,
            do.LogLine: self._note,
            do.Stop: self._stop,
        }

    # What the port needs

    def steady_ns(self) -> int:
        return self._clock.steady_ns

    def read(self, work: Callable[[StoreReader], T]) -> Awaitable[T]:
        answer = SimSignal()

        def read() -> None:
            try:
                result: object = work(self.reader)
            except TocsinError as error:
                result = error
            self._disk_later(lambda: answer.answer(result))

        self._disk_later(read)
        return answer

    def attach(self, stream: int, sink: StreamSink) -> None:
        self.streams[stream] = sink

    def detach(self, stream: int) -> bool:
        return self.streams.pop(stream, None) is not None

    # What the process needs

    def dead_letters(self) -> list[DeadLetter]:
        return dead_letters(self.reader)

    def compare_log(self) -> None:
        self.checks.log.compare(self.store, self.reader)

    def wake(self) -> None:
        """Something happened; with it goes whatever else happens until the loop turns."""
        if self.checks.access is not None:
            self.checks.access.begin_window()
        if not self._is_flushing:
            self._is_flushing = True
            self._process.later(0, 0.1, self._flush)

    # Performing

    def _flush(self) -> None:
        self._is_flushing = False
        broker, access = self.broker, self.checks.access
        if access is not None:
            access.tick()  # by the time at which the broker did what led here
        self._clock.observe(broker)
        if access is not None:
            access.begin_window()
            self.port.check_streams()
        for effect in broker.flush(self._clock.steady_ns):
            self.perform[type(effect)](effect)
            if not self._process.is_alive:
                return
        if self._interest != broker.interest.version:
            self._interest = broker.interest.version
            for listener in self.on_interest:
                listener()
        if access is not None:
            access.end_window()
        self._set_timer()

    def rights_changed(self) -> None:
        """Rules, tokens or revoked credentials are others than before."""
        self.broker.rights_changed()
        self.wake()

    def _set_timer(self) -> None:
        due_ns = self.broker.next_wake_ns()
        if due_ns is None or (self._timer_ns is not None and self._timer_ns <= due_ns):
            return
        self._timer_ns = due_ns

        def tick() -> None:
            if self._process.is_alive and self._timer_ns == due_ns:
                self._timer_ns = None
                self.broker.tick(self._clock.steady_ns)
                self.wake()

        self._world.at(self._clock.world_ns(due_ns), tick)

    def _disk_later(self, action: Action) -> None:
        self._process.later(0.02, self._process.disk_ms_max, action)

    def _commit(self, effect: do.Commit) -> None:
        self._world.trace(f"commit {_summary(effect)}")
        self.checks.attempts.committing(effect)
        self.checks.log.committing(effect)
        self._disk_later(lambda: self._write(effect))
        self._process.reached(CrashPoint.COMMIT_ASKED)

    def _write(self, commit: do.Commit) -> None:
        process, disk = self._process, self._process.disk
        crash = process.due(CrashPoint.COMMIT_WRITING)
        if crash is not None:
            operations = self._world.random.randint(1, COMMIT_OPERATIONS_MAX)
            disk.cut_at = disk.operations + operations
        try:
            outcome = self._written_to_disk(commit)
        except PowerCut:
            assert crash is not None
            process.crash(crash.kind, crash.point.value)
            return
        disk.cut_at = None
        if crash is not None:
            process.crash(crash.kind, crash.point.value)
            return
        process.later(0, process.disk_ms_max / 4, lambda: self._written(commit, outcome))
        process.reached(CrashPoint.COMMIT_WRITTEN)

    def _written_to_disk(self, commit: do.Commit) -> Outcome:
        log = self.checks.log
        log.writing(commit)
        try:
            applied = self.store.commit(commit.append, commit.change)
        except DiskFull as error:
            self._world.seen["disk full"] += 1
            return error
        except DiskFailed as error:
            self._world.seen["sync failed"] += 1
            return error
        log.written(commit, applied, self.store.first_seq)
        if commit.change.trim_to:
            self._world.seen["log trimmed"] += 1
            self.checks.trimmed()
        return applied

    def _written(self, commit: do.Commit, outcome: Outcome) -> None:
        if isinstance(outcome, Applied):
            known = self.broker.committed(outcome, self.store.first_seq, self._clock.steady_ns)
            self._know(known)
        else:
            self.broker.commit_failed(outcome, self._clock.steady_ns)
        self._flush()

    def _know(self, events: list[Stored]) -> None:
        """The broker has heard that these are in the log."""
        self.recent.add(events, sum(map(weight, events)))
        for listener in self.on_known:
            listener(events)

    def _appended_elsewhere(self, events: list[Stored]) -> None:
        """Another broker appended these. The news comes later, and in order."""
        due_ns = self._world.now_ns + int(self._world.random.uniform(0, HEARD_MS_MAX) * NS_PER_MS)
        self._delivered_until_ns = max(self._delivered_until_ns, due_ns)
        after_ms = (self._delivered_until_ns - self._world.now_ns) / NS_PER_MS

        def deliver() -> None:
            if self._process.is_alive and self.store.last_seq > events[-1].seq:
                self._world.seen["shared log: another broker's events come late"] += 1
            known = self.broker.appended(events, self._clock.steady_ns)
            if [each.seq for each in known] != [each.seq for each in events]:
                self._world.seen["shared log: events wait for those before them"] += 1
            self._know(known)
            self.wake()

        self._process.later(after_ms, after_ms, deliver)

    def _read_log(self, effect: do.ReadLog) -> None:
        def read() -> None:
            page = self.reader.read(effect.after, effect.limit)
            self._world.trace(f"read the log past {effect.after} through {page.next}")
            self._disk_later(lambda: answer(page.events, page.next, page.corrupt))
            self._process.reached(CrashPoint.LOG_READ)

        def answer(events: list[Stored], through: int, corrupt: list[int]) -> None:
            self.broker.log_read(events, through, corrupt, self._clock.steady_ns)
            self._check_named(corrupt)
            self.wake()

        self._world.seen["log read back"] += 1
        if any(view.lagging and view.waiting for view in self.broker.views()):
            self._world.seen["subscriber behind with a full window"] += 1
        self._disk_later(read)

    def _check_named(self, corrupt: list[int]) -> None:
        """The broker came across damaged events: it counts each, and says so once."""
        self.checks.log.check_unreadable(corrupt)
        self._came_across.update(corrupt)
        if self.broker.counters.corrupt < len(self._came_across):
            raise Violation(f"the events {sorted(self._came_across)} are damaged and not counted")
        if corrupt:
            self._world.seen["damage: a reader came across it"] += 1

    def _check_retention(self, effect: do.CheckRetention) -> None:
        def look() -> None:
            reach = retention_reach(self.reader, effect.before_ns, effect.bytes_max)
            self._disk_later(lambda: answer(reach))

        def answer(reach: int) -> None:
            self.broker.retention_checked(reach, self._clock.steady_ns)
            self.wake()

        self._disk_later(look)

    def _stream_out(self, effect: do.StreamOut) -> None:
        sink = self.streams.get(effect.stream)
        self.port.check_stream(effect.stream, effect.events)
        if sink is not None and not sink.write(effect.events):
            self.broker.stream_blocked(effect.stream)

    def _stream_dropped(self, effect: do.StreamDropped) -> None:
        sink = self.streams.get(effect.stream)
        if sink is not None:
            sink.dropped(effect.dropped)

    def _stream_withheld(self, effect: do.StreamWithheld) -> None:
        sink = self.streams.get(effect.stream)
        if sink is not None:
            sink.withheld(effect.withheld)

    def _stream_ended(self, effect: do.StreamEnded) -> None:
        sink = self.streams.get(effect.stream)
        if sink is not None:
            self._world.seen["access: stream ended"] += 1
            sink.end(effect.reason)

    def _ended(self, effect: do.Ended) -> None:
        self._world.trace(f"end of {effect.subscription.id} announced: {effect.status}")
        self._world.seen[f"end announced: {effect.status}"] += 1
        self.checks.ended(effect)
        for listener in self.on_ended:
            listener(effect)

    def _reply(self, effect: do.Reply) -> None:
        effect.token.answer(effect.result)  # type: ignore[attr-defined]
        self._process.reached(CrashPoint.REPLY)

    def _note(self, note: do.LogLine) -> None:
        self._service_note(note.level, note.message, **note.fields)
        subscription = note.fields.get("subscription")
        if "dead_letter" in note.fields:
            seq, letter = note.fields["seq"], note.fields["dead_letter"]
            assert isinstance(subscription, str)
            assert isinstance(seq, int)
            assert isinstance(letter, str)
            self.checks.gave_up(subscription, seq, letter)
        elif note.message.startswith("a subscription was paused"):
            assert isinstance(subscription, str)
            self.checks.attempts.paused(subscription)

    def _service_note(self, level: do.Level, message: str, **fields: object) -> None:
        if level == "error" and "error" in fields:
            raise Violation(f"{message}: {fields}")  # what services catch is a bug all the same
        self._world.trace(f"note: {message}")
        self._world.seen[f"note: {message}"] += 1

    def _stop(self, effect: do.Stop) -> None:
        kind = self._world.random.choice((CrashKind.KILL, CrashKind.POWER_CUT))
        self._process.later(0, 0.5, lambda: self._process.crash(kind, "the disk failed"))


def dead_letters(reader: StoreReader) -> list[DeadLetter]:
    letters = reader.dead_letters(limit=DEAD_LETTERS_MAX).letters
    return [from_record(data) for data in letters.values()]


def _summary(commit: do.Commit) -> str:
    offers = [[f"{event.source} {event.id}" for event in each] for each in commit.append.offers]
    change = commit.change
    return (
        f"{offers} cursors {change.cursors} starts {change.starts} "
        f"subscriptions {list(change.subscriptions)} dead {list(change.dead)} "
        f"service state {list(change.service_state)} trim {change.trim_to}"
    )
