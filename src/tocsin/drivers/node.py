"""Node: performs what one broker decides, on one event loop."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tocsin.access.decision import EVERYBODY, Access, Action
from tocsin.access.quotas.quotas import WITHOUT_QUOTAS, Quotas
from tocsin.broker import effects as do
from tocsin.broker.broker import Broker
from tocsin.broker.commit.numbering import Applied
from tocsin.broker.delivery.follower import weight
from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.engine import StreamSink
from tocsin.broker.limited_port import open_port
from tocsin.broker.log import EventStore, StoreReader
from tocsin.broker.options import BrokerOptions
from tocsin.broker.recent.events import Recent
from tocsin.broker.retention import retention_reach
from tocsin.broker.snapshot import load_snapshot
from tocsin.config import DeliverySettings, Settings
from tocsin.drivers.clock import SteadyClock
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.drivers.logger import Logger
from tocsin.drivers.push.http_client import HttpClient
from tocsin.drivers.push.pusher import Pusher, PushOptions
from tocsin.drivers.push.sinks import installed_sinks, sink_rules
from tocsin.drivers.runtime import LoopRuntime
from tocsin.drivers.secret_box import SecretBox
from tocsin.drivers.storage.disk import Readers, Writer
from tocsin.drivers.tls.contexts import sink_context
from tocsin.errors import DiskFailed, DiskFull, InternalError, TocsinError
from tocsin.event.stored import Stored
from tocsin.wire.cloudevents.webhook import Allowed, Refused

T = TypeVar("T")

STREAM_EFFECTS = do.StreamOut | do.StreamDropped | do.StreamWithheld | do.StreamEnded
CLOSING_S = 0.5  # for what is under way to the disk when the broker stops; then, for goodbyes


@dataclass(frozen=True, slots=True)
class Observers:
    """Who is called, on the loop, about what a node has done."""

    committed: list[Callable[[list[Stored]], None]] = field(default_factory=list)  # in order
    dead_letters: list[Callable[[dict[str, bytes | None]], None]] = field(default_factory=list)
    """Once they are on disk; None for one that is dropped."""
    ended: list[Callable[[do.Ended], None]] = field(default_factory=list)
    interest_changed: list[Callable[[], None]] = field(default_factory=list)
    stopped: list[Callable[[], None]] = field(default_factory=list)  # the broker, not yet the disk
    sent: list[Callable[[], None]] = field(default_factory=list)  # then: all pushes have ended


class Node:
    """Performs the effects of one broker, with sockets, threads and a disk."""

    def __init__(
        self,
        settings: Settings,
        store: EventStore,
        logger: Logger,
        addresses: OwnAddresses,
        *,
        lower_bound_ns: int = 0,
        access: Access = EVERYBODY,
        quotas: Quotas = WITHOUT_QUOTAS,
    ) -> None:
        """`lower_bound_ns`: it is not earlier than that, whatever the clock says."""
        self.loop = asyncio.get_running_loop()
        self.note = logger
        self.stopping = False
        self.failure: TocsinError | None = None
        self.failed = asyncio.Event()
        self._addresses, self._access = addresses, access
        self._clock = SteadyClock()
        self.rules, self.sinks = sink_rules(settings), installed_sinks()
        self.secrets = SecretBox(settings.log.directory)
        self.broker = self._recovered(settings.broker_options(), store, lower_bound_ns)
        self._store = store
        self._writer = Writer(store, self.loop, self._written)
        self._readers = Readers(store)
        self.pusher = self._new_pusher(settings.delivery)
        self.http_client = HttpClient(self.pusher)
        self.runtime = LoopRuntime(self, self.http_client.post)
        self.port = open_port(self.broker, self, access, quotas)
        self.observers = Observers()
        self._interest = self.broker.interest.version
        self.recent = Recent(self.broker.head)
        self._streams: dict[int, StreamSink] = {}  # by their number in the broker
        self._running, self._now_ns, self._timer_ns = False, 0, 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._perform = self._performers()
        store.follow(self.broker.head, self._appended_elsewhere)
        self.schedule_run()

    def _recovered(self, options: BrokerOptions, store: EventStore, lower_bound_ns: int) -> Broker:
        """A broker that goes on where the last one on this log stopped."""
        broker = Broker(
            options,
            new_id=lambda: secrets.token_hex(12),
            jitter=random.random,
            stopwatch=time.perf_counter_ns,
            is_trusted=lambda sink: self.sinks.is_trusted(sink, self.rules),
            addresses_of=lambda sink: self.pusher.addresses_of(sink),
            permit_of=lambda owner: self._access.permit(owner, Action.SUBSCRIBE),
        )
        broker.recover(
            load_snapshot(store, options), self._clock.now_ns(), lower_bound_ns=lower_bound_ns
        )
        return broker

    def _new_pusher(self, delivery: DeliverySettings) -> Pusher:
        options = PushOptions(self.rules, sinks_open_max=delivery.sinks_open_max)
        is_named = delivery.ca_file or delivery.client_certificate
        tls = sink_context(delivery) if is_named else None  # else made for the first https sink
        return Pusher(
            self.loop, options, self.note, sinks=self.sinks, tls=tls, unseal=self.secrets.unseal
        )

    # What the port calls

    def now_ns(self) -> int:
        """The time of day."""
        return self.broker.clock.time_ns(self._clock.now_ns())

    def steady_ns(self) -> int:
        return self._clock.now_ns()

    async def read(self, work: Callable[[StoreReader], T]) -> T:
        """Ask the log something, in the thread for that."""
        return await self._readers.ask(work)

    def rights_changed(self) -> None:
        """Rules, tokens or revoked credentials are others than before."""
        self.broker.rights_changed()
        self.schedule_run()

    def attach(self, stream: int, sink: StreamSink) -> None:
        """What the broker writes to the stream goes there."""
        self._streams[stream] = sink

    def detach(self, stream: int) -> bool:
        """False if nothing was attached."""
        return self._streams.pop(stream, None) is not None

    # Performing

    def _performers(self) -> dict[type, Callable[[Any], None]]:
        return {
            do.Commit: self._writer.write,
            do.ReadLog: self._read_log,
            do.CheckRetention: self._check_retention,
            do.Push: lambda effect: self.pusher.send(effect, self._pushed),
            do.CloseSubscription: self.pusher.close_subscription,
            do.Handshake: self._handshake,
            do.StreamOut: self._stream_out,
            do.StreamDropped: self._stream_dropped,
            do.StreamWithheld: self._stream_withheld,
            do.StreamEnded: self._stream_ended,
            do.Ended: self._ended,
            do.LogLine: lambda effect: self.note(effect.level, effect.message, **effect.fields),
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
            for listener in self.observers.interest_changed:
                listener()
        self._set_timer()

    def _not_performed(self, effect: do.Effect, error: Exception) -> None:
        """A bug in an endpoint or the pusher must cost its own client, not everybody's commit."""
        trace = "".join(traceback.format_exception(error))
        self.note("error", "an internal action failed", effect=type(effect).__name__, trace=trace)
        if isinstance(effect, do.Push):
            failed = Failed(f"sending failed: {error!r}", reachable=True)
            self.loop.call_soon(self._pushed, effect.lane, failed)
        elif isinstance(effect, STREAM_EFFECTS):
            self.port.close_stream(effect.stream)
        elif not isinstance(effect, do.Reply | do.LogLine | do.Ended | do.CloseSubscription):
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
                for listener in self.observers.dead_letters if commit.change.dead else ():
                    listener(commit.change.dead)
                first_seq, now_ns = self._store.first_seq, self._clock.now_ns()
                events = self.broker.committed(outcome, first_seq, now_ns)
                is_own = events is outcome.events
                self._remember(events, commit.append.bytes if is_own else sum(map(weight, events)))
            else:
                self.broker.commit_failed(outcome, self._clock.now_ns())
        except Exception as error:
            self._bug(error)
        self._run()

    def _remember(self, events: list[Stored], size: int) -> None:
        self.recent.add(events, size)
        for listener in self.observers.committed:
            listener(events)

    def _appended_elsewhere(self, events: list[Stored]) -> None:
        """Another broker appended these to the log. In any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._appended, events)

    def _appended(self, events: list[Stored]) -> None:
        if self.stopping and self.broker.is_idle():
            return  # the next broker on this state finds them in the log
        try:
            known = self.broker.appended(events, self._clock.now_ns())
            self._remember(known, sum(map(weight, known)))
        except Exception as error:
            self._bug(error)
        self.schedule_run()

    def _read_log(self, effect: do.ReadLog) -> None:
        recent = self.recent.page(effect.after, effect.limit)
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

    def _check_retention(self, effect: do.CheckRetention) -> None:
        async def work() -> None:
            reach = await self._readers.ask(
                lambda r: retention_reach(r, effect.before_ns, effect.bytes_max)
            )
            self.broker.retention_checked(reach, self._clock.now_ns())
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
        own = self._addresses
        callback = own.handshake(effect.subscription_id, effect.token)

        def answered(_: str, answer: Allowed | Refused) -> None:
            self.broker.handshaken(effect.token, answer, self._clock.now_ns())
            self.schedule_run()

        self.pusher.handshake(effect, own.origin, callback, answered)

    def _stream_out(self, effect: do.StreamOut) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None and not sink.write(effect.events):
            self.broker.stream_blocked(effect.stream)

    def _stream_dropped(self, effect: do.StreamDropped) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None:
            sink.dropped(effect.dropped)

    def _stream_withheld(self, effect: do.StreamWithheld) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None:
            sink.withheld(effect.withheld)

    def _stream_ended(self, effect: do.StreamEnded) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None:
            sink.end(effect.reason)

    def _ended(self, effect: do.Ended) -> None:
        for listener in self.observers.ended:
            try:
                listener(effect)
            except Exception as error:
                self._not_performed(effect, error)

    def _stop(self, effect: do.Stop) -> None:
        error = effect.error
        if self.failure is None:
            self.note("error", error.problem, code=error.code, remedy=error.remedy)
        self.fail(error)

    def fail(self, failure: TocsinError) -> None:
        """This broker cannot go on: whoever started it closes it."""
        self.failure = self.failure or failure
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
        for listener in self.observers.stopped:
            listener()
        await self.pusher.drain(CLOSING_S)
        for listener in self.observers.sent:
            listener()
        self.http_client.close()
        self.pusher.close()
        await self.runtime.close()
        for task in list(self._tasks):
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._readers.close)
        self._store.close()
