"""Pusher: performs the broker's Push and Handshake effects, over the network and with TLS."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tocsin.broker.delivery.outcome import Answered, Failed, Outcome, describe
from tocsin.broker.delivery.soap_messages import SoapTemplate, envelope
from tocsin.broker.delivery.trust import SinkRules, host_of, parse_sink
from tocsin.broker.effects import Handshake, Push
from tocsin.drivers.peers import plain_address
from tocsin.drivers.push.answer import fields
from tocsin.drivers.push.attentive import Attentive
from tocsin.drivers.push.connection import Familiar
from tocsin.drivers.push.envelope_line import EnvelopeLine
from tocsin.drivers.push.gma_farewell import Farewell
from tocsin.drivers.push.gma_line import GmaLine
from tocsin.drivers.push.guard import ADDRESSES_TRIED_MAX, Guard, Resolver, system_resolver
from tocsin.drivers.push.letterhead import Letterhead, Tails, handshake_request, letterhead, request
from tocsin.drivers.push.letters import Letters
from tocsin.drivers.push.line import LETTERHEADS_MAX, Done, Line, Note
from tocsin.errors import TocsinError
from tocsin.event.subscription import Subscription
from tocsin.wire.cloudevents.webhook import Allowed, Refused, read_handshake

SWEEP_S = 0.25  # how exact deadlines are; one timer for all requests instead of one for each
GOODBYE_LOOK_S = 0.005  # between looks at who has answered it
HANDSHAKE_S = 10.0
HANDSHAKES_MAX = 64  # under way at once
HANDSHAKES_WAITING_MAX = 10_000
ASKERS_MAX = 10_000  # subscriptions that share one question

HandshakeDone = Callable[[str, Allowed | Refused], None]
Send = Callable[[Push, Done], None]


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
        note: Note,
        *,
        resolve: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.loop = loop
        self.guard = Guard(loop, options.rules, resolve or system_resolver(loop))
        self.note = note
        self.clock = clock
        self.familiar: Familiar = {}
        self.open = 0  # connections, those being made among them
        self.turns: deque[asyncio.Future[None]] = deque()  # who waits to make one
        self.farewells: set[Farewell] = set()  # connections that are as good as closed
        self._leaves = False
        self._options = options
        self._tls = tls
        self._tails = Tails()
        self._attentive = Attentive(loop, Letters(self))
        self.reliably: Send | None = None  # to consumers that acknowledge by number
        self.into_boxes: Send | None = None  # to message boxes of this broker
        self._lines: dict[int, Line] = {}
        self._probes: set[Line] = set()
        self._probes_waiting: deque[tuple[str, str, str | None]] = deque()
        self._askers: dict[str, list[tuple[str, HandshakeDone]]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._idle: list[tuple[float, Line]] = []  # as last looked at, the longest idle one last

    def send(self, push: Push, done: Done) -> None:
        """POST the events; `done(push.lane, outcome)` is called once, from a later callback."""
        if self._leaves:
            return  # as what is under way at the end, it is not reported
        line = self._lines.get(push.lane)
        if line is None or line.address != push.sink:
            try:
                line = self._new_line(push)
            except TocsinError as error:
                self.loop.call_soon(done, push.lane, Failed(error.problem))
                return
        if isinstance(line, GmaLine):
            line.used_at_s = self.loop.time()
            line.ask_events(push, done)
            return
        head = line.letterheads.get(push.subscription.id)
        if head is None or head.subscription is not push.subscription:
            try:
                head = _new_letterhead(line, push.subscription)
            except TocsinError as error:
                self.loop.call_soon(done, push.lane, Failed(error.problem))
                return
        now_s = self.loop.time()
        line.used_at_s = now_s
        soap = head.soap
        if soap is not None and not soap.is_plain and self._sent_otherwise(line, soap, push, done):
            return
        asked = request(head, push.events, self._tails, self.clock)
        line.ask(asked, done, now_s + push.timeout_s)

    def _sent_otherwise(self, line: Line, head: SoapTemplate, push: Push, done: Done) -> bool:
        """True for consumers that want more than a POST whose status is the answer."""
        numbered = head.terms.reliable and not isinstance(line, EnvelopeLine)
        if head.terms.box and self.into_boxes is not None:
            self.into_boxes(push, done)
        elif numbered and self.reliably is not None:
            self.reliably(push, done)
        elif head.terms.form == "acked":
            self._attentive.send(push, done)
        elif isinstance(line, EnvelopeLine):
            _, whole = envelope(head, push.events, self._tails.soap)
            line.ask_envelope(whole, head.terms.soap, done, self.loop.time() + push.timeout_s)
        else:
            return False
        return True

    def _new_line(self, push: Push) -> Line:
        """Raises BadSubscription or SinkRefused if the address is none that we push to."""
        is_soap = push.subscription.soap is not None
        sink = parse_sink(push.sink, soap_tcp=is_soap, gma=not is_soap)
        former = self._lines.pop(push.lane, None)
        if former is not None:
            former.hang_up()
        kind = GmaLine if sink.gma else EnvelopeLine if sink.soap_tcp else Line
        line = self._lines[push.lane] = kind(self, push.lane, push.sink, sink)
        self._start_sweeping()
        return line

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
            self._probes_waiting.append((effect.sink, origin, callback))
            self.loop.call_soon(self._start_probes)

    def _start_probes(self) -> None:
        while self._probes_waiting and len(self._probes) < HANDSHAKES_MAX:
            self._probe(*self._probes_waiting.popleft())

    def _probe(self, address: str, origin: str, callback: str | None) -> None:
        try:
            sink = parse_sink(address)
        except TocsinError as error:
            self._tell_askers(address, Refused(error.problem))
            return
        line = Line(self, -1, address, sink)

        def finished(_: int, outcome: Outcome) -> None:
            self._probes.discard(line)
            line.hang_up()
            self._tell_askers(address, _consent(outcome, line.head, origin))
            self._start_probes()

        self._probes.add(line)
        self._start_sweeping()
        asked = handshake_request(sink, origin, callback)
        line.ask((asked, b""), finished, self.loop.time() + HANDSHAKE_S)

    def _tell_askers(self, address: str, answer: Allowed | Refused) -> None:
        for subscription_id, done in self._askers.pop(address):
            done(subscription_id, answer)

    def take_leave(self, lane: int, subscription_id: str) -> None:
        """Nothing more of a subscription goes this way: say so, where there are words for it."""
        line = self._lines.get(lane)
        if isinstance(line, GmaLine):
            line.take_leave(subscription_id)

    async def say_goodbye(self, within_s: float) -> None:
        """Before `close`: send nothing new, and let those go in good order who can be told."""
        self._leaves = True
        for line in self._lines.values():
            if isinstance(line, GmaLine):
                line.hang_up()
        deadline_s = self.loop.time() + within_s
        while self.farewells and self.loop.time() < deadline_s:
            await asyncio.sleep(GOODBYE_LOOK_S)

    def close(self) -> None:
        """Hang up everywhere, at once. What was under way is not reported: it is sent again."""
        self._probes_waiting.clear()
        self._askers.clear()
        for line in [*self._lines.values(), *self._probes]:
            line.hang_up()
        for farewell in list(self.farewells):
            farewell.abort()
        self._lines.clear()
        self._probes.clear()
        self._attentive.close()
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

    # What the lines share.

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
        if len(self.turns) == 1:  # else none is idle: lines close by themselves while others wait
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
        """Those found by one look at all lines serve for many closings."""
        if not self._close_one_of_idle():
            idle = [line for line in self._lines.values() if line.is_idle]
            idle.sort(key=lambda line: -line.used_at_s)
            self._idle = [(line.used_at_s, line) for line in idle]
            self._close_one_of_idle()

    def _close_one_of_idle(self) -> bool:
        while self._idle:
            used_at_s, line = self._idle.pop()
            if line.is_idle and line.used_at_s == used_at_s:
                line.hang_up()
                return True
        return False

    def _start_sweeping(self) -> None:
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        now_s = self.loop.time()
        for line in [*self._lines.values(), *self._probes]:
            if line.is_busy:
                line.used_at_s = now_s
                if now_s >= line.deadline_s:
                    line.expire()
            elif not line.is_open or now_s - line.used_at_s >= self._options.idle_s:
                line.hang_up()
                if self._lines.get(line.number) is line:
                    del self._lines[line.number]
        self._sweeper = None
        if self._lines or self._probes:
            self._start_sweeping()


def _new_letterhead(line: Line, subscription: Subscription) -> Letterhead:
    if len(line.letterheads) >= LETTERHEADS_MAX:
        line.letterheads.clear()
    head = line.letterheads[subscription.id] = letterhead(line.sink, subscription)
    return head


def _consent(outcome: Outcome, head: bytes, origin: str) -> Allowed | Refused:
    if isinstance(outcome, Answered):
        return read_handshake(outcome.status, fields(head), origin)
    return Refused(f"the sink could not be asked: {describe(outcome)}")
