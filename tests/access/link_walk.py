"""Every message of a link between brokers, as the first one and after a handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import get_args

from refusing import Refusing

from tocsin.access.session import internal
from tocsin.errors import NotAllowed
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


class Neighbour:
    """One connection to the broker, by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._messages = LinkReader()
        self._read: list[LinkMessage] = []

    @classmethod
    async def connect(cls, broker: Refusing) -> Neighbour:
        host, _, port = broker.link.address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    @classmethod
    async def dialled(cls, broker: Refusing) -> Neighbour:
        """The broker connects, as to a peer of its settings, but without their pauses."""
        came: asyncio.Queue[Neighbour] = asyncio.Queue()
        server = await asyncio.start_server(lambda *way: came.put_nowait(cls(*way)), "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()[:2]
        address, service = f"{host}:{port}", _service(broker)
        connector = service._dialler._connector
        await connector.connect(address, lambda transport: service._open(transport, address))
        neighbour = await asyncio.wait_for(came.get(), ENOUGH_S)
        server.close()
        return neighbour

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

    async def is_refused(self) -> bool:
        """True if it is told that it may not, and is cut off."""
        refusal: LinkMessage | None = None
        while (message := await self.next()) is not None:
            refusal = message
        return isinstance(refusal, m.Refuse) and refusal.code == NotAllowed.code

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


async def _walk(broker: Refusing, connect: Callable[[Refusing], Awaitable[Neighbour]]) -> list[str]:
    known = {*get_args(m.Message), *get_args(d.DiscoveryMessage)}
    assert {type(each) for each in LATER} == known - OF_THE_CONNECTION
    not_refused: list[str] = []
    for message in FIRST:
        neighbour = await connect(broker)
        neighbour.send(message)
        if not await neighbour.is_refused():
            not_refused.append(f"first {type(message).__name__}")
        neighbour.close()
    for message in LATER:
        neighbour = await connect(broker)
        with broker.allowing():
            await neighbour.shake_hands()
            await _is_up(broker)
        stored = broker.stored()
        neighbour.send(message)
        if not await neighbour.is_refused() or broker.stored() != stored:
            not_refused.append(type(message).__name__)
        neighbour.close()
        await _forget(broker)
    return not_refused


async def _is_up(broker: Refusing) -> None:
    while _neighbour(broker) is None:
        await asyncio.sleep(0.001)


async def _forget(broker: Refusing) -> None:
    """So that what is stored afterwards is what was before."""
    service, port, session = _service(broker), broker.app.port, internal("test")
    while _neighbour(broker) is not None:
        await asyncio.sleep(0.001)
    await service.forget(session, NEIGHBOUR)
    for key in port.own(session).kept(TABLES):
        await port.keep(session, key, None)


def _neighbour(broker: Refusing) -> Connection | None:
    known = _service(broker).neighbours.find(NEIGHBOUR)
    return None if known is None else known.connection


def _service(broker: Refusing) -> LinkService:
    assert broker.app.links is not None
    return broker.app.links.service
