"""Sequences that others send us, as the log keeps them.

A sequence is one entry, and each message that came too early another. Such a message is received
when its entry is on disk, so the sequence's own entry is written only when something was processed
or the sequence was closed.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.session import Session, as_owner, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Runtime, Semaphore
from tocsin.errors import TocsinError, TooMuchKept
from tocsin.event.subscription import Owner
from tocsin.services.soap.call import SoapCall
from tocsin.wire.wsrm import destination
from tocsin.wire.wsrm.destination import Inbound
from tocsin.wire.wsrm.messages import Sequence

PREFIX: Final = "wsrm/in/"
STATE: Final = internal("reliable-messaging")
SEQUENCES_MAX: Final = 1_000
ENDED_MAX: Final = 10_000  # sequences that are over and still known by name
HELD_BYTES_MAX: Final = 4 << 20  # of one sequence
HELD_BYTES_TOTAL_MAX: Final = 32 << 20  # half of what services may keep altogether

_encode = msgspec.msgpack.Encoder().encode


class Held(msgspec.Struct, frozen=True):
    """A message that came before its turn, as it came."""

    number: int
    last: bool
    received_ns: int
    body: bytes
    content_type: str
    soap_action: str
    path: str
    query: str
    base: str
    peer: str
    endpoint: str = "soap"
    owner: Owner | None = None  # who sent it, if they had signed in
    until_ns: int | None = None  # when that credential ends

    def call(self) -> SoapCall:
        return SoapCall(
            body=self.body,
            content_type=self.content_type,
            soap_action=self.soap_action,
            path=self.path,
            query=self.query,
            base=self.base,
            session=as_owner(self.owner, self.endpoint, self.peer, self.until_ns),
        )


decode_held = msgspec.msgpack.Decoder(Held).decode
_decode = msgspec.msgpack.Decoder(Inbound).decode


class LiveSequence:
    """One sequence in use. Whoever changes it holds the lock."""

    __slots__ = ("ack_is_due", "held", "held_bytes", "inbound", "is_over", "lock", "used_ns")

    def __init__(self, inbound: Inbound, runtime: Runtime) -> None:
        self.inbound = inbound
        self.used_ns = inbound.used_ns
        self.lock = Semaphore(runtime)
        self.is_over = False
        self.ack_is_due = False  # an acknowledgement will be sent to where AcksTo points
        self.held: dict[int, bytes] = {}  # the same bytes that the broker has for the log
        self.held_bytes = 0


class Sequences:
    """All of them, by identifier."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._runtime = port.runtime
        self._held_bytes = 0
        self._ended: dict[str, Owner | None] = {}  # whose they were
        self.live: dict[str, LiveSequence] = {}

    def restore(self) -> None:
        """Take up what the last broker here had. What it had processed is not held any more."""
        held: list[tuple[str, Held, bytes]] = []
        for key, value in self._port.own(STATE).kept(PREFIX).items():
            identifier, _, number = key.removeprefix(PREFIX).partition("/")
            if number:
                held.append((identifier, decode_held(value), value))
            else:
                self.live[identifier] = LiveSequence(_decode(value), self._runtime)
        for identifier, message, value in held:
            live = self.live.get(identifier)
            if live is None or message.number <= live.inbound.processed_to:
                self._forget(f"{PREFIX}{identifier}/{message.number}")
                continue
            came = Sequence(live.inbound.rm, identifier, message.number, message.last)
            live.inbound = destination.received(live.inbound, came, message.received_ns)
            live.used_ns = max(live.used_ns, message.received_ns)
            self._holds(live, message.number, value)

    @property
    def is_full(self) -> bool:
        return len(self.live) >= SEQUENCES_MAX

    def find(self, identifier: str, session: Session) -> LiveSequence | None:
        """The sequence, if the sender is who began it."""
        found = self.live.get(identifier)
        return found if found is not None and _is_of(found.inbound.owner, session) else None

    def has_ended(self, identifier: str, session: Session) -> bool:
        """True if it was here, not too long ago, and the sender's own."""
        return identifier in self._ended and _is_of(self._ended[identifier], session)

    async def begin(self, inbound: Inbound) -> None:
        await self._port.keep(STATE, PREFIX + inbound.identifier, _encode(inbound))
        self.live[inbound.identifier] = LiveSequence(inbound, self._runtime)

    async def save(self, live: LiveSequence, changed: Inbound) -> None:
        """Change a sequence, on disk first."""
        await self._port.keep(STATE, PREFIX + changed.identifier, _encode(changed))
        live.inbound = changed

    async def hold(self, live: LiveSequence, came: Sequence, call: SoapCall, now_ns: int) -> bool:
        """Keep a message for later; False if there is no room for it."""
        if (
            live.held_bytes + len(call.body) > HELD_BYTES_MAX
            or self._held_bytes + len(call.body) > HELD_BYTES_TOTAL_MAX
        ):
            return False
        session = call.session
        message = Held(
            number=came.number,
            last=came.last,
            received_ns=now_ns,
            body=call.body,
            content_type=call.content_type,
            soap_action=call.soap_action,
            path=call.path,
            query=call.query,
            base=call.base,
            peer=session.peer,
            endpoint=session.endpoint,
            owner=session.owner if session.is_signed_in else None,
            until_ns=None if session.credential is None else session.credential.expires_ns,
        )
        value = _encode(message)
        try:
            await self._port.keep(STATE, _held_key(live, came.number), value)
        except TooMuchKept:
            return False
        live.inbound = destination.received(live.inbound, came, now_ns)
        self._holds(live, came.number, value)
        return True

    def let_go(self, live: LiveSequence, number: int) -> None:
        """The message was processed, and its sequence's entry on disk says so."""
        size = len(live.held.pop(number, b""))
        live.held_bytes -= size
        self._held_bytes -= size
        self._forget(_held_key(live, number))

    async def end(self, live: LiveSequence) -> None:
        """No trace of it stays, but its name for a while."""
        identifier = live.inbound.identifier
        live.is_over = True
        self.live.pop(identifier, None)
        self._ended[identifier] = live.inbound.owner
        while len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]
        assert not live.held, "what was acknowledged is processed before the end"
        await self._port.keep(STATE, PREFIX + identifier, None)

    def _holds(self, live: LiveSequence, number: int, value: bytes) -> None:
        live.held[number] = value
        live.held_bytes += len(value)
        self._held_bytes += len(value)

    def _forget(self, key: str) -> None:
        """Remove an entry that means nothing any more; nobody waits for that."""
        if not self._runtime.is_stopping:
            self._runtime.spawn(self._remove(key))

    async def _remove(self, key: str) -> None:
        try:
            await self._port.keep(STATE, key, None)
        except TocsinError:
            return  # what could not be removed is removed after the next start


def _is_of(owner: Owner | None, session: Session) -> bool:
    return not session.is_signed_in if owner is None else session.is_owner(owner)


def _held_key(live: LiveSequence, number: int) -> str:
    return f"{PREFIX}{live.inbound.identifier}/{number}"
