"""The sending end of WS-ReliableMessaging: delivered is what the consumer has acknowledged.

Each subscription that asked for it has a sequence of its own. The number of a message is on disk
before the message leaves, so that after a crash it is sent again under the same one, and a consumer
that keeps its side takes each event once. Retransmission is the lane's ordinary retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from tocsin.access.session import internal
from tocsin.broker.delivery.answer import excerpt, retry_after_s
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.delivery.soap_messages import RenderCache, envelope, soap_template
from tocsin.broker.effects import Push
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import HttpAnswer, Semaphore, Tasks, new_uuid
from tocsin.errors import NoSuchSubscription, PeerFailed, ShuttingDown, TocsinError
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import EndpointReference, anonymous, write_headers
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSA2005, WSA200408, WSRM10, WSRM11
from tocsin.wire.wsrm import source
from tocsin.wire.wsrm.faults import ENDS_SEQUENCE
from tocsin.wire.wsrm.messages import (
    AckRequested,
    Content,
    CreateSequence,
    CreateSequenceResponse,
    TerminateSequence,
    action,
)
from tocsin.wire.wsrm.read import fault_name, read_blocks, read_content
from tocsin.wire.wsrm.source import Outbound
from tocsin.wire.wsrm.write import write_ack_requested, write_content, write_sequence

PREFIX: Final = "wsrm/out/"
SWEEP_S: Final = 1.0
SEQUENCES_PER_PUSH_MAX: Final = 2  # the one that the consumer forgot, and the one after it
# A sequence is left before its time is over, so that no message finds it expired on arrival.
LEASE_USED: Final = 0.9
USUAL_WSA: Final = {WSRM10: WSA200408, WSRM11: WSA2005}
SESSION: Final = internal("reliable-messaging")


Done = Callable[[int, Outcome], None]


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence, with its consumer's address and versions."""

    sink: str
    soap: str
    wsa: str
    references: str
    outbound: Outbound


class _Forgotten(Exception):
    """The consumer does not know the sequence any more."""


