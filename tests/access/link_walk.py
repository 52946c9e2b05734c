"""Every message of a link between brokers, as the first one and after a handshake."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import get_args

from refusing import CUT, NO_CONNECTION, Refusing

from tocsin.access.session import internal
from tocsin.errors import PeerFailed
from tocsin.event.control_topic import NODES
from tocsin.event.event import Event
from tocsin.services.link.connection import Connection
from tocsin.services.link.performer import TABLES
from tocsin.services.link.service import LinkService
from tocsin.wire.link import discovery_messages as d
from tocsin.wire.link import messages as m
from tocsin.wire.link.codec import LinkMessage, LinkReader, encode

NEIGHBOUR = "neighbour"
ENOUGH_S = 10.0
OF_THE_CONNECTION = {m.Heartbeat, m.HeartbeatReply}  # they ask for nothing but an echo
PROOF, PROVEN = m.Heartbeat(7), m.HeartbeatReply(7)
HELLO = m.Hello(m.PROTOCOL_VERSION, NEIGHBOUR, "log", m.DATA_FORMAT, "test", "instance")
EVENT = m.Relayed(NEIGHBOUR, "log", 1, 1, 0, Event("e", "/s", "t", topic="a"))
RESULT = d.Result(adv_id="a", broker=NEIGHBOUR, resource_id="r", attributes={}, as_of_ns=1)
FIRST: tuple[LinkMessage, ...] = (
    HELLO,
    m.Direct(m.PROTOCOL_VERSION, NEIGHBOUR, "whoever"),
)
LATER: tuple[LinkMessage, ...] = (
    *FIRST,
    m.Welcome(),
    m.IssueToken("5eed"),
    m.TokenKept(),
    m.Refuse("T801", "no"),
    m.Behind({"other": NEIGHBOUR}),
    m.PlacesKept(("whoever",), (NEIGHBOUR,)),
    m.Advertise(NEIGHBOUR, "1", "topic a"),
    m.Unadvertise(NEIGHBOUR, "1"),
    m.Subscribe(NEIGHBOUR, "1", "topic a"),
    m.Unsubscribe(NEIGHBOUR, "1"),
    m.Synced("subscriptions"),
    m.Ignored(1, "T806", "full"),
    m.Reached(NEIGHBOUR, "1", ("other",)),
    m.Forget("other", 1),
    m.Events(1, (EVENT,)),
    m.Acknowledge(1),
    m.NotStored("T403", "the disk is full"),
    m.Resume(),
    m.Handover(NEIGHBOUR, "whoever", "1", 1, 0, (EVENT,)),
    m.HandedOver(NEIGHBOUR, "1", 1, 0),
    m.Control("1", NODES, NEIGHBOUR, "", 7, 1, "find"),
    m.Serves(NEIGHBOUR, 1, ("a-tdn",)),
    m.Bye(),
    d.Advertise(adv_id="a", broker=NEIGHBOUR, resource_id="r", model="static", rows=((),)),
    d.Unadvertise("a", NEIGHBOUR, "r"),
    d.Discover(
        request_id="q",
        host=NEIGHBOUR,
        region=(),
        model="dynamic",
        issued_ns=1,
        shared_until_ns=2,
        expires_ns=3,
        max_age_ns=1,
    ),
    d.Results("q", (RESULT,)),
    d.Done(request_id="q"),
    d.CoverGone("q", d.Cover("c", NEIGHBOUR)),
    d.Cancel("q"),
    d.Update("a", NEIGHBOUR, "r", RESULT, None),
)

Performed = Callable[[], Awaitable[None]]


class Neighbour:
    """One connection to the broker, by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._messages = LinkReader()
        self._read: list[LinkMessage] = []

    @classmethod
    async def connect(cls, broker: Refusing) -> Neighbour:
        return cls(*await broker.open(broker.link.address))

    @classmethod
    async def dialled(cls, broker: Refusing) -> Neighbour:
        """The broker connects, as to a peer of its settings, but without their pauses. Raises
        PeerFailed if it does not."""
        came: asyncio.Queue[Neighbour] = asyncio.Queue()
        server = await asyncio.start_server(
            lambda *way: came.put_nowait(cls(*way)), "127.0.0.1", 0, ssl=broker.far_tls
        )
        port = server.sockets[0].getsockname()[1]
        host = "127.0.0.1" if broker.far_tls is None else "localhost"
        address, service = f"{host}:{port}", service_of(broker)
        connector = service._dialler._connector
        try:
            await connector.connect(address, lambda transport: service._open(transport, address))
            return await asyncio.wait_for(came.get(), ENOUGH_S)
        finally:
            server.close()

    def send(self, *messages: LinkMessage) -> None:
        self._writer.write(b"".join(map(encode, messages)))

    async def next(self) -> LinkMessage | None:
        """The next message; None at the end."""
        while not self._read:
            data = await asyncio.wait_for(self._reader.read(1 << 16), ENOUGH_S)
            if not data:
                return None
            self._read += self._messages.read(data)
        return self._read.pop(0)

    async def until(self, wanted: LinkMessage) -> None:
        while await self.next() != wanted:
            pass

    async def is_refused(self, code: str, performed: Performed) -> bool:
        """True if it is told that it may not, and is cut off. Without a code, if it is cut off
        before anything was said."""
        last: LinkMessage | None = None
        with contextlib.suppress(*CUT):
            for _ in range(2):  # the first shows that what came was read, the second what it did
                self.send(PROOF)
                while (message := await self.next()) != PROVEN:
                    if message is None:
                        raise EOFError
                    last = message
                    if not code:
                        return False
                await performed()
            return False
        return last is None if not code else isinstance(last, m.Refuse) and last.code == code

    async def shake_hands(self) -> None:
        """Until both sides have each other's tables."""
        self.send(HELLO, m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions"))
        await self.until(m.Synced("subscriptions"))

    def close(self) -> None:
        self._writer.close()


async def walk_link(broker: Refusing) -> list[str]:
    """Links that others dial."""
    return await _walk(broker, Neighbour.connect)


async def walk_dialled_link(broker: Refusing) -> list[str]:
    """Links that the broker dials."""
    return await _walk(broker, Neighbour.dialled)


Connect = Callable[[Refusing], Awaitable[Neighbour]]


async def _walk(broker: Refusing, connect: Connect) -> list[str]:
    known = {*get_args(m.Message), *get_args(d.DiscoveryMessage)}
    assert {type(each) for each in LATER} == known - OF_THE_CONNECTION
    if broker.is_cut_off:
        return [type(each).__name__ for each in LATER if not await _is_cut(broker, connect, each)]
    not_refused: list[str] = []
    performed = service_of(broker)._performer.performed
    for message in () if broker.is_allowed_first else FIRST:
        neighbour = await connect(broker)
        neighbour.send(message)
        if not await neighbour.is_refused(broker.refusal[1], performed):
            not_refused.append(f"first {type(message).__name__}")
        neighbour.close()
    for message in LATER:
        with broker.allowing():
            neighbour = await connect(broker)
            await neighbour.shake_hands()
            await is_up(broker)
        stored = broker.stored()
        neighbour.send(message)
        is_refused = await neighbour.is_refused(broker.refusal[1], performed)
        if not is_refused or broker.stored() != stored:
            not_refused.append(type(message).__name__)
        neighbour.close()
        await forget(broker)
    return not_refused


async def _is_cut(broker: Refusing, connect: Connect, message: LinkMessage) -> bool:
    """True if there is no connection for the message."""
    assert broker.refusal == NO_CONNECTION
    try:
        neighbour = await connect(broker)
        neighbour.send(HELLO, message)
        is_cut = await neighbour.is_refused("", service_of(broker)._performer.performed)
    except (*CUT, PeerFailed):
        return True
    neighbour.close()
    return is_cut


async def is_up(broker: Refusing) -> None:
    while _neighbour(broker) is None:
        await asyncio.sleep(0.001)


async def forget(broker: Refusing) -> None:
    """So that what is stored afterwards is what was before."""
    service, port, session = service_of(broker), broker.app.port, internal("test")
    while _neighbour(broker) is not None:
        await asyncio.sleep(0.001)
    await service.forget(session, NEIGHBOUR)
    for key in port.own(session).kept(TABLES):
        await port.keep(session, key, None)


def _neighbour(broker: Refusing) -> Connection | None:
    known = service_of(broker).neighbours.find(NEIGHBOUR)
    return None if known is None else known.connection


def service_of(broker: Refusing) -> LinkService:
    assert broker.app.links is not None
    return broker.app.links.service
