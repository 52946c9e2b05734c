"""Every message that may ask for something, in every role: on TCP, on UDP and by POST /gma."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from typing import get_args

from http_walk import code_in, open_http
from refusing import CUT, NO_CONNECTION, SECRET, Refusing

from tocsin.wire.framing import HEAD, HEAD_BYTES, framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER, PRODUCER
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

ANSWER_S = 10.0
CLOSED_S = 3.0
SILENCE_S = 0.3  # for an answer that does not come
ROLES = (None, PRODUCER, CONSUMER)
# What the archive listener is asked in vain, whoever asks: it only stores events.
ONLY_STORES = ("this is a consumer", "both sides would be")

PARAMETERS = m.Parameters(EventName("Walked"))
EVENT = m.PerformanceEvent(EventName("Walked"), "2000-11-09T21:51:45Z", (m.Element("A", 1),))
OFFER = m.SubscribeRequest(
    "offer", "c1", PARAMETERS, options=m.Options(role=PRODUCER, acknowledge="walker")
)


def requests() -> Iterator[m.Message]:
    """One of each type that the protocol has a reply to; events have a walk of their own."""
    assert set(m.REPLY_TO) == {*get_args(m.Request), m.EventMessage}
    for kind in m.REPLY_TO:
        if kind is m.SubscribeRequest:
            for role in ROLES:
                yield m.SubscribeRequest("1", "s1", PARAMETERS, options=m.Options(role=role))
        elif kind is m.UnsubscribeRequest:
            yield m.UnsubscribeRequest("1", "s1")
        elif kind is m.QueryRequest:
            yield m.QueryRequest("1", PARAMETERS)
        elif kind is m.EventNamesRequest:
            yield m.EventNamesRequest("1")
        else:
            assert kind is m.EventMessage, f"the walk knows no {kind.__name__}"


async def walk_frames(broker: Refusing) -> list[str]:
    """What was not refused as it should be."""
    return [
        *await walk_tcp(broker),
        *await walk_udp(broker),
        *await walk_gma(broker),
    ]


def _wrong(
    broker: Refusing, way: str, asked: m.Message, answer: bytes | None, *also: str
) -> list[str]:
    """The request, if the answer is not the Failure that it should be."""
    reply = None if answer is None else read(answer)
    is_reply = reply is not None and type(reply) is m.REPLY_TO[type(asked)]
    detail = getattr(reply, "detail", None) or ""
    is_failure = is_reply and getattr(reply, "returned", "") == m.FAILURE
    _note(broker, way, asked, answer, detail if is_failure else "")
    if broker.refusal == NO_CONNECTION:
        is_refused = answer is None
    else:
        is_refused = is_failure and any(text in detail for text in (broker.refusal[1], *also))
    return [] if is_refused else [f"{way}: {asked} was answered with {reply}"]


def _note(broker: Refusing, way: str, asked: m.Message, answer: bytes | None, why: str) -> None:
    what = f"{way}: {type(asked).__name__}"
    found = re.search(r"\[(T\d+)\]", why)
    status = 0 if answer is None else 200 if not why else 400
    broker.answers.append((f"{what} {why}".strip(), status, found[1] if found else ""))
    if SECRET.encode() in (answer or b""):
        broker.shown.append(what)


# TCP


async def walk_requests(broker: Refusing) -> list[str]:
    """The requests alone, of whoever was never allowed anything."""
    return [
        *await _requests_by_tcp(broker),
        *await _requests_by_udp(broker),
        *await _requests_by_http(broker),
    ]


async def walk_tcp(broker: Refusing) -> list[str]:
    wrong = await _requests_by_tcp(broker)
    if not broker.is_cut_off:  # else there is nothing in which an event could come
        for listener in (broker.frames, broker.archive):
            wrong += await _events_by_tcp(broker, listener.name, listener.address)
    return wrong


async def _requests_by_tcp(broker: Refusing) -> list[str]:
    wrong: list[str] = []
    for listener in (broker.frames, broker.archive):
        also = ONLY_STORES if listener is broker.archive else ()
        for request in requests():
            answer = await _answer_by_tcp(broker, listener.address, request)
            wrong += _wrong(broker, listener.name, request, answer, *also)
    return wrong


async def _answer_by_tcp(broker: Refusing, address: str, asked: m.Message) -> bytes | None:
    """None if the connection ended instead."""
    try:
        peer = await _connected(broker, address)
        await peer.send(asked)
        answer = await peer.answer()
    except CUT:
        return None
    peer.close()
    return answer


async def _connected(broker: Refusing, address: str) -> Tcp:
    """Whoever is allowed that has asked for something before."""
    with broker.first():
        peer = Tcp(*await broker.open(address))
        if broker.is_allowed_first:
            await peer.send(m.EventNamesRequest("first"))
            assert await peer.answer() is not None
    return peer


async def _events_by_tcp(broker: Refusing, way: str, address: str) -> list[str]:
    """Whoever may subscribe and not publish; a refused event costs the connection."""
    wrong: list[str] = []
    for number in ("1", None):
        with broker.allowing():
            peer = Tcp(*await broker.open(address))
            await peer.send(OFFER)
            event = m.EventMessage(own_id(await peer.answer()), EVENT, request_id=number)
        await peer.send(event)
        answered = [] if number is None else _wrong(broker, way, event, await peer.answer())
        if answered or not await peer.is_closed():
            wrong += answered or [f"{way}: {event} was taken"]
        peer.close()
    return wrong


class Tcp:
    """A peer that sends frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: str, tls: ssl.SSLContext | None = None) -> Tcp:
        host, _, port = address.rpartition(":")
        name = None if tls is None else "localhost"
        return cls(*await asyncio.open_connection(host, int(port), ssl=tls, server_hostname=name))

    async def send(self, message: m.Message) -> None:
        self._writer.write(framed(write(message)))

    async def answer(self) -> bytes | None:
        """The next message, or None at the end."""
        try:
            head = await asyncio.wait_for(self._reader.readexactly(HEAD_BYTES), ANSWER_S)
        except asyncio.IncompleteReadError:
            return None
        return await asyncio.wait_for(self._reader.readexactly(HEAD.unpack(head)[0]), ANSWER_S)

    async def is_closed(self) -> bool:
        """True if the other side hangs up, perhaps with a goodbye."""
        try:
            await asyncio.wait_for(self._reader.read(), CLOSED_S)
        except TimeoutError:
            return False
        except CUT:
            pass
        return True

    def close(self) -> None:
        self._writer.close()