class _NoSequence(Exception):
    """There is no sequence to send on; the outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Sending).decode


class ReliableSender:
    """Sends to consumers that acknowledge by number."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._own = port.own(SESSION)
        self._runtime = port.runtime
        self._renderings = RenderCache()
        self._sendings: dict[str, Sending] = {  # by the subscription's id
            key.removeprefix(PREFIX): _decode(value)
            for key, value in self._own.kept(PREFIX).items()
        }
        self._locks: dict[str, Semaphore] = {}
        self._tasks = Tasks(port.runtime)
        self._interest = -1
        self._sweeper = self._runtime.call_later(SWEEP_S, self._sweep)

    def send(self, push: Push, done: Done) -> None:
        """Send; `done(push.lane, outcome)` is called once, later."""
        self._tasks.spawn(self._send(push, done))

    def close(self) -> None:
        """Stop. What was under way is sent again after the next start, under its number."""
        self._sweeper.cancel()
        self._tasks.cancel()

    async def _send(self, push: Push, done: Done) -> None:
        outcome: Outcome
        try:
            # A subscription that just moved to another sink may still have a push under way.
            async with self._lock(push.subscription.id):
                outcome = await self._attempt(push)
        except _NoSequence as error:
            outcome = error.outcome
        except PeerFailed as error:
            outcome = Failed(error.problem)
        except ShuttingDown:
            return  # the lane is gone
        except (TocsinError, SoapFault) as error:
            outcome = Failed(str(error), reachable=True)
        except Exception as error:
            # A bug, but a lane that gets no outcome would wait for ever.
            self._runtime.note("error", "a reliable push failed", error=repr(error))
            outcome = Failed(f"sending failed: {error!r}", reachable=True)
        done(push.lane, outcome)

    async def _attempt(self, push: Push) -> Outcome:
        for _ in range(SEQUENCES_PER_PUSH_MAX):
            sending, number = await self._placed(push)
            try:
                return await self._deliver(push, sending, number)
            except _Forgotten:
                await self._forget(push.subscription.id)
        return Failed("the consumer forgets its sequences as soon as they begin", reachable=True)

    async def _placed(self, push: Push) -> tuple[Sending, int]:
        """The sequence, and the message's number in it, both on disk."""
        identity = push.subscription.id
        events = (push.events[0].seq, push.events[-1].seq)
        sending = self._sendings.get(identity)
        now_ns = self._runtime.now_ns()
        if sending is not None:
            outbound = sending.outbound
            number = source.number_of(outbound, events)
            if sending.sink == push.sink and number is not None:
                return sending, number
            if sending.sink != push.sink or not source.has_room(outbound, now_ns):
                self._tasks.spawn(self._terminate(sending))
                sending = None
        if sending is None:
            sending = await self._begin(push)
        placed = source.place(sending.outbound, events)
        sending = replace(sending, outbound=placed)
        await self._keep(identity, sending)
        return sending, placed.last

    async def _begin(self, push: Push) -> Sending:
        terms = push.subscription.soap
        assert terms is not None
        wsa = terms.wsa or USUAL_WSA[terms.reliable]
        asked = CreateSequence(terms.reliable, EndpointReference(anonymous(wsa), wsa))
        answer = await self._ask(push.sink, terms, asked, push.timeout_s)
        made = _created(answer)
        lease_ns = made.lease_ns
        now_ns = self._runtime.now_ns()
        outbound = Outbound(
            identifier=made.identifier,
            rm=terms.reliable,
            expires_ns=None if lease_ns is None else now_ns + int(lease_ns * LEASE_USED),
        )
        return Sending(
            sink=push.sink, soap=terms.soap, wsa=wsa, references=terms.references, outbound=outbound
        )

    async def _deliver(self, push: Push, sending: Sending, number: int) -> Outcome:
        outbound = sending.outbound
        head = soap_template(push.subscription)
        blocks = write_sequence(source.header(outbound, number), sending.soap)
        blocks += write_ack_requested(AckRequested(outbound.rm, outbound.identifier))
        lines, message = envelope(head, push.events, self._renderings, blocks)
        headers = {
            "tocsin-subscription": push.subscription.id,
            "tocsin-sequence": str(push.events[0].seq),
            **_fields(lines),
        }
        answer = await self._runtime.post(push.sink, message, headers, timeout_s=push.timeout_s)
        reply = _envelope(answer)
        if reply is not None:
            outbound = _acknowledged(outbound, reply)
            self._sendings[push.subscription.id] = replace(sending, outbound=outbound)
        now_s = self._runtime.now_ns() / 1e9
        return judged(answer, reply, source.is_acknowledged(outbound, number), now_s)

    # Ends

    def _sweep(self) -> None:
        """End the sequences whose subscription is over."""
        if self._own.interest.version != self._interest:
            self._interest = self._own.interest.version
            for identity in list(self._sendings):
                try:
                    self._port.view(SESSION, identity)
                except NoSuchSubscription:
                    self._tasks.spawn(self._end(identity))
            for identity in self._locks.keys() - self._sendings.keys():
                if self._locks[identity].is_free:
                    del self._locks[identity]
        self._sweeper = self._runtime.call_later(SWEEP_S, self._sweep)

    def _lock(self, identity: str) -> Semaphore:
        return self._locks.setdefault(identity, Semaphore(self._runtime))

    async def _end(self, identity: str) -> None:
        async with self._lock(identity):
            sending = self._sendings.get(identity)
            if sending is not None:
                await self._forget(identity)
                await self._terminate(sending)

    async def _terminate(self, sending: Sending) -> None:
        """Send TerminateSequence; if that fails, the sequence expires at the consumer."""
        outbound = sending.outbound
        ending = TerminateSequence(outbound.rm, outbound.identifier, outbound.last or None)
        terms = SoapTerms(
            spec="", soap=sending.soap, wsa=sending.wsa, references=sending.references
        )
        try:
            await self._ask(sending.sink, terms, ending)
        except TocsinError as error:
            self._runtime.note(
                "info",
                "the end of a sequence could not be announced to the consumer",
                error=error.problem,
            )

    # What both need

    async def _ask(
        self, sink: str, terms: SoapTerms, content: Content, timeout_s: float = 10.0
    ) -> HttpAnswer:
        wsa = terms.wsa or USUAL_WSA[content.rm]
        wsa_action = action(content.rm, type(content).__name__)
        header = write_headers(
            wsa,
            action=wsa_action,
            to=sink,
            message_id=f"urn:uuid:{new_uuid(self._runtime)}",
            reply_to=anonymous(wsa),
        )
        header += terms.references.encode()
        message = write_envelope(terms.soap, header=header, body=write_content(content, wsa))
        headers = dict(http_headers(terms.soap, wsa_action))
        return await self._runtime.post(sink, message, headers, timeout_s=timeout_s)

    async def _keep(self, identity: str, sending: Sending) -> None:
        await self._put(identity, _encode(sending))
        self._sendings[identity] = sending

    async def _forget(self, identity: str) -> None:
        await self._put(identity, None)
        self._sendings.pop(identity, None)

    async def _put(self, identity: str, value: bytes | None) -> None:
        await self._port.keep(SESSION, PREFIX + identity, value)


def judged(
    answer: HttpAnswer, reply: Envelope | None, is_acknowledged: bool, now_s: float
) -> Outcome:
    """What became of a message; _Forgotten if its sequence is of no more use."""
    fault = None if reply is None else fault_name(reply)
    if fault in ENDS_SEQUENCE:
        raise _Forgotten
    if not 200 <= answer.status < 300:
        asked = answer.headers.get("retry-after")
        wait_s = None if asked is None else retry_after_s(asked, now_s)
        return Answered(answer.status, wait_s, excerpt(answer.body))
    if is_acknowledged:
        return Answered(answer.status)
    return Failed("the consumer answered, and did not acknowledge the number", reachable=True)


def _acknowledged(outbound: Outbound, reply: Envelope) -> Outbound:
    for acknowledgement in read_blocks(reply).acknowledgements:
        outbound = source.acknowledge(outbound, acknowledgement, reply.soap)
    return outbound


def _envelope(answer: HttpAnswer) -> Envelope | None:
    """The message in an answer, if there is one that can be read."""
    if not answer.body:
        return None
    try:
        return read_envelope(answer.body)
    except (SoapFault, TocsinError):
        return None


def _created(answer: HttpAnswer) -> CreateSequenceResponse:
    reply = _envelope(answer)
    if reply is not None and reply.content is not None and 200 <= answer.status < 300:
        made = read_content(reply)
        if isinstance(made, CreateSequenceResponse):
            return made
    fault = fault_name(reply) if reply is not None else None
    why = fault or f"HTTP {answer.status}"
    raise _NoSequence(Failed(f"the consumer did not start a sequence: {why}", reachable=True))


def _fields(lines: bytes) -> dict[str, str]:
    pairs = (line.partition(": ") for line in lines.decode("latin-1").split("\r\n") if line)
    return {name: value for name, _, value in pairs}
