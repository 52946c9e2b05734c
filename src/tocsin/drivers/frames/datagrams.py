"""The frames door on UDP: one message a datagram, with or without its length in front.

Nothing proves where a datagram came from, and a small one can ask for a large answer. So only hosts
on this machine, or that the operator trusts, are answered. A subscription lives as long as its peer
is heard of: to ask for the very same again renews it, and gets the same reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from tocsin.broker.delivery.trust import is_trusted
from tocsin.drivers.bind_address import host_and_port, why_not
from tocsin.drivers.frames.session import Session
from tocsin.drivers.frames.sparing import Sparing
from tocsin.errors import BadSetting, TocsinError
from tocsin.wire.framing import HEAD, HEAD_BYTES, framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

if TYPE_CHECKING:
    from tocsin.drivers.frames.desk import PerformanceDesk

DATAGRAM_BYTES_MAX: Final = 65_507  # of UDP on IPv4
WAITING_MAX: Final = 4_096  # datagrams that came faster than they are stored; the rest is lost
SWEEP_S: Final = 1.0

Peer = tuple[str, int]


class Visitor:
    """One peer, and where it is."""

    def __init__(self, door: DatagramDoor, peer: Peer) -> None:
        self._door = door
        self._peer = peer
        self.heard_s = 0.0
        self.has_lengths = False  # its datagrams have their length in front, so ours have
        self.session = Session(door.desk, self, peer[0])

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        for message in messages:
            data = framed(message) if self.has_lengths else message
            if len(data) > DATAGRAM_BYTES_MAX:
                data = _too_long(message)
            self._door.send(data, self._peer)
        return True

    async def take(self, datagrams: list[bytes], tell: Callable[[TocsinError], None]) -> None:
        """As the session does, but that a request may come twice where its reply was lost."""
        new: list[bytes] = []
        for data in datagrams:
            self.has_lengths = _has_length(data)
            message = data[HEAD_BYTES:] if self.has_lengths else data
            reply = self._again(message) if b"SubscribeRequest" in message else None
            if reply is None:
                new.append(message)
            else:
                self.send([write(reply)])
        await self.session.take(new, tell)

    def _again(self, message: bytes) -> m.SubscribeReply | None:
        try:
            request = read(message)
        except TocsinError:
            return None  # the session says what is wrong with it
        return self.session.again(request) if isinstance(request, m.SubscribeRequest) else None


class DatagramDoor(asyncio.DatagramProtocol):
    """Datagrams come in here."""

    def __init__(self, desk: PerformanceDesk) -> None:
        self.desk = desk
        self._node = desk.node
        self._loop = desk.node.loop
        self._visitors: dict[Peer, Visitor] = {}
        self._waiting: list[tuple[Peer, bytes]] = []
        self._worker: asyncio.Task[None] | None = None
        self._transport: asyncio.DatagramTransport | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sparing = Sparing(desk.node.note)
        self.address = ""

    async def open(self, address: str) -> None:
        host, port = host_and_port(address)
        try:
            await self._loop.create_datagram_endpoint(lambda: self, (host, port))
        except OSError as error:
            raise BadSetting(
                f"cannot receive datagrams on {address}: {why_not(error)}",
                remedy="Choose another address with --frames HOST:PORT.",
            ) from None
        self.address = address
        self._sweep = self._loop.call_later(SWEEP_S, self._turn)

    async def close(self) -> None:
        for visitor in self._visitors.values():
            visitor.session.end()
            visitor.session.lost()
        self._visitors.clear()
        if self._sweep is not None:
            self._sweep.cancel()
        if self._worker is not None:
            self._worker.cancel()
        if self._transport is not None:
            self._transport.close()
        await asyncio.sleep(0)

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str | int, ...]) -> None:
        peer = str(address[0]), int(address[1])
        if not is_trusted(peer[0], self._node.rules.trusted):
            self._tell("a datagram came from a host that is not in delivery.trusted", peer)
        elif len(self._waiting) >= WAITING_MAX:
            self._tell("datagrams come faster than they can be stored; some are lost", peer)
        else:
            self._waiting.append((peer, data))
            if self._worker is None:
                self._worker = self._loop.create_task(self._work())
            return
        self.desk.datagrams_lost += 1

    def error_received(self, error: Exception) -> None:
        """A peer that we sent to is not there; its lease will end."""

    def send(self, data: bytes, peer: Peer) -> None:
        if self._transport is not None:
            self._transport.sendto(data, peer)

    async def _work(self) -> None:
        """Take what waits, the datagrams of each peer in their order."""
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                by_peer: dict[Peer, list[bytes]] = {}
                for peer, data in waiting:
                    by_peer.setdefault(peer, []).append(data)
                await asyncio.gather(*(self._take(*each) for each in by_peer.items()))
        finally:
            self._worker = None

    async def _take(self, peer: Peer, datagrams: list[bytes]) -> None:
        visitor = self._visitors.get(peer)
        if visitor is None:
            if len(self._visitors) >= self.desk.limits.datagram_subscriptions_max:
                self.desk.datagrams_lost += len(datagrams)
                self._tell("the limit of peers that subscribe by UDP is reached", peer)
                return
            visitor = self._visitors[peer] = Visitor(self, peer)
        visitor.heard_s = self._loop.time()

        def tell(error: TocsinError) -> None:
            self._tell(error.problem, peer, code=error.code, remedy=error.remedy)

        try:
            await visitor.take(datagrams, tell)
        except TocsinError as error:  # nothing of it could be stored
            tell(error)
        if not visitor.session.is_subscribed:
            self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        visitor = self._visitors.pop(peer, None)
        if visitor is not None:
            visitor.session.lost()

    def _turn(self) -> None:
        self._sweep = self._loop.call_later(SWEEP_S, self._turn)
        before_s = self._loop.time() - self.desk.limits.datagram_lease_s
        for peer in [peer for peer, each in self._visitors.items() if each.heard_s < before_s]:
            self._visitors[peer].session.end()
            self._forget(peer)

    def _tell(self, problem: str, peer: Peer, **fields: object) -> None:
        """Anybody can send any number of datagrams: not every one is worth a line."""
        self._sparing.warn(self._loop.time(), problem, peer=f"{peer[0]}:{peer[1]}", **fields)


def _has_length(data: bytes) -> bool:
    return len(data) > HEAD_BYTES and HEAD.unpack_from(data)[0] == len(data) - HEAD_BYTES


def _too_long(message: bytes) -> bytes:
    """What is said in place of a message that no datagram can hold."""
    detail = f"it has {len(message)} bytes, and a datagram holds {DATAGRAM_BYTES_MAX}: ask by TCP"
    said = read(message)
    if isinstance(said, m.EventMessage):
        return write(
            m.EventMessage(said.subscription_id, error="EventTooLong", error_detail=detail)
        )
    assert isinstance(said, m.Reply), "requests of ours are short"
    return write(type(said)(said.request_id, m.FAILURE, detail))


async def listen(desk: PerformanceDesk, address: str) -> DatagramDoor:
    """Take datagrams where the frames door is."""
    door = DatagramDoor(desk)
    await door.open(address)
    return door
