"""A connection that is gone leaves nothing behind: what it had sent is freed at once, without
waiting for the garbage collector, which runs rarely in a broker and never in these tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request

from live_objects import LiveObjects, without_collector
from tocsin.config import Settings, load
from tocsin.drivers.application import Application
from tocsin.drivers.frames.connection import Connection as FramesConnection
from tocsin.drivers.frames.listener import listen as listen_frames
from tocsin.drivers.http.asgi import AsgiExchange
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.listener import listen
from tocsin.drivers.http.reader import RequestReader
from tocsin.drivers.http.soap_exchange import SoapExchange
from tocsin.drivers.logger import Logger
from tocsin.drivers.pegasus.listener import listen as listen_pegasus
from tocsin.drivers.soap_services import SoapServices
from tocsin.drivers.soap_tcp.listener import listen as listen_soap_tcp
from tocsin.drivers.soap_tcp.session import Session as SoapTcpSession
from tocsin.services.blackboard.socket import BoardSocket
from tocsin.services.directory.directory import Directory
from tocsin.services.performance.session import PerformanceSession
from tocsin.services.streams.event_socket import EventSocket
from tocsin.services.streams.event_stream import EventStream
from tocsin.store.store import Store
from tocsin.wire.dime import Decoder, envelope_message
from tocsin.wire.framing import FrameSplitter
from tocsin.wire.pegasus import RecordSplitter

PATIENCE_S = 10.0
LARGE = b"x" * 300_000  # more than is read at once

KEPT = (
    Connection,
    RequestReader,
    AsgiExchange,
    SoapExchange,
    EventStream,
    EventSocket,
    BoardSocket,
    FramesConnection,
    PerformanceSession,
    FrameSplitter,
    SoapTcpSession,
    Decoder,
    RecordSplitter,
    asyncio.StreamReader,
)


@pytest.fixture
def live() -> Iterator[LiveObjects]:
    with without_collector(KEPT) as objects:
        yield objects


def request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join((line, "Host: localhost", *headers, "", "")).encode() + body


def unfinished_message(path: str) -> tuple[bytes, ...]:
    """A socket's handshake, then the first part of a message that never ends."""
    handshake = WSConnection(ConnectionType.CLIENT).send(Request(host="localhost", target=path))
    return handshake, _open_frames(LARGE)


def _open_frames(payload: bytes) -> bytes:
    """A text frame of a client that is not the last of its message; the mask is zeros."""
    return b"\x01\xff" + len(payload).to_bytes(8, "big") + bytes(4) + payload


DIME = envelope_message("1.1", b"<e>" + LARGE + b"</e>")

Sent = tuple[bytes, ...]
SCENES: dict[str, tuple[str, Sent]] = {
    "an unfinished body": (
        "http",
        (request("POST /events HTTP/1.1", "Content-Length: 9000000", body=LARGE),),
    ),
    "an unfinished chunked body": (
        "http",
        (
            request("POST /events HTTP/1.1", "Transfer-Encoding: chunked"),
            b"100000\r\n" + LARGE,
        ),
    ),
    "an unfinished head": ("http", (b"POST /events HTTP/1.1\r\nHost: loc",)),
    "a body that is too long": (
        "http",
        (
            request("POST /events HTTP/1.1", "Transfer-Encoding: chunked"),
            b"2000000\r\n",
            LARGE * 60,
        ),
    ),
    "what is no HTTP": ("http", (b"\x00\x01\x02\r\n\r\n",)),
    "a publish that is not waited for": (
        "http",
        (
            request(
                "POST /events HTTP/1.1",
                "Content-Type: text/plain",
                "ce-specversion: 1.0",
                "ce-id: 1",
                "ce-source: /a",
                "ce-type: t",
                f"Content-Length: {len(LARGE)}",
                body=LARGE,
            ),
        ),
    ),
    "a request that is answered": ("http", (request("GET /subscriptions HTTP/1.1"),)),
    "a request that fails": (
        "http",
        (request("POST /subscriptions HTTP/1.1", "Content-Length: 3", body=b"{}}"),),
    ),
    "requests behind a slow one": (
        "http",
        (
            request("GET /boxes/none/messages?wait=9 HTTP/1.1"),
            request("POST /boxes HTTP/1.1", f"Content-Length: {len(LARGE)}", body=LARGE),
        ),
    ),
    "SOAP": (
        "http",
        (request("POST /soap HTTP/1.1", f"Content-Length: {len(LARGE)}", body=LARGE),),
    ),
    "a stream": ("http", (request("GET /events/stream HTTP/1.1"),)),
    "a stream of the blackboard": (
        "http",
        (request("GET /blackboard/stream?concepts=Event HTTP/1.1"),),
    ),
    "a socket within a message": ("http", unfinished_message("/events/socket")),
    "a socket of the blackboard": ("http", unfinished_message("/blackboard/socket")),
    "a consumer of frames by HTTP": (
        "http",
        (request("POST /gma?role=consumer HTTP/1.1", "Content-Length: 4", body=b"<no>"),),
    ),
    "an unfinished frame": ("frames", (b"\x00\x20\x00\x00" + LARGE,)),
    "a frame that is too long": ("frames", (b"\x7f\xff\xff\xff" + LARGE,)),
    "HTTP where frames are spoken": ("frames", (request("GET / HTTP/1.1"),)),
    "an unfinished SOAP.TCP message": ("soap_tcp", (DIME[:-100],)),
    "a SOAP.TCP message": ("soap_tcp", (DIME,)),
    "HTTP where SOAP.TCP is spoken": ("soap_tcp", (request("GET / HTTP/1.1"),)),
    "an unfinished Pegasus record": ("pegasus", (b'{"event": "' + LARGE,)),
}


async def play(
    settings: Settings, directory: Path, scene: tuple[str, Sent], live: LiveObjects
) -> list[str]:
    """Send, hang up, and see what the broker holds on to once it has noticed."""
    app = Application(settings, Store.open(directory), Logger())
    desk = SoapServices(app)
    performance = app.performance_service()
    context = app.rest_context(Directory(app.port), performance)
    listeners = {
        "http": await listen(context, "127.0.0.1:0", desk.answer),
        "frames": await listen_frames(performance, settings, "127.0.0.1:0"),
        "soap_tcp": await listen_soap_tcp(
            desk.answer, "127.0.0.1:0", settings.soap_tcp, app.node.note
        ),
        "pegasus": await listen_pegasus(app.port, settings, "127.0.0.1:0"),
    }
    where, pieces = scene
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", listeners[where].port)
        for piece in pieces:
            with suppress(ConnectionError):
                writer.write(piece)
                await writer.drain()
            await asyncio.sleep(0.05)
        writer.transport.abort()
        del reader, writer
        return await until_nothing_is_left(live)
    finally:
        for server in listeners.values():
            await server.close()
        await desk.close()
        await app.close()


async def until_nothing_is_left(live: LiveObjects) -> list[str]:
    until_s = asyncio.get_running_loop().time() + PATIENCE_S
    while left := live.names():
        if asyncio.get_running_loop().time() > until_s:
            break
        await asyncio.sleep(0.02)
    return left


@pytest.mark.parametrize("scene", SCENES)
def test_a_connection_that_is_gone_leaves_nothing_behind(
    scene: str, tmp_path: Path, live: LiveObjects
) -> None:
    settings, _ = load({"http.address": "127.0.0.1:0"}, {})

    left = uvloop.run(play(settings, tmp_path / "data", SCENES[scene], live))

    assert left == []
