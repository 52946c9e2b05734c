"""Node: one running broker. It performs what the broker decides, on one event loop."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from tocsin.access.decision import Decide, allow_all
from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.follower import weight
from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.log import EventStore, StoreReader
from tocsin.broker.numbering import Applied
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.events import Recent
from tocsin.broker.recent.latest import Latest
from tocsin.broker.recent.topics import SeenTopics
from tocsin.broker.recent.types import SeenTypes
from tocsin.broker.snapshot import load_snapshot
from tocsin.config import Settings
from tocsin.drivers.archive.archiver import Archiver
from tocsin.drivers.clock import SteadyClock
from tocsin.drivers.clock_watch import ClockWatch
from tocsin.drivers.disk import Readers, Writer, retention_reach
from tocsin.drivers.health import Health, health_of
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.node_streams import NodeStreams
from tocsin.drivers.notes import Notes
from tocsin.drivers.peers import plain_address
from tocsin.drivers.push.http_client import HttpClient
from tocsin.drivers.push.pusher import Pusher, PushOptions
from tocsin.drivers.push.rules import sink_rules
from tocsin.drivers.push.sender import Send
from tocsin.drivers.push.sinks import installed_sinks
from tocsin.drivers.runtime import LoopRuntime
from tocsin.drivers.space import Space
from tocsin.drivers.tls import sink_context
from tocsin.errors import DiskFailed, DiskFull, InternalError, TocsinError
from tocsin.event.stored import Stored
from tocsin.services.blackboard.board import Board
from tocsin.services.reliable_messaging.sender import ReliableSender
from tocsin.wire.cloudevents.webhook import Allowed, Refused

T = TypeVar("T")

CLOSING_S = 0.5  # for what is under way to the disk when the broker stops; then, for goodbyes


class Node(NodeStreams):
    """One running broker process, without its doors."""

    def __init__(
        self,
        settings: Settings,
        store: EventStore,
        notes: Notes,
        beside: Node | None = None,
        decide: Decide = allow_all,
    ) -> None:
        """`beside`: the broker of the same process whose message boxes this one holds."""
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self.notes = notes
        self.stopping = False
        self.failure: TocsinError | None = None
        self.failed = asyncio.Event()
        self.started_ns = time.time_ns()
        self.address = settings.http.address  # the door says which port it really got
        self.listeners: dict[str, str] = {}  # the addresses by name, once they are open
        self._clock = SteadyClock()
        self.rules, self.sinks = sink_rules(settings), installed_sinks()
        self.broker = self._recovered(store, 0 if beside is None else beside.lower_bound_ns())
        self._store = store
        self._writer = Writer(store, self.loop, self._written)
        self._readers = Readers(store)
        self._pusher = self._new_pusher()
        self.http_client = HttpClient(self._pusher)
        self.runtime = LoopRuntime(self, self.http_client.post)
        self.port = BrokerPort(self.broker, self, decide)
        self.clock: ClockWatch = ClockWatch(self.port) if beside is None else beside.clock
        if beside is not None:
            self.clock.add(self.port)
        self._reliable = ReliableSender(self.port)
        self._pusher.soap.reliably = self._reliable.send
        self.on_ended: list[Callable[[do.Ended], None]] = []
        self.on_dead: list[Callable[[dict[str, bytes | None]], None]] = []  # once on disk
        self.on_interest: list[Callable[[], None]] = []  # told when anybody wants something else
        self._interest = self.broker.interest.version
        self._recent = Recent(self.broker.head)
        latest = Latest(self.runtime, self._recent, self._readers.ask)
        self.latest, self.latest_of = latest.on, latest.of_type
        self.topics = SeenTopics(self.runtime, self._recent)
        self.types = SeenTypes(self.runtime, self.broker.head)
        self.board = Board(self.port)
        self.on_interest.append(self.board.interest_changed)
        self.monitor: Monitor | None = None  # set before the doors open, if there shall be one
        self.archiver: Archiver | None = None  # the same
        super().__init__()
        self._running, self._now_ns, self._timer_ns = False, 0, 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._appended: list[Stored] = []  # by others, not yet handed on
        self._perform = self._performers()
        self.space = Space(self)
        self.schedule_run()

    def _recovered(self, store: EventStore, lower_bound_ns: int) -> Broker:
        """A broker that goes on where the last one on this log stopped."""
        options = self.settings.broker_options()
        broker = Broker(
            options,
            new_id=lambda: secrets.token_hex(12),
            jitter=random.random,
            stopwatch=time.perf_counter_ns,
            is_trusted=lambda sink: self.sinks.is_trusted(sink, self.rules),
            addresses_of=lambda sink: self._pusher.addresses_of(sink),
        )
        broker.recover(
            load_snapshot(store, options), self._clock.now_ns(), lower_bound_ns=lower_bound_ns
        )
        return broker

    def _new_pusher(self) -> Pusher:
        delivery = self.settings.delivery
        options = PushOptions(self.rules, sinks_open_max=delivery.sinks_open_max)
        named = delivery.ca_file
        tls = sink_context(named) if named else None  # else made for the first https sink
        return Pusher(self.loop, options, self.note, sinks=self.sinks, tls=tls)

    # What doors call

    def now_ns(self) -> int:
        """The time of day."""
        return self.broker.clock.time_ns(self._clock.now_ns())

    def steady_ns(self) -> int:
        return self._clock.now_ns()

    def lower_bound_ns(self) -> int:
        """The time that it is at least, whatever the machine's clock says."""
        return self.broker.clock.lower_bound_ns(self._clock.now_ns())

    def note(self, level: do.Level, message: str, **fields: object) -> None:
        self.notes(level, message, **fields)

    def peer_connected(self, host: str) -> None:
        """Somebody connected from this address: perhaps a consumer that is back."""
        if self.broker.away:
            self.broker.peer_connected(plain_address(host), self._clock.now_ns())
            self.schedule_run()

    async def read(self, work: Callable[[StoreReader], T]) -> T:
        """Ask the log something, in the thread for that."""
        return await self._readers.ask(work)

    def push_into_boxes(self, send: Send) -> None:
        """From now on, what is for a message box of this broker goes there by this."""
        self._pusher.soap.into_boxes = send

    def report_corrupt(self, sequences: list[int]) -> None:
        """Tell of records that a reader of the log could not be given."""
        self.broker.report_corrupt(sequences)
        self.schedule_run()

    def health(self) -> Health:
        clock = self.clock.complaints()
        beside = clock + ([] if self.archiver is None else self.archiver.complaints())
        full, jump_s = self.space.reason, 0.0 if clock else self.broker.clock.jump_ns / 1e9
        return health_of(self.failure, full, jump_s, beside, stopping=self.stopping)

    # Performing

    def _performers(self) -> dict[type, Callable[[Any], None]]:
        return {
            do.Commit: self._writer.write,
            do.ReadLog: self._read_log,
            do.Survey: self._survey,
            do.Push: lambda effect: self._pusher.send(effect, self._pushed),
            do.CloseSubscription: self._pusher.close_subscription,
            do.Handshake: self._handshake,
            do.StreamOut: self._stream_out,
            do.StreamDropped: self._stream_dropped,
            do.Ended: self._ended,
            do.Note: lambda effect: self.note(effect.level, effect.message, **effect.fields),
            do.Stop: self._stop,
        }

    def schedule_run(self) -> None:
        """Something happened: perform what follows from it at the end of this turn of the loop."""
        if not self._running:
            self._now_ns = self._clock.now_ns()
            self._running = True
            self.loop.call_soon(self._run)

    def _run(self) -> None:
        self._running = False
        perform = self._perform
        for effect in self.broker.flush(self._clock.now_ns()):
            try:
                if type(effect) is do.Reply:  # most of them are
                    effect.token.answer(effect.result)  # type: ignore[attr-defined]
                else:
                    perform[type(effect)](effect)
            except Exception as error:
                self._not_performed(effect, error)
        if self._interest != self.broker.interest.version:
            self._interest = self.broker.interest.version
            for listener in self.on_interest:
                listener()
        self._set_timer()

    def _not_performed(self, effect: do.Effect, error: Exception) -> None:
        """A bug in a door or in the pusher must cost its own client, not everybody's commit."""
        trace = "".join(traceback.format_exception(error))
        self.note("error", "an internal action failed", effect=type(effect).__name__, trace=trace)
        if isinstance(effect, do.Push):
            failed = Failed(f"sending failed: {error!r}", reachable=True)
            self.loop.call_soon(self._pushed, effect.lane, failed)
        elif isinstance(effect, do.StreamOut | do.StreamDropped):
            self.port.close_stream(effect.stream)
        elif not isinstance(effect, do.Reply | do.Note | do.Ended | do.CloseSubscription):
            self._bug(error)

    def _bug(self, error: Exception) -> None:
        """The broker's own state can no longer be trusted: better no broker than a wrong one."""
        bug = InternalError(f"the broker failed: {error!r}", remedy="Please report it.")
        self._stop(do.Stop(bug))

    def _set_timer(self) -> None:
        due_ns = self.broker.next_wake_ns()
        if due_ns is None or (self._timer is not None and self._timer_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = due_ns
        delay_s = max(0.0, (due_ns - self._clock.now_ns()) / 1e9)
        self._timer = self.loop.call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        try:
            self.broker.tick(self._clock.now_ns())
        except Exception as error:
            self._bug(error)
        self.schedule_run()

    def _written(self, commit: do.Commit, outcome: Applied | DiskFull | DiskFailed) -> None:
        try:
            if isinstance(outcome, Applied):
                self._remember(outcome.events, commit.append.bytes)
                for listener in self.on_dead if commit.change.dead else ():
                    listener(commit.change.dead)
                self.broker.committed(outcome, self._store.first_seq, self._clock.now_ns())
                if self._appended:
                    self._hand_on_appended()
            else:
                self.broker.commit_failed(outcome, self._clock.now_ns())
        except Exception as error:
            self._bug(error)
        self._run()

    def _remember(self, events: list[Stored], size: int) -> None:
        self._recent.add(events, size)
        self.types.add(events)
        self.topics.counts.add(events)

    def appended(self, events: list[Stored]) -> None:
        """Another broker appended these to the log. On the loop; a commit of our own that is under
        way may have lower numbers, so they may have to wait for it."""
        self._appended += events
        try:
            self._hand_on_appended()
        except Exception as error:
            self._bug(error)
        self.schedule_run()

    def _hand_on_appended(self) -> None:
        head, waiting = self.broker.head, self._appended
        count = next(
            (n for n, each in enumerate(waiting) if each.seq != head + 1 + n), len(waiting)
        )
        events, self._appended = waiting[:count], waiting[count:]
        self._remember(events, sum(map(weight, events)))
        self.broker.appended(events, self._clock.now_ns())

    def _read_log(self, effect: do.ReadLog) -> None:
        recent = self._recent.page(effect.after, effect.limit)
        if recent is not None:
            self.loop.call_soon(self._log_read, recent, recent[-1].seq, [])
            return

        async def work() -> None:
            page = await self._readers.catch_up(lambda r: r.read(effect.after, effect.limit))
            self._log_read(page.events, page.next, page.corrupt)

        self._spawn(work())

    def _log_read(self, events: list[Stored], through: int, corrupt: list[int]) -> None:
        try:
            self.broker.log_read(events, through, corrupt, self._clock.now_ns())
        except Exception as error:
            self._bug(error)
        self.schedule_run()

    def _survey(self, effect: do.Survey) -> None:
        async def work() -> None:
            reach = await self._readers.ask(
                lambda r: retention_reach(r, effect.before_ns, effect.bytes_max)
            )
            self.broker.surveyed(reach, self._clock.now_ns())
            self.schedule_run()

        self._spawn(work())

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, TocsinError):
            self._stop(do.Stop(error))
        elif error is not None and not self.stopping:
            failed = DiskFailed(f"reading the log failed: {error!r}", remedy="Please report it.")
            self._stop(do.Stop(failed))

    def _pushed(self, lane: int, outcome: Outcome) -> None:
        # Hot: a burst of answers shares one look at the clock, and one run.
        if not self._running:
            self._now_ns = self._clock.now_ns()
            self._running = True
            self.loop.call_soon(self._run)
        try:
            self.broker.pushed(lane, outcome, self._now_ns)
        except Exception as error:
            self._bug(error)

    def _handshake(self, effect: do.Handshake) -> None:
        origin = self.settings.delivery.origin or self.address
        base = f"{self.settings.http.scheme}://{origin}"
        callback = f"{base}/subscriptions/{effect.subscription_id}/handshake"

        def answered(_: str, answer: Allowed | Refused) -> None:
            self.broker.handshaken(effect.token, answer, self._clock.now_ns())
            self.schedule_run()

        self._pusher.handshake(effect, origin, f"{callback}?token={effect.token}", answered)

    def _ended(self, effect: do.Ended) -> None:
        for listener in self.on_ended:
            try:
                listener(effect)
            except Exception as error:
                self._not_performed(effect, error)

    def _stop(self, effect: do.Stop) -> None:
        if self.failure is None:
            self.failure = effect.error
            self.note(
                "error", effect.error.problem, code=effect.error.code, remedy=effect.error.remedy
            )
        self.failed.set()

    # Stopping

    async def close(self) -> None:
        """Answer who waits, put every cursor on disk, let go of the log."""
        self.stopping = True
        for sink in list(self._streams.values()):
            sink.end("the broker is stopping")
        if self.failure is None:
            self.broker.shut_down(self._clock.now_ns())
            deadline = self.loop.time() + CLOSING_S
            while not self.broker.is_idle() and self.loop.time() < deadline:
                self.schedule_run()
                await asyncio.sleep(0.002)
        self.clock.close()
        self.board.close()
        await self._pusher.drain(CLOSING_S)
        self._reliable.close()
        self.http_client.close()
        self._pusher.close()
        await self.runtime.close()
        for task in list(self._tasks):
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._readers.close)
        self._store.close()