# UDP


class Udp(asyncio.DatagramProtocol):
    """A peer that sends datagrams."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()

    def datagram_received(self, data: bytes, address: tuple[str | int, ...]) -> None:
        self.answers.put_nowait(data)


async def _requests_by_udp(broker: Refusing) -> list[str]:
    wrong: list[str] = []
    for request in requests():
        answer = await _one_datagram(broker, request)
        wrong += _wrong(broker, "udp", request, answer)
    return wrong


async def walk_udp(broker: Refusing) -> list[str]:
    wrong = await _requests_by_udp(broker)
    for number in ("1", None):
        wrong += await _event_by_udp(broker, number)
    return wrong


async def open_udp(broker: Refusing) -> tuple[asyncio.DatagramTransport, Udp]:
    host, _, port = broker.datagrams.address.rpartition(":")
    loop = asyncio.get_running_loop()
    return await loop.create_datagram_endpoint(Udp, remote_addr=(host, int(port)))


async def _one_datagram(broker: Refusing, request: m.Message) -> bytes:
    transport, peer = await open_udp(broker)
    transport.sendto(write(request))
    answer = await asyncio.wait_for(peer.answers.get(), ANSWER_S)
    transport.close()
    return answer


async def _event_by_udp(broker: Refusing, number: str | None) -> list[str]:
    """One without a number has no answer: that nothing was stored is seen in the log."""
    transport, peer = await open_udp(broker)
    with broker.allowing():
        transport.sendto(write(OFFER))
        known_as = own_id(await asyncio.wait_for(peer.answers.get(), ANSWER_S))
    before = broker.stored()
    event = m.EventMessage(known_as, EVENT, request_id=number)
    transport.sendto(write(event))
    wrong: list[str] = []
    if number is not None:
        wrong = _wrong(broker, "udp", event, await asyncio.wait_for(peer.answers.get(), ANSWER_S))
    else:
        await asyncio.sleep(SILENCE_S)
        wrong = [f"udp: {event} was answered"] if not peer.answers.empty() else []
    transport.close()
    return wrong if broker.stored() == before else [*wrong, f"udp: {event} was stored"]


# POST /gma


async def _requests_by_http(broker: Refusing) -> list[str]:
    wrong: list[str] = []
    for request in requests():
        for target in ("/gma", "/gma?role=producer", "/gma?role=consumer"):
            wrong += await _wrong_by_http(broker, target, request)
    return wrong


async def _wrong_by_http(broker: Refusing, target: str, asked: m.Message) -> list[str]:
    """A credential that is not valid is refused before the message is read: not by a reply."""
    way = f"POST {target}"
    try:
        status, answer = await post(broker, target, write(asked))
    except CUT:
        return _wrong(broker, way, asked, None)
    if status != 200:
        _note(broker, way, asked, answer, "" if status == 204 else f"[{code_in(answer.decode())}]")
        is_refused = status == broker.refusal[0] and broker.refusal[1].encode() in answer
        return [] if is_refused else [f"{way}: {status} for {asked}"]
    return _wrong(broker, way, asked, answer or None)


async def walk_gma(broker: Refusing) -> list[str]:
    wrong = await _requests_by_http(broker)
    for number in () if broker.is_cut_off else ("1", None):
        with broker.allowing():
            _, answer = await post(broker, "/gma", write(OFFER))
            event = m.EventMessage(own_id(answer), EVENT, request_id=number)
        wrong += await _wrong_by_http(broker, "/gma", event)
    return wrong


async def post(
    broker: Refusing, target: str, body: bytes, credential: str = ""
) -> tuple[int, bytes]:
    """The status, and the message in the answer, of whichever form that is."""
    reader, writer = await open_http(broker)
    head = f"POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: text/xml\r\n{credential}"
    head += "".join(f"{name}: {value}\r\n" for name, value in broker.headers.items())
    writer.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
    answered = b""
    while b"\r\n\r\n" not in answered or (b"octet-stream" in answered and b">" not in answered):
        answered += (data := await asyncio.wait_for(reader.read(1 << 16), ANSWER_S))
        if not data:
            raise EOFError(answered)
    if b"octet-stream" not in answered:  # else it goes on if the consumer is subscribed
        answered += await asyncio.wait_for(reader.read(), ANSWER_S)
    writer.close()
    top, _, content = answered.partition(b"\r\n\r\n")
    if b"chunked" in top.lower():
        found = re.search(rb"^[0-9a-f]+\r\n(.*?>)\r\n", content, re.DOTALL)
        content = found[1] if found else b""
    if b"octet-stream" in top:
        content = content[HEAD_BYTES:]
    return int(answered.split(b" ")[1]), content


def own_id(answer: bytes | None) -> str:
    assert answer is not None
    reply = read(answer)
    assert isinstance(reply, m.SubscribeReply)
    assert reply.subscription_id is not None, reply
    return reply.subscription_id
