"""Sequences that others send us, as the log keeps them.

A sequence is one entry, and each message that came too early another. Such a message is received
when its entry is on disk, so the sequence's own entry is written only when something was processed
or the sequence was closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from tocsin.drivers.soap.call import SoapCall
from tocsin.errors import TooMuchKept
from tocsin.wire.wsrm import destination
from tocsin.wire.wsrm.destination import Inbound
from tocsin.wire.wsrm.messages import Sequence

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

PREFIX: Final = "wsrm/in/"
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

    def call(self) -> SoapCall:
        return SoapCall(
            body=self.body,
            content_type=self.content_type,
            soap_action=self.soap_action,
            path=self.path,
            query=self.query,
            base=self.base,
            peer=self.peer,
        )


decode_held = msgspec.msgpack.Decoder(Held).decode
_decode = msgspec.msgpack.Decoder(Inbound).decode


class Live:
    """One sequence in use. Whoever changes it holds the lock."""

    __slots__ = ("held", "held_bytes", "inbound", "is_over", "lock", "telling", "used_ns")

    def __init__(self, inbound: Inbound) -> None:
        self.inbound = inbound
        self.used_ns = inbound.used_ns
        self.lock = asyncio.Lock()
        self.is_over = False
        self.telling = False  # an acknowledgement is on its way to where AcksTo points
        self.held: dict[int, bytes] = {}  # the same bytes that the broker has for the log
        self.held_bytes = 0


class Sequences:
    """All of them, by identifier."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._held_bytes = 0
        self._ended: dict[str, None] = {}
        self.live: dict[str, Live] = {}

    def restore(self) -> None:
        """Take up what the last broker here had. What it had processed is not held any more."""
        held: list[tuple[str, Held, bytes]] = []
        for key, value in self._node.broker.kept(PREFIX).items():
            identifier, _, number = key.removeprefix(PREFIX).partition("/")
            if number:
                held.append((identifier, decode_held(value), value))
            else:
                self.live[identifier] = Live(_decode(value))
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

    def has_ended(self, identifier: str) -> bool:
        """True if it was here, not too long ago."""
        return identifier in self._ended

    async def begin(self, inbound: Inbound) -> None:
        await self._keep(PREFIX + inbound.identifier, _encode(inbound))
        self.live[inbound.identifier] = Live(inbound)

    async def save(self, live: Live, changed: Inbound) -> None:
        """Change a sequence, on disk first."""
        await self._keep(PREFIX + changed.identifier, _encode(changed))
        live.inbound = changed

    async def hold(self, live: Live, came: Sequence, call: SoapCall, now_ns: int) -> bool:
        """Keep a message for later; False if there is no room for it."""
        if (
            live.held_bytes + len(call.body) > HELD_BYTES_MAX
            or self._held_bytes + len(call.body) > HELD_BYTES_TOTAL_MAX
        ):
            return False
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
            peer=call.peer,
        )
        value = _encode(message)
        try:
            await self._keep(_held_key(live, came.number), value)
        except TooMuchKept:
            return False
        live.inbound = destination.received(live.inbound, came, now_ns)
        self._holds(live, came.number, value)
        return True

    def let_go(self, live: Live, number: int) -> None:
        """The message was processed, and its sequence's entry on disk says so."""
        size = len(live.held.pop(number, b""))
        live.held_bytes -= size
        self._held_bytes -= size
        self._forget(_held_key(live, number))

    async def end(self, live: Live) -> None:
        """No trace of it stays, but its name for a while."""
        identifier = live.inbound.identifier
        live.is_over = True
        self.live.pop(identifier, None)
        self._ended[identifier] = None
        while len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]
        assert not live.held, "what was acknowledged is processed before the end"
        await self._keep(PREFIX + identifier, None)

    def _holds(self, live: Live, number: int, value: bytes) -> None:
        live.held[number] = value
        live.held_bytes += len(value)
        self._held_bytes += len(value)

    async def _keep(self, key: str, value: bytes | None) -> None:
        broker = self._node.broker
        await self._node.ask(lambda token, now_ns: broker.keep(key, value, token, now_ns))

    def _forget(self, key: str) -> None:
        """Remove an entry that means nothing any more; nobody waits for that."""
        node = self._node
        if not node.stopping:
            node.broker.keep(key, None, _Nobody(), node.now_ns())
            node.kick()


class _Nobody:
    """Who asks for something and needs no answer."""

    def answer(self, result: object) -> None:
        """Nothing: what could not be removed is removed after the next start."""


def _held_key(live: Live, number: int) -> str:
    return f"{PREFIX}{live.inbound.identifier}/{number}"
