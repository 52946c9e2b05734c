"""Silence on a stream or a socket: heartbeats, pings, and hanging up on whoever is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Ping, Request

from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.http.listener import HttpListener, listen
from tocsin.drivers.logger import Logger
from tocsin.drivers.soap_services import SoapServices
from tocsin.services.directory.directory import Directory
from tocsin.services.streams import sse_session, websocket
from tocsin.store.store import Store

PATIENCE_S = 10.0

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def talk(directory: Path, script: Script) -> None:
    """Run a broker in this process, for a test that changes its constants, and talk to it."""

    async def main() -> None:
        flags = {"http.address": "127.0.0.1:0", "log.directory": str(directory)}
        settings, _ = load(flags, {})
        app = Application(settings, Store.open(directory), Logger())
        soap, entries = SoapServices(app).answer, Directory(app.port)
        context = app.rest_context(entries, app.performance_service())
        server: HttpListener = await listen(context, settings.http.address, soap)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            await asyncio.wait_for(script(reader, writer), PATIENCE_S)
            writer.close()
        finally:
            await server.close()
            await app.close()

    uvloop.run(main())


def test_a_silent_stream_has_a_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_session, "HEARTBEAT_S", 0.1)
    beats = 0

    async def listen_for_beats(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal beats
        writer.write(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while beats < 3:
            beats += await reader.readline() == b":\n"

    talk(tmp_path / "data", listen_for_beats)

    assert beats == 3


def test_who_does_not_answer_a_ping_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "PING_S", 0.1)
    monkeypatch.setattr(websocket, "PONG_S_MAX", 0.3)
    seen: list[type] = []

    async def play_dead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = WSConnection(ConnectionType.CLIENT)
        writer.write(protocol.send(Request(host="localhost", target="/events/socket")))
        while data := await _read(reader):
            protocol.receive_data(data)
            seen.extend(type(event) for event in protocol.events())

    talk(tmp_path / "data", play_dead)

    assert seen[:2] == [AcceptConnection, Ping]


def test_who_answers_pings_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "PING_S", 0.1)
    monkeypatch.setattr(websocket, "PONG_S_MAX", 0.6)
    pings = 0

    async def be_there(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pings
        protocol = WSConnection(ConnectionType.CLIENT)
        writer.write(protocol.send(Request(host="localhost", target="/events/socket")))
        while pings < 5:
            protocol.receive_data(await _read(reader))
            for event in protocol.events():
                if isinstance(event, Ping):
                    pings += 1
                    writer.write(protocol.send(event.response()))

    talk(tmp_path / "data", be_there)

    assert pings == 5


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65536)
    except ConnectionError:
        return b""
