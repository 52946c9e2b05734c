"""Pusher: performs the broker's Push and Handshake effects, by the sink of each address."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tocsin.broker.delivery.address import host_of
from tocsin.broker.delivery.answer import fields
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome, describe
from tocsin.broker.delivery.sinks import Sinks
from tocsin.broker.delivery.trust import SinkRules, plain_address
from tocsin.broker.effects import CloseSubscription, Handshake, Push
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.push.acked_sender import AckedSender
from tocsin.drivers.push.guard import ADDRESSES_TRIED_MAX, Guard, Resolver, system_resolver
from tocsin.drivers.push.http_client import HttpClient
from tocsin.drivers.push.http_sender import HttpSender
from tocsin.drivers.push.request_template import (
    Unseal,
    credential_line,
    handshake_request,
    kept_in_clear,
)
from tocsin.drivers.push.sender import Done, PushSink, Sender, SoapSender
from tocsin.drivers.push.sinks import built_in_sinks
from tocsin.drivers.push.soap_pushes import SoapPushes
from tocsin.errors import TocsinError
from tocsin.wire.cloudevents.webhook import Allowed, Refused, read_handshake

SWEEP_S = 0.25  # how exact deadlines are; one timer for all requests instead of one for each
DRAIN_LOOK_S = 0.005  # between looks at what is still open
HANDSHAKE_S = 10.0
HANDSHAKES_MAX = 64  # under way at once
HANDSHAKES_WAITING_MAX = 10_000
ASKERS_MAX = 10_000  # subscriptions that share one question

HandshakeDone = Callable[[str, Allowed | Refused], None]


@dataclass(frozen=True, slots=True)
class PushOptions:
    """What the operator may set about pushing."""

    rules: SinkRules
    sinks_open_max: int = 1_000  # connections; past it the longest idle one is closed, or awaited
    idle_s: float = 60.0  # below what most servers and proxies keep a quiet connection for


class Pusher:
    """Sends events to sinks. Everything happens on the loop; nothing here waits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: PushOptions,
        note: WriteLog,
        *,
        sinks: Sinks[PushSink] | None = None,
        resolve: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
        unseal: Unseal = kept_in_clear,
    ) -> None:
        self.loop = loop
        self.guard = Guard(loop, options.rules, resolve or system_resolver(loop))
        self.note = note
        self.clock = clock
        self.unseal = unseal
        self.open = 0  # connections, those being made among them
        self.turns: deque[asyncio.Future[None]] = deque()  # who waits to make one
        self.closing: set[Any] = set()  # connections that are being closed in good order
        self.shared: dict[str, Any] = {}
        self.soap: SoapSender = SoapPushes(AckedSender(loop, HttpClient(self)))
        self.sinks = built_in_sinks() if sinks is None else sinks
        self._is_draining = False
        self._options = options
        self._tls = tls
        self._senders: dict[int, Sender] = {}
        self._probes: set[Sender] = set()
        self._probes_waiting: deque[tuple[Handshake, str, str | None]] = deque()
        self._askers: dict[str, list[tuple[str, HandshakeDone]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._idle: list[tuple[float, Sender]] = []  # as last looked at, the longest idle one last

    def send(self, push: Push, done: Done) -> None:
        """Send the events; `done(push.lane, outcome)` is called once, from a later callback."""
        if self._is_draining:
            return  # as what is under way at the end, it is not reported
        sender = self._senders.get(push.lane)
        if sender is None or sender.address != push.sink:
            try:
                sender = self._new_sender(push)
            except TocsinError as error:
                self.loop.call_soon(done, push.lane, Failed(error.problem))
                return
        sender.used_at_s = self.loop.time()
        sender.push(push, done)

    def _new_sender(self, push: Push) -> Sender:
        """Raises BadSubscription or SinkRefused if we do not push to the address."""
        address = self.sinks.parse(push.sink, soap=push.subscription.soap is not None)
        former = self._senders.pop(push.lane, None)
        if former is not None:
            former.close()
        sink = self.sinks.of(push.sink)
        sender = self._senders[push.lane] = sink.open_sender(self, push.lane, push.sink, address)
        self._start_sweeping()
        return sender

    def handshake(
        self, effect: Handshake, origin: str, callback: str | None, done: HandshakeDone
    ) -> None:
        """Ask the sink whether it wants events; `done(subscription_id, answer)` is called once.

        Whoever asks for a sink that is being asked gets the same answer: many subscriptions made
        for somebody who knows nothing of them must not become many requests.
        """
        askers = self._askers.get(effect.sink)
        if askers is not None and len(askers) < ASKERS_MAX:
            askers.append((effect.subscription_id, done))
        elif askers is not None or len(self._askers) >= HANDSHAKES_WAITING_MAX:
            refusal = Refused("too many sinks wait to be asked; this one is asked again later")
            self.loop.call_soon(done, effect.subscription_id, refusal)
        else:
            self._askers[effect.sink] = [(effect.subscription_id, done)]
            self._probes_waiting.append((effect, origin, callback))
            self.loop.call_soon(self._start_probes)

    def _start_probes(self) -> None:
        while self._probes_waiting and len(self._probes) < HANDSHAKES_MAX:
            self._probe(*self._probes_waiting.popleft())

    def _probe(self, effect: Handshake, origin: str, callback: str | None) -> None:
        address = effect.sink
        try:
            sink = self.sinks.parse(address)
            shown = credential_line(effect.credential, address, self.unseal)
        except TocsinError as error:
            self._answer_askers(address, Refused(error.problem))
            return
        if not self.sinks.of(address).has_handshake:
            self._answer_askers(address, Refused(f"a {sink.scheme} sink cannot be asked"))
            return
        sender = HttpSender(self, -1, address, sink)

        def finished(_: int, outcome: Outcome) -> None:
            self._probes.discard(sender)
            sender.close()
            self._answer_askers(address, _consent(outcome, sender.head, origin))
            self._start_probes()

        self._probes.add(sender)
        self._start_sweeping()
        asked = handshake_request(sink, origin, callback, shown)
        sender.ask((asked, b""), finished, self.loop.time() + HANDSHAKE_S)

    def _answer_askers(self, address: str, answer: Allowed | Refused) -> None:
        for subscription_id, done in self._askers.pop(address):
            done(subscription_id, answer)

    def close_subscription(self, effect: CloseSubscription) -> None:
        """Nothing more of a subscription goes this way: say so, where the protocol can."""
        sender = self._senders.get(effect.lane)
        if sender is not None:
            sender.close_subscription(effect.subscription_id)

    async def drain(self, within_s: float) -> None:
        """Before `close`: send nothing new, and close in good order where the protocol can."""
        self._is_draining = True
        for sender in self._senders.values():
            sender.drain()
        deadline_s = self.loop.time() + within_s
        while self.closing and self.loop.time() < deadline_s:
            await asyncio.sleep(DRAIN_LOOK_S)

    def close(self) -> None:
        """Close everything at once. What was under way is not reported: it is sent again."""
        self._probes_waiting.clear()
        self._askers.clear()
        for sender in [*self._senders.values(), *self._probes]:
            sender.close()
        for connection in list(self.closing):
            connection.abort()
        self._senders.clear()
        self._probes.clear()
        self.soap.close()
        self.guard.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def addresses_of(self, address: str) -> list[str]:
        """Where a sink was looked for last, each in the one spelling that peers have, too."""
        try:
            found = self.guard.known(host_of(address))
        except TocsinError:
            return []  # no address that we push to
        return list(dict.fromkeys(map(plain_address, found)))[:ADDRESSES_TRIED_MAX]

    # What the senders share.

    def tls(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    async def opening(self) -> None:
        """Wait until one more connection may be made. Sinks that hang must not use up the
        descriptors by which publishers come in."""
        if self.open < self._options.sinks_open_max:
            self.open += 1
            return
        turn = self.loop.create_future()
        self.turns.append(turn)
        if len(self.turns) == 1:  # else none is idle: senders close by themselves while others wait
            self._close_longest_idle()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.closed()  # the turn had come, and is for somebody else now
            raise

    def closed(self) -> None:
        """One connection less: the next in turn may make one."""
        while self.turns:
            turn = self.turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.open -= 1

    def _close_longest_idle(self) -> None:
        """Those found by one look at all senders serve for many closings."""
        if not self._close_one_of_idle():
            idle = [sender for sender in self._senders.values() if sender.is_idle]
            idle.sort(key=lambda sender: -sender.used_at_s)
            self._idle = [(sender.used_at_s, sender) for sender in idle]
            self._close_one_of_idle()

    def _close_one_of_idle(self) -> bool:
        while self._idle:
            used_at_s, sender = self._idle.pop()
            if sender.is_idle and sender.used_at_s == used_at_s:
                sender.close()
                return True
        return False

    def _start_sweeping(self) -> None:
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        now_s = self.loop.time()
        for sender in [*self._senders.values(), *self._probes]:
            if sender.is_busy:
                sender.used_at_s = now_s
                if now_s >= sender.deadline_s:
                    sender.expire()
            elif not sender.is_open or now_s - sender.used_at_s >= self._options.idle_s:
                sender.close()
                if self._senders.get(sender.number) is sender:
                    del self._senders[sender.number]
        self._sweeper = None
        if self._senders or self._probes:
            self._start_sweeping()


def _consent(outcome: Outcome, head: bytes, origin: str) -> Allowed | Refused:
    if isinstance(outcome, Answered):
        return read_handshake(outcome.status, fields(head), origin)
    return Refused(f"the sink could not be asked: {describe(outcome)}")
