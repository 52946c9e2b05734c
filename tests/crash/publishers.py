"""Publishers for the crash test: one for each endpoint that acknowledges.

Each sends events 1, 2, 3, ... and goes on only when the broker has acknowledged. What an event is
called differs by protocol, so each holds a marker, `crash:NAME:NUMBER`, that is found anywhere.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
from collections.abc import Callable

from tocsin.wire.framing import framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import PRODUCER
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

BATCH_MAX = 20
TIME = "2026-11-18T09:00:00Z"
SOAP12 = "application/soap+xml"
WSA = "http://www.w3.org/2005/08/addressing"
WSN = "http://docs.oasis-open.org/wsn/b-2"
WSRM = "http://docs.oasis-open.org/ws-rx/wsrm/200702"


class Refused(Exception):
    """The broker did not take it, or its answer is none: send it again."""


class Connection:
    """An HTTP/1.1 connection, as simple as it can be."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def post(self, path: str, content_type: str, body: bytes) -> tuple[int, bytes]:
        self.writer.write(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split(" ", 2)[1])
        if "chunked" in head:
            return status, await self._chunks()
        length = head.partition("content-length: ")[2].partition("\r\n")[0]
        return status, await self.reader.readexactly(int(length or 0))

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return body


class Publisher:
    """By `POST /events`, in batches."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.acknowledged = 0
        self._chance = chance

    async def run(self, address: Callable[[], str], stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._session(address(), stop)
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, Refused):
                await asyncio.sleep(0.005)

    async def _session(self, address: str, stop: asyncio.Event) -> None:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            connection = Connection(reader, writer)
            await self._begin(connection)
            while not stop.is_set():
                self.acknowledged += await self._send(connection)
        finally:
            writer.close()

    async def _begin(self, connection: Connection) -> None:
        """The connection is new."""

    def marker(self, number: int) -> str:
        return f"crash:{self.name}:{number}"

    async def _send(self, connection: Connection) -> int:
        """Send the next; returns how many were acknowledged."""
        size = self._chance.randint(1, BATCH_MAX)
        numbers = range(self.acknowledged + 1, self.acknowledged + 1 + size)
        events = [self.event(number) for number in numbers]
        body = json.dumps(events).encode()
        await self._posted(connection, "/events", "application/cloudevents-batch+json", body)
        return size

    def event(self, number: int) -> dict[str, object]:
        return {
            "specversion": "1.0",
            "id": str(number),
            "source": f"/{self.name}",
            "type": "org.tocsin.crash",
            "topic": f"crash/{self.name}",
            "data": {"marker": self.marker(number), "filling": "x" * 100},
        }

    async def _posted(
        self, connection: Connection, path: str, content_type: str, body: bytes
    ) -> bytes:
        status, answer = await connection.post(path, content_type, body)
        if status == 503:
            raise Refused
        if not 200 <= status < 300:
            raise AssertionError(f"{self.name}: {status} {answer!r}")
        return answer


class BlackboardPublisher(Publisher):
    """By `POST /blackboard/messages`."""

    async def _send(self, connection: Connection) -> int:
        message = {"pairs": {"RunId": self.marker(self.acknowledged + 1)}}
        body = json.dumps(message).encode()
        await self._posted(connection, "/blackboard/messages", "application/json", body)
        return 1


class NextflowPublisher(Publisher):
    """By `POST /ingest/nextflow`: the start of a run each."""

    async def _send(self, connection: Connection) -> int:
        post = {"event": "started", "runName": self.marker(self.acknowledged + 1), "utcTime": TIME}
        body = json.dumps(post).encode()
        await self._posted(connection, "/ingest/nextflow", "application/json", body)
        return 1


class LineagePublisher(Publisher):
    """By `POST /api/v1/lineage` of OpenLineage: the start of a run each."""

    async def _send(self, connection: Connection) -> int:
        body = json.dumps(self._start(self.acknowledged + 1)).encode()
        await self._posted(connection, "/api/v1/lineage", "application/json", body)
        return 1

    def _start(self, number: int) -> dict[str, object]:
        return {
            "eventType": "START",
            "eventTime": TIME,
            "run": {"runId": self.marker(number)},
            "job": {"namespace": "crash", "name": "crash"},
        }


class LineageBatchPublisher(LineagePublisher):
    """By `POST /api/v1/lineage/batch`."""

    async def _send(self, connection: Connection) -> int:
        size = self._chance.randint(1, BATCH_MAX)
        numbers = range(self.acknowledged + 1, self.acknowledged + 1 + size)
        body = json.dumps([self._start(number) for number in numbers]).encode()
        answer = await self._posted(connection, "/api/v1/lineage/batch", "application/json", body)
        assert json.loads(answer)["status"] == "success", answer
        return size


class EventingPublisher(Publisher):
    """By SOAP: the notification itself, as in WS-Eventing."""

    sequence = ""

    async def _send(self, connection: Connection) -> int:
        number = self.acknowledged + 1
        body = self._envelope(number, self._body(number), self._headers(number))
        answer = await self._posted(connection, "/soap", SOAP12, body)
        return self._acknowledged(number, answer)

    def _acknowledged(self, number: int, answer: bytes) -> int:
        return 1

    def _body(self, number: int) -> str:
        return f'<r:reading xmlns:r="urn:crash">{self.marker(number)}</r:reading>'

    def _headers(self, number: int) -> str:
        return ""

    def _envelope(self, number: int | str, body: str, headers: str, verb: str = "urn:r") -> bytes:
        return (
            f'<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="{WSA}">'
            f"<s:Header><a:Action>{verb}</a:Action>"
            f"<a:MessageID>urn:{self.name}:{number}</a:MessageID>{headers}</s:Header>"
            f"<s:Body>{body}</s:Body></s:Envelope>"
        ).encode()


class NotificationPublisher(EventingPublisher):
    """By SOAP: Notify of WS-Notification."""

    def _body(self, number: int) -> str:
        return (
            f'<n:Notify xmlns:n="{WSN}"><n:NotificationMessage><n:Message>'
            f"{super()._body(number)}</n:Message></n:NotificationMessage></n:Notify>"
        )


class ReliablePublisher(EventingPublisher):
    """By SOAP: numbered messages of WS-ReliableMessaging, over all crashes one sequence."""

    async def _begin(self, connection: Connection) -> None:
        if self.sequence:
            return
        verb = f"{WSRM}/CreateSequence"
        create = (
            f'<w:CreateSequence xmlns:w="{WSRM}"><w:AcksTo><a:Address>{WSA}/anonymous'
            "</a:Address></w:AcksTo></w:CreateSequence>"
        )
        body = self._envelope("create", create, "", verb)
        answer = (await self._posted(connection, "/soap", SOAP12, body)).decode()
        self.sequence = answer.partition("Identifier>")[2].partition("<")[0]

    def _headers(self, number: int) -> str:
        return (
            f'<w:Sequence xmlns:w="{WSRM}" s:mustUnderstand="1"><w:Identifier>{self.sequence}'
            f"</w:Identifier><w:MessageNumber>{number}</w:MessageNumber></w:Sequence>"
        )

    def _acknowledged(self, number: int, answer: bytes) -> int:
        if f'Upper="{number}"'.encode() not in answer:
            raise Refused
        return 1


class PerformancePublisher(Publisher):
    """By `POST /gma`: performance events that are acknowledged."""

    subscription = ""

    async def _begin(self, connection: Connection) -> None:
        offer = m.SubscribeRequest(
            "offer",
            "1",
            m.Parameters(EventName("Crash")),
            options=m.Options(role=PRODUCER, acknowledge=self.name),
        )
        reply = read(await self._exchange(connection, write(offer)))
        assert isinstance(reply, m.SubscribeReply)
        if reply.subscription_id is None:
            raise Refused
        self.subscription = reply.subscription_id

    async def _send(self, connection: Connection) -> int:
        element = m.Element("Marker", self.marker(self.acknowledged + 1))
        event = m.PerformanceEvent(EventName("Crash"), "2000-11-09T21:51:45Z", (element,))
        number = str(self.acknowledged + 1)
        message = m.EventMessage(self.subscription, event, request_id=number)
        reply = read(await self._exchange(connection, write(message)))
        if getattr(reply, "returned", m.FAILURE) == m.FAILURE:
            raise Refused
        return 1

    async def _exchange(self, connection: Connection, message: bytes) -> bytes:
        return await self._posted(connection, "/gma", "text/xml", message)


class FramePublisher(PerformancePublisher):
    """The same in frames over TCP."""

    async def _exchange(self, connection: Connection, message: bytes) -> bytes:
        connection.writer.write(framed(message))
        size = int.from_bytes(await connection.reader.readexactly(4), "big")
        return await connection.reader.readexactly(size)


class SocketPublisher(Publisher):
    """By WebSocket: one text message an event, and one that answers it."""

    async def _begin(self, connection: Connection) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        connection.writer.write(
            "GET /events/socket?filter=topic%20nothing "
            f"HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: cloudevents.json\r\n\r\n".encode()
        )
        head = await connection.reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head, head

    async def _send(self, connection: Connection) -> int:
        text = json.dumps(self.event(self.acknowledged + 1)).encode()
        assert 126 <= len(text) < 1 << 16
        connection.writer.write(b"\x81\xfe" + len(text).to_bytes(2, "big") + bytes(4) + text)
        while b'"accepted"' not in (answer := await self._frame(connection.reader)):
            if b'"code"' in answer:
                raise Refused
        return 1

    async def _frame(self, reader: asyncio.StreamReader) -> bytes:
        _, size = await reader.readexactly(2)
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        return await reader.readexactly(size)


HTTP = (
    Publisher,
    Publisher,
    EventingPublisher,
    NotificationPublisher,
    ReliablePublisher,
    BlackboardPublisher,
    NextflowPublisher,
    LineagePublisher,
    LineageBatchPublisher,
    PerformancePublisher,
    SocketPublisher,
)
