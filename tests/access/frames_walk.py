"""Every message that may ask for something, in every role: on TCP, on UDP and by POST /gma."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

from refusing import Refusing

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

_PARAMETERS = m.Parameters(EventName("Walked"))
_EVENT = m.PerformanceEvent(EventName("Walked"), "2000-11-09T21:51:45Z", (m.Element("A", 1),))
_OFFER = m.SubscribeRequest(
    "offer", "c1", _PARAMETERS, options=m.Options(role=PRODUCER, acknowledge="walker")
)


def requests() -> Iterator[m.Message]:
    """One of each type that the protocol has a reply to; events have a walk of their own."""
    for kind in m.REPLY_TO:
        if kind is m.SubscribeRequest:
            for role in ROLES:
                yield m.SubscribeRequest("1", "s1", _PARAMETERS, options=m.Options(role=role))
        elif kind is m.UnsubscribeRequest:
            yield m.UnsubscribeRequest("1", "s1")
        elif kind is m.QueryRequest:
            yield m.QueryRequest("1", _PARAMETERS)
        elif kind is m.EventNamesRequest:
            yield m.EventNamesRequest("1")
        else:
            assert kind is m.EventMessage, f"the walk knows no {kind.__name__}"


async def walk_frames(broker: Refusing) -> list[str]:
    """What was not refused as it should be."""
    return [
        *await _walk_tcp(broker),
        *await _walk_udp(broker),
        *await _walk_http(broker),
    ]


def _wrong(code: str, way: str, asked: m.Message, answer: bytes | None, *also: str) -> list[str]:
    """The request, if the answer is not the Failure that it should be."""
    reply = None if answer is None else read(answer)
    is_reply = reply is not None and type(reply) is m.REPLY_TO[type(asked)]
    detail = getattr(reply, "detail", None) or ""
    is_refused = is_reply and getattr(reply, "returned", "") == m.FAILURE
    if is_refused and any(text in detail for text in (code, *also)):
        return []
    return [f"{way}: {asked} was answered with {reply}"]


# TCP


async def walk_requests(broker: Refusing) -> list[str]:
    """The requests alone, of whoever was never allowed anything."""
    return [
        *await _requests_by_tcp(broker),
        *await _requests_by_udp(broker),
        *await _requests_by_http(broker),
    ]


async def _walk_tcp(broker: Refusing) -> list[str]:
    wrong = await _requests_by_tcp(broker)
    for listener in (broker.frames, broker.archive):
        wrong += await _events_by_tcp(broker, listener.name, listener.address)
    return wrong


async def _requests_by_tcp(broker: Refusing) -> list[str]:
    wrong: list[str] = []
    for listener in (broker.frames, broker.archive):
        also = ONLY_STORES if listener is broker.archive else ()
        for request in requests():
            peer = await Tcp.connect(listener.address)
            await peer.send(request)
            wrong += _wrong(broker.refusal[1], listener.name, request, await peer.answer(), *also)
            peer.close()
    return wrong


async def _events_by_tcp(broker: Refusing, way: str, address: str) -> list[str]:
    """Whoever may subscribe and not publish; a refused event costs the connection."""
    wrong: list[str] = []
    for number in ("1", None):
        peer = await Tcp.connect(address)
        with broker.allowing():
            await peer.send(_OFFER)
            event = m.EventMessage(_own_id(await peer.answer()), _EVENT, request_id=number)
        await peer.send(event)
        if number is not None:
            wrong += _wrong(broker.refusal[1], way, event, await peer.answer())
        if not await peer.is_closed():
            wrong.append(f"{way}: {event} was taken")
        peer.close()
    return wrong


class Tcp:
    """A peer that sends frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: str) -> Tcp:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

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
        wrong += _wrong(broker.refusal[1], "udp", request, answer)
    return wrong


async def _walk_udp(broker: Refusing) -> list[str]:
    wrong = await _requests_by_udp(broker)
    for number in ("1", None):
        wrong += await _event_by_udp(broker, number)
    return wrong


async def _open_udp(broker: Refusing) -> tuple[asyncio.DatagramTransport, Udp]:
    host, _, port = broker.datagrams.address.rpartition(":")
    loop = asyncio.get_running_loop()
    return await loop.create_datagram_endpoint(Udp, remote_addr=(host, int(port)))


async def _one_datagram(broker: Refusing, request: m.Message) -> bytes:
    transport, peer = await _open_udp(broker)
    transport.sendto(write(request))
    answer = await asyncio.wait_for(peer.answers.get(), ANSWER_S)
    transport.close()
    return answer


async def _event_by_udp(broker: Refusing, number: str | None) -> list[str]:
    """One without a number has no answer: that nothing was stored is seen in the log."""
    transport, peer = await _open_udp(broker)
    with broker.allowing():
        transport.sendto(write(_OFFER))
        own_id = _own_id(await asyncio.wait_for(peer.answers.get(), ANSWER_S))
    before = broker.stored()
    event = m.EventMessage(own_id, _EVENT, request_id=number)
    transport.sendto(write(event))
    wrong: list[str] = []
    if number is not None:
        wrong = _wrong(
            broker.refusal[1], "udp", event, await asyncio.wait_for(peer.answers.get(), ANSWER_S)
        )
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
            status, answer = await post(broker, target, write(request))
            found = _wrong(broker.refusal[1], f"POST {target}", request, answer or None)
            wrong += found if status == 200 else [f"POST {target}: {status} for {request}"]
    return wrong


async def _walk_http(broker: Refusing) -> list[str]:
    wrong = await _requests_by_http(broker)
    for number in ("1", None):
        with broker.allowing():
            _, answer = await post(broker, "/gma", write(_OFFER))
            event = m.EventMessage(_own_id(answer), _EVENT, request_id=number)
        status, answer = await post(broker, "/gma", write(event))
        if number is not None:
            wrong += _wrong(broker.refusal[1], "POST /gma", event, answer)
        elif status != broker.refusal[0] or broker.refusal[1].encode() not in answer:
            wrong.append(f"POST /gma: {event} was answered with {status} {answer!r}")
    return wrong


async def post(
    broker: Refusing, target: str, body: bytes, credential: str = ""
) -> tuple[int, bytes]:
    """The status, and the message in the answer, of whichever form that is."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.http.port)
    head = f"POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: text/xml\r\n{credential}"
    writer.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
    answered = b""
    while b"\r\n\r\n" not in answered or (b"octet-stream" in answered and b">" not in answered):
        answered += await asyncio.wait_for(reader.read(1 << 16), ANSWER_S)
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


def _own_id(answer: bytes | None) -> str:
    assert answer is not None
    reply = read(answer)
    assert isinstance(reply, m.SubscribeReply)
    assert reply.subscription_id is not None, reply
    return reply.subscription_id
