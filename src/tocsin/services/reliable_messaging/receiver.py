"""The receiving end of WS-ReliableMessaging, before every service.

A message with a Sequence header is processed once and in order, whoever its service is. It is
acknowledged when its effect, or the message itself, is on disk. An acknowledgement never comes
before that: the number is written down after what it stands for. In between, a crash makes the
message come again; a notification is then known by its id, which every repetition has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from tocsin.access.decision import Action
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Signal, Tasks, Timer, new_uuid
from tocsin.errors import ShuttingDown, TocsinError, TooMuchKept
from tocsin.event.instant import NS_PER_S
from tocsin.services.reliable_messaging.ack_sender import AckSender
from tocsin.services.reliable_messaging.messages import content_of, identified, outcome_of, reply_of
from tocsin.services.reliable_messaging.sequences import LiveSequence, Sequences, decode_held
from tocsin.services.soap.call import ACCEPTED, Handlers, Reply, Request, SoapCall
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.services.soap.dispatcher import Process
from tocsin.wire.soap.addressing import EndpointReference, reference_headers
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSRM10, WSRM11
from tocsin.wire.wsrm import destination, faults
from tocsin.wire.wsrm.destination import Decision, Inbound
from tocsin.wire.wsrm.faults import PeerVersions
from tocsin.wire.wsrm.messages import (
    VERSIONS,
    Blocks,
    CloseSequence,
    CloseSequenceResponse,
    CreateSequence,
    CreateSequenceResponse,
    Sequence,
    TerminateSequence,
    TerminateSequenceResponse,
    action,
)
from tocsin.wire.wsrm.read import NOTHING, read_blocks
from tocsin.wire.wsrm.write import write_acknowledgement

LEASE_NS_MAX: Final = 7 * 86_400 * NS_PER_S
IDLE_NS_MAX: Final = 3_600 * NS_PER_S  # a publisher that was silent so long begins a new sequence
SWEEP_S: Final = 5.0

Read = Callable[[SoapCall], Request]


class ReliableReceiver:
    """Stands between the dispatcher and its services."""

    def __init__(self, port: BrokerPort, consumers: ConsumerRules) -> None:
        self._port = port
        self._runtime = port.runtime
        self._consumers = consumers
        self._sequences = Sequences(port)
        self._acks = AckSender(port.runtime)
        self._read: Read | None = None
        self._process: Process | None = None
        self._tasks = Tasks(port.runtime)
        self._sweeper: Timer | None = None
        # Messages about sequences are in none, whatever their header says.
        self._lifecycle: Handlers = {
            (WSRM11, "CloseSequence"): self.close_sequence,
            **{(rm, "CreateSequence"): self.create for rm in VERSIONS},
            **{(rm, "TerminateSequence"): self.terminate for rm in VERSIONS},
            **{(rm, "AckRequested"): self.ack_requested for rm in VERSIONS},
            **{(rm, "SequenceAcknowledgement"): self.acknowledgement for rm in VERSIONS},
        }
        self.handlers: Handlers = {
            **self._lifecycle,
            (WSRM10, "LastMessage"): self.last_message,
        }

    def open(self, read: Read, process: Process) -> None:
        """Begin: `read` understands a stored message again, and `process` hands it on."""
        self._read, self._process = read, process
        self._sequences.restore()
        self._sweep()

    def close(self) -> None:
        """Stop; everything is on disk."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._acks.close()
        self._tasks.cancel()

    # What every message passes

    async def through(self, request: Request, process: Process) -> Reply:
        """Process a message now, later or never, and acknowledge it."""
        blocks = read_blocks(request.envelope)
        if blocks is NOTHING:
            return await process(request)
        if blocks.sequence is None or request.name in self._lifecycle:
            for asked in blocks.asked:
                self._find(asked.rm, asked.identifier, request)
            reply = await process(request)
            return self._acknowledging(reply, replace(blocks, sequence=None))
        # A peer that hangs up must not stop halfway what concerns those after it.
        work = partial(self._in_sequence, request, blocks, blocks.sequence, process)
        return await self._to_its_end(work)

    async def _to_its_end(self, work: Callable[[], Awaitable[Reply]]) -> Reply:
        """Run it as a task of its own, which goes on if whoever waits for it is cancelled."""
        done = self._runtime.signal()
        stopping = ShuttingDown("the broker is stopping", remedy="Send it again when it is back.")
        # Also if it is cancelled, and does not answer: nobody shall wait for ever.
        self._tasks.spawn(self._answer(done, work), lambda: done.answer(stopping))
        result: Reply | _Raised = await done
        if isinstance(result, _Raised):
            raise result.error
        return result

    async def _in_sequence(
        self, request: Request, blocks: Blocks, came: Sequence, process: Process
    ) -> Reply:
        live = self._find(came.rm, came.identifier, request)
        for asked in blocks.asked:
            self._find(asked.rm, asked.identifier, request)
        try:
            async with live.lock:
                self._check_is_there(live, request)
                reply = await self._take(live, came, request, process)
        except SoapFault as fault:
            fault.headers += self._acknowledgements([live])
            raise
        if destination.next_held(live.inbound) is not None:
            self._spawn(partial(self._catch_up, live))
        return self._acknowledging(reply, blocks)

    async def _take(
        self, live: LiveSequence, came: Sequence, request: Request, process: Process
    ) -> Reply:
        decision = destination.arrive(live.inbound, came, request.envelope.soap)
        live.used_ns = now_ns = self._runtime.now_ns()
        if decision is Decision.HOLD and not await self._sequences.hold(
            live, came, request.call, now_ns
        ):
            decision = Decision.NO_ROOM
        if decision is Decision.NO_ROOM:
            self._runtime.note(
                "warning",
                "a message came too early and there is no room to hold it",
                sequence=came.identifier,
                number=came.number,
                processed_to=live.inbound.processed_to,
            )
        if decision is not Decision.PROCESS:
            return ACCEPTED
        outcome = await outcome_of(process, identified(request, came))
        done = destination.received(live.inbound, came, now_ns)
        await self._sequences.save(live, destination.processed(done, came.number))
        if isinstance(outcome, SoapFault):
            raise outcome
        return outcome

    async def _catch_up(self, live: LiveSequence) -> None:
        """Process what was held and whose turn has come."""
        while True:
            async with live.lock:
                if live.is_over or not await self._process_next(live):
                    return

    async def _process_next(self, live: LiveSequence) -> bool:
        """Process the held message whose turn it is; False if there is none, or not yet."""
        number = destination.next_held(live.inbound)
        if number is None:
            return False
        came = Sequence(live.inbound.rm, live.inbound.identifier, number)
        held = live.held.get(number)
        try:
            outcome = await outcome_of(self._again, came, held)
        except (SoapFault, TocsinError) as error:
            # It stays where it is; the next message, or the next sweep, tries again.
            self._runtime.note(
                "warning", "a held message could not be processed yet", error=str(error)
            )
            return False
        if isinstance(outcome, SoapFault):
            self._runtime.note("warning", "a held message was refused", error=outcome.reason)
        await self._sequences.save(live, destination.processed(live.inbound, number))
        self._sequences.let_go(live, number)
        return True

    async def _again(self, came: Sequence, held: bytes | None) -> Reply:
        assert self._read is not None
        assert self._process is not None
        if held is None:  # a damaged log does not bring back all that it was given
            raise SoapFault("Sender", "the log has lost the message")
        return await self._process(identified(self._read(decode_held(held).call()), came))

    # Acknowledgements

    def _acknowledging(self, reply: Reply, blocks: Blocks) -> Reply:
        """The reply, with what is due to those who asked or sent."""
        identifiers = [asked.identifier for asked in blocks.asked]
        if blocks.sequence is not None:
            identifiers.insert(0, blocks.sequence.identifier)
        found = [self._sequences.live.get(identifier) for identifier in dict.fromkeys(identifiers)]
        live = [sequence for sequence in found if sequence is not None]
        headers = self._acknowledgements(live)
        if not headers:
            return reply
        if reply.one_way and not reply.headers:
            saying = action(live[0].inbound.rm, "SequenceAcknowledgement")
            return Reply(action=saying, headers=headers, one_way=True)
        return replace(reply, headers=reply.headers + headers)

    def _acknowledgements(self, sequences: Iterable[LiveSequence]) -> bytes:
        """Header blocks for the back channel; where AcksTo is an address, it is written to."""
        headers = b""
        for live in sequences:
            if live.inbound.acks_to is None:
                headers += write_acknowledgement(destination.acknowledgement(live.inbound))
            else:
                self._acks.send_soon(live)
        return headers

    # Services

    async def create(self, request: Request) -> Reply:
        asked = content_of(request, CreateSequence)
        self._check(request)
        to = PeerVersions(asked.rm, request.envelope.soap)
        if self._sequences.is_full:
            raise faults.refused(to, "too many sequences are open; try again later")
        wsa = request.addressing.wsa or asked.acks_to.wsa
        acks_to = self._acks_to(asked.acks_to, to, request)
        now_ns = self._runtime.now_ns()
        lease_ns = min(asked.lease_ns or LEASE_NS_MAX, LEASE_NS_MAX)
        inbound = Inbound(
            identifier=f"urn:uuid:{new_uuid(self._runtime)}",
            rm=asked.rm,
            soap=request.envelope.soap,
            wsa=wsa,
            acks_to=acks_to,
            acks_references=(reference_headers(asked.acks_to, wsa),) if acks_to else (),
            expires_ns=now_ns + lease_ns,
            used_ns=now_ns,
            owner=request.session.owner if request.session.is_signed_in else None,
        )
        try:
            await self._sequences.begin(inbound)
        except TooMuchKept as error:
            raise faults.refused(to, error.problem) from error
        # An offer of a sequence for our answers is not taken: they go back as they always do.
        made = CreateSequenceResponse(asked.rm, inbound.identifier, lease_ns, "NoDiscard")
        return reply_of(made)

    def _acks_to(
        self, reference: EndpointReference, to: PeerVersions, request: Request
    ) -> str | None:
        if reference.is_anonymous:
            return None
        if reference.is_none:
            raise faults.refused(
                to, "AcksTo is the wsa:none address: acknowledgements need a real one"
            )
        try:
            self._consumers.check(reference.address, request.session.peer)
        except TocsinError as error:
            raise faults.refused(to, f"AcksTo: {error.problem}") from error
        return reference.address

    async def close_sequence(self, request: Request) -> Reply:
        asked = content_of(request, CloseSequence)
        live = self._find(asked.rm, asked.identifier, request)
        async with live.lock:
            self._check_is_there(live, request)
            await self._shut(live)
            headers = self._acknowledgements([live])
        reply = reply_of(CloseSequenceResponse(asked.rm, asked.identifier))
        return replace(reply, headers=headers)

    async def terminate(self, request: Request) -> Reply:
        asked = content_of(request, TerminateSequence)
        live = self._find(asked.rm, asked.identifier, request)
        async with live.lock:
            self._check_is_there(live, request)
            await self._shut(live)
            await self._sequences.end(live)
        if asked.rm == WSRM10:
            return ACCEPTED
        reply = reply_of(TerminateSequenceResponse(asked.rm, asked.identifier))
        return replace(reply, headers=self._acknowledgements([live]))

    async def _shut(self, live: LiveSequence) -> None:
        """Take nothing more, and process what was acknowledged, gaps or not."""
        if not live.inbound.closed:
            await self._sequences.save(live, destination.closing(live.inbound))
        while await self._process_next(live):
            pass
        if live.held:
            raise SoapFault("Receiver", "messages of the sequence still wait; try again later")

    async def ack_requested(self, request: Request) -> Reply:
        """Nothing but the question; `through` answers it."""
        self._check(request)
        return ACCEPTED

    async def last_message(self, request: Request) -> Reply:
        """1.0's way to name the last number without saying anything."""
        self._check(request)
        if read_blocks(request.envelope).sequence is None:
            raise faults.required(PeerVersions(WSRM10, request.envelope.soap))
        return ACCEPTED

    async def acknowledgement(self, request: Request) -> Reply:
        """Acknowledgements of what we send come on the back channel; by themselves they are of
        sequences that nobody here knows."""
        self._check(request)
        for came in read_blocks(request.envelope).acknowledgements:
            raise faults.unknown(PeerVersions(came.rm, request.envelope.soap), came.identifier)
        return ACCEPTED

    def _find(self, rm: str, identifier: str, request: Request) -> LiveSequence:
        self._check(request)
        live = self._sequences.find(identifier, request.session)
        is_over = live is not None and self._has_passed(live.inbound.expires_ns)
        if live is not None and live.inbound.rm == rm and not is_over:
            return live
        to = PeerVersions(rm, request.envelope.soap)
        if is_over or self._sequences.has_ended(identifier, request.session):
            raise faults.terminated(to, identifier)
        raise faults.unknown(to, identifier)

    def _check(self, request: Request) -> None:
        """Raise NotAllowed unless the sender may publish here. What a message of the sequence asks
        for is decided again, when it is processed."""
        session = request.session
        self._port.check(session, Action.PUBLISH, f"endpoint/{session.endpoint}")

    def _check_is_there(self, live: LiveSequence, request: Request) -> None:
        """It may have ended while somebody waited for it."""
        if live.is_over:
            to = PeerVersions(live.inbound.rm, request.envelope.soap)
            raise faults.terminated(to, live.inbound.identifier)

    # Time

    def _sweep(self) -> None:
        for live in list(self._sequences.live.values()):
            if self._has_passed(live.inbound.expires_ns):
                self._spawn(partial(self._give_up, live, "it expired"))
            elif self._has_passed(live.used_ns + IDLE_NS_MAX):
                self._spawn(partial(self._give_up, live, "nothing came for a long time"))
            elif destination.next_held(live.inbound) is not None and live.lock.is_free:
                self._spawn(partial(self._catch_up, live))
        self._sweeper = self._runtime.call_later(SWEEP_S, self._sweep)

    def _has_passed(self, moment_ns: int) -> bool:
        """Never while the clock is in doubt."""
        return not self._port.is_clock_in_doubt and self._runtime.now_ns() >= moment_ns

    async def _give_up(self, live: LiveSequence, why: str) -> None:
        async with live.lock:
            if live.is_over:
                return
            gaps = len(live.inbound.received) > 1
            await self._shut(live)
            await self._sequences.end(live)
        self._runtime.note(
            "info", "a sequence ended", sequence=live.inbound.identifier, reason=why, gaps=gaps
        )

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.spawn(self._noting_bugs(work))

    async def _noting_bugs(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (SoapFault, TocsinError):
            return  # the next message, or the next sweep, tries again
        except Exception as error:
            self._runtime.note("error", "a reliable message failed", error=repr(error))

    async def _answer(self, done: Signal, work: Callable[[], Awaitable[Reply]]) -> None:
        try:
            done.answer(await work())
        except (SoapFault, TocsinError) as error:
            done.answer(_Raised(error))
        except Exception as error:
            self._runtime.note("error", "a reliable message failed", error=repr(error))
            done.answer(_Raised(error))


class _Raised:
    """What a task raised, for whoever waits for it."""

    def __init__(self, error: Exception) -> None:
        self.error = error
