"""Process: the simulated counterpart of the node. It performs what the broker decides.

The broker, its delivery and its log are the shipped ones. What is simulated is how long each effect
takes, whether it happens, and when the process ends: anywhere, also between an effect and the
moment the broker hears of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.log import EventStore, OpenReader
from tocsin.broker.numbering import Applied
from tocsin.broker.snapshot import Snapshot, take_up
from tocsin.broker.state import CLOCK
from tocsin.errors import DiskFailed, DiskFull, ShuttingDown, TocsinError
from tocsin.event.filter import Filter
from tocsin.event.stored import Stored
from tocsin.sim.account import Account
from tocsin.sim.checkers import Checkers
from tocsin.sim.disk import FaultyDisk
from tocsin.sim.ends import Question, StreamEnd
from tocsin.sim.log_reading import dead_letters, summary
from tocsin.sim.outgoing import Outgoing
from tocsin.sim.plan import Plan
from tocsin.sim.strikes import Fall, Point, Strike, Strikes
from tocsin.sim.world import NS_PER_MS, NS_PER_S, Action, Violation, World
from tocsin.sim.wrong_clock import WrongClock
from tocsin.store.reach import retention_reach
from tocsin.store.store import Store
from tocsin.store.vfs import PowerCut

Outcome = Applied | DiskFull | DiskFailed  # of a commit

COMMIT_OPERATIONS_MAX = 14  # of the disk; most commits take fewer
START_OPERATIONS_MAX = 40
DOWN_MS_MAX = 150
CLOSING_MS = 500
CLOCK_S_MAX = 2.0
CLOCK_READ_MS = 40


class Process:
    """One broker process after another on the same disk."""

    def __init__(self, world: World, plan: Plan, disk: FaultyDisk, checkers: Checkers) -> None:
        self.broker: Broker | None = None
        self.found: Callable[[Account], None] = _ignore
        self.kept: Callable[[Snapshot], None] = _ignore
        self._world = world
        self._plan = plan
        self._disk = disk
        self._checkers = checkers
        self.outgoing = Outgoing(world, checkers, self)
        self._strikes = Strikes(plan.strikes)
        self._clock = WrongClock(world)
        self.boot = self.falls = 0
        self._ids = count(1)
        self._stopping = self._flushing = False
        self._timer_ns: int | None = None
        self._store: EventStore
        self._reader: OpenReader
        self._streams: dict[int, StreamEnd] = {}
        self._perform: dict[type, Callable[[Any], None]] = {
            do.Commit: self._commit,
            do.ReadLog: self._read_log,
            do.Survey: self._survey,
            do.Push: self.outgoing.push,
            do.CloseSubscription: self.outgoing.close_subscription,
            do.Handshake: self.outgoing.shake_hands,
            do.StreamOut: self._stream_out,
            do.StreamDropped: self._stream_dropped,
            do.Ended: self._ended,
            do.Reply: self._reply,
            do.Note: self._note,
            do.Stop: self._stop,
        }

    # Life and death

    def start(self) -> None:
        """Open the log and take up what is there. Struck meanwhile, start again later."""
        world, disk = self._world, self._disk
        strike = self._due(Point.STARTING)
        disk.cut_at = None
        if strike is not None:
            disk.cut_at = disk.operations + world.random.randint(1, START_OPERATIONS_MAX)
        disk.sync_fails = False
        if world.fault(self._plan.clock_set):
            world.seen["clock set"] += 1
            world.offset_ns = int(world.random.uniform(-CLOCK_S_MAX, CLOCK_S_MAX) * NS_PER_S)
        try:
            store = Store.open("data", vfs=disk.name)
            broker = self._recovered(store)
        except PowerCut:
            assert strike is not None
            world.seen[f"struck: {strike.point.value}"] += 1
            self._lose(strike.fall)
            return
        except DiskFull:
            world.seen["disk full at start"] += 1
            world.soon(1, DOWN_MS_MAX, self.start)
            return
        except TocsinError as error:
            raise Violation(f"the broker does not start again: {error}") from error
        disk.cut_at = None
        self.broker, self._store, self._reader = broker, store, store.reader()
        self._stopping = self._flushing = False
        self._timer_ns = None
        world.trace(f"start, the log ends with {store.last_seq}")
        self._later(CLOCK_READ_MS, CLOCK_READ_MS, self._read_clock)
        self.kick()

    def _read_clock(self) -> None:
        """As a node does every few seconds."""
        assert self.broker is not None
        self._clock.may_jump()
        self.broker.clock.read(self._world.wall_ns, self._world.clock_ns)
        self.kick()
        self._later(CLOCK_READ_MS, CLOCK_READ_MS, self._read_clock)

    def _recovered(self, store: EventStore) -> Broker:
        options, checkers, reader = self._plan.options, self._checkers, store.reader()
        checkers.log.compare(store, reader)
        snapshot = take_up(store, options)
        self.kept(snapshot)
        for account in checkers.recovered(snapshot, dead_letters(reader)):
            self.found(account)
        broker = Broker(
            options,
            new_id=lambda: f"n{next(self._ids)}",
            jitter=self._world.random.random,
            is_trusted=checkers.trusted.__contains__,
        )
        if CLOCK in snapshot.cursors:
            self._clock.may_jump()
        self._world.clock_ahead_ns = self._world.offset_ns + self._world.jump_ns
        broker.recover(snapshot, self._world.clock_ns)
        return broker

    def reached(self, point: Point) -> None:
        """The process may be struck here."""
        if self.broker is not None:
            strike = self._due(point)
            if strike is not None:
                self.fall(strike.fall, point.value)

    def _due(self, point: Point) -> Strike | None:
        return None if self._world.calm else self._strikes.due(point)

    def fall(self, fall: Fall, when: str) -> None:
        """The process ends, or is told to."""
        if self.broker is None or (self._stopping and fall is Fall.STOP):
            return
        self._world.trace(f"{fall.value} while {when}")
        self._world.seen[f"struck: {when}"] += 1
        if fall is Fall.STOP:
            self._stopping = True
            self.broker.shut_down(self._world.clock_ns)
            deadline_ns = self._world.now_ns + CLOSING_MS * NS_PER_MS
            self._later(0, 1, lambda: self._close_when_idle(deadline_ns))
            self.kick()
            return
        self._disk.has_power = False
        with suppress(PowerCut, TocsinError):
            self._store.close()
        self._lose(fall)

    def _close_when_idle(self, deadline_ns: int) -> None:
        assert self.broker is not None
        if not self.broker.is_idle() and self._world.now_ns < deadline_ns:
            self._later(2, 2, lambda: self._close_when_idle(deadline_ns))
            return
        with suppress(DiskFailed):
            self._store.close()
        self._lose(Fall.STOP)

    def _lose(self, fall: Fall) -> None:
        world = self._world
        world.seen[fall.value] += 1
        self.falls += 1
        self.boot += 1
        if self.broker is not None:
            self._checkers.falling(self.broker)
            self.broker = None
        if fall is Fall.POWER:
            self._disk.crash(world.random)
        else:
            self._disk.kill()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.cut_off()
        world.soon(1, DOWN_MS_MAX, self.start)

    def _later(self, low_ms: float, high_ms: float, action: Action) -> None:
        """Unless the process ends before."""
        boot = self.boot

        def if_alive() -> None:
            if boot == self.boot:
                action()

        self._world.soon(low_ms, high_ms, if_alive)

    # What clients call

    def ask(
        self, call: Callable[[Broker, Question], None], answer: Callable[[object], None]
    ) -> Question | None:
        """A request arrives. None if nobody is there."""
        broker = self.broker
        if broker is None:
            return None
        question = Question(answer)
        if self._stopping:
            answer(ShuttingDown("the broker is stopping", remedy="Send it again."))
        else:
            call(broker, question)
            self.kick()
        return question

    def open_stream(self, end: StreamEnd, filter: Filter, after: int | None) -> int | None:
        if self.broker is None or self._stopping:
            return None
        number = self.broker.open_stream(filter, after, "simulated")
        self._streams[number] = end
        self.kick()
        return number

    def close_stream(self, number: int) -> None:
        if self.broker is not None and self._streams.pop(number, None) is not None:
            self.broker.close_stream(number)

    def stream_ready(self, number: int) -> None:
        if self.broker is not None and number in self._streams:
            self.broker.stream_ready(number)
            self.kick()

    def dead_letters(self) -> list[DeadLetter]:
        return [] if self.broker is None else dead_letters(self._reader)

    def cursors(self) -> dict[str, int]:
        return self._reader.cursors()

    def kept_on_disk(self) -> dict[str, bytes]:
        return self._reader.service_state()

    def compare_log(self) -> None:
        self._checkers.log.compare(self._store, self._reader)

    # Performing

    def kick(self) -> None:
        """Something happened; with it goes whatever else happens until the loop turns."""
        if not self._flushing:
            self._flushing = True
            self._later(0, 0.1, self._flush)

    def _flush(self) -> None:
        self._flushing = False
        boot, broker = self.boot, self.broker
        assert broker is not None
        self._clock.noticed(broker)
        for effect in broker.flush(self._world.clock_ns):
            self._perform[type(effect)](effect)
            if boot != self.boot:
                return
        self._set_timer(broker)

    def _set_timer(self, broker: Broker) -> None:
        due_ns = broker.next_wake_ns()
        if due_ns is None or (self._timer_ns is not None and self._timer_ns <= due_ns):
            return
        self._timer_ns = due_ns
        boot = self.boot

        def tick() -> None:
            if boot == self.boot and self._timer_ns == due_ns:
                self._timer_ns = None
                broker.tick(self._world.clock_ns)
                self.kick()

        self._world.at(due_ns - self._world.clock_ahead_ns, tick)

    def _commit(self, effect: do.Commit) -> None:
        self._world.trace(f"commit {summary(effect)}")
        self._later(0.02, self._plan.disk_ms_max, lambda: self._write(effect))
        self.reached(Point.COMMIT_ASKED)

    def _write(self, commit: do.Commit) -> None:
        disk, log = self._disk, self._checkers.log
        strike = self._due(Point.COMMIT_WRITING)
        if strike is not None:
            operations = self._world.random.randint(1, COMMIT_OPERATIONS_MAX)
            disk.cut_at = disk.operations + operations
        log.writing(commit)
        try:
            applied = self._store.commit(commit.append, commit.change)
            log.written(commit, applied, self._store.first_seq)
            outcome: Outcome = applied
            if commit.change.trim_to:
                self._world.seen["log trimmed"] += 1
                self._checkers.trimmed()
        except DiskFull as error:
            self._world.seen["disk full"] += 1
            outcome = error
        except DiskFailed as error:
            self._world.seen["sync failed"] += 1
            outcome = error
        except PowerCut:
            assert strike is not None
            self.fall(strike.fall, strike.point.value)
            return
        disk.cut_at = None
        if strike is not None:
            self.fall(strike.fall, strike.point.value)
            return
        self._later(0, self._plan.disk_ms_max / 4, lambda: self._written(outcome))
        self.reached(Point.COMMIT_WRITTEN)

    def _written(self, outcome: Outcome) -> None:
        assert self.broker is not None
        if isinstance(outcome, Applied):
            self.broker.committed(outcome, self._store.first_seq, self._world.clock_ns)
        else:
            self.broker.commit_failed(outcome, self._world.clock_ns)
        self._flush()

    def _read_log(self, effect: do.ReadLog) -> None:
        def read() -> None:
            page = self._reader.read(effect.after, effect.limit)
            self._world.trace(f"read the log past {effect.after} through {page.next}")
            self._later(0, self._plan.disk_ms_max, lambda: tell(page.events, page.next))
            self.reached(Point.LOG_READ)

        def tell(events: list[Stored], through: int) -> None:
            assert self.broker is not None
            self.broker.log_read(events, through, [], self._world.clock_ns)
            self.kick()

        self._world.seen["log read back"] += 1
        assert self.broker is not None
        if any(view.lagging and view.waiting for view in self.broker.views()):
            self._world.seen["subscriber behind with a full window"] += 1
        self._later(0.02, self._plan.disk_ms_max, read)

    def _survey(self, effect: do.Survey) -> None:
        def look() -> None:
            reach = retention_reach(self._reader, effect.before_ns, effect.bytes_max)
            self._later(0, self._plan.disk_ms_max, lambda: tell(reach))

        def tell(reach: int) -> None:
            assert self.broker is not None
            self.broker.surveyed(reach, self._world.clock_ns)
            self.kick()

        self._later(0.02, self._plan.disk_ms_max, look)

    def _stream_out(self, effect: do.StreamOut) -> None:
        end = self._streams.get(effect.stream)
        if end is not None and not end.write(effect.events):
            assert self.broker is not None
            self.broker.stream_blocked(effect.stream)

    def _stream_dropped(self, effect: do.StreamDropped) -> None:
        end = self._streams.get(effect.stream)
        if end is not None:
            end.dropped(effect.dropped)

    def _ended(self, effect: do.Ended) -> None:
        self._world.trace(f"told of the end of {effect.subscription.id}: {effect.status}")
        self._world.seen[f"told of an end: {effect.status}"] += 1
        self._checkers.told_of_end(effect)

    def _reply(self, effect: do.Reply) -> None:
        assert isinstance(effect.token, Question)
        effect.token.answer(effect.result)
        self.reached(Point.REPLY)

    def _note(self, note: do.Note) -> None:
        self._world.trace(f"note: {note.message}")
        self._world.seen[f"note: {note.message}"] += 1
        if "dead_letter" in note.fields:
            subscription, seq = note.fields["subscription"], note.fields["seq"]
            assert isinstance(subscription, str)
            assert isinstance(seq, int)
            self._checkers.gave_up(subscription, seq)

    def _stop(self, effect: do.Stop) -> None:
        self.fall(self._world.random.choice((Fall.KILL, Fall.POWER)), "the disk failed")


def _ignore(_: object) -> None:
    """Until somebody cares for what a start finds."""
