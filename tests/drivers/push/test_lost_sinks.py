"""A connection to a sink that is gone leaves nothing behind: what came by it is freed at once,
without waiting for the garbage collector, which runs rarely in a broker and never here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from world import Script, World, read_request

from live_objects import LiveObjects, without_collector
from tocsin.drivers.push.connection import Connection
from tocsin.drivers.push.envelope_connection import EnvelopeConnection
from tocsin.drivers.push.gma_connection import GmaConnection
from tocsin.drivers.push.http_client import HttpClient, RequestSender
from tocsin.errors import PeerFailed
from tocsin.wire.dime import Decoder
from tocsin.wire.framing import FrameSplitter

LARGE = b"x" * 60_000
KEPT = (
    Connection,
    EnvelopeConnection,
    GmaConnection,
    RequestSender,
    Decoder,
    FrameSplitter,
)


@pytest.fixture(autouse=True)
def live() -> Iterator[LiveObjects]:
    with without_collector(KEPT) as objects:
        yield objects


def left_over(world: World, live: LiveObjects) -> list[str]:
    for _ in range(50):
        found = live.names()
        if not found:
            break
        world.wait(0.02)
    return found


def answering(answer: bytes) -> Script:
    """One answer to one request, then it hangs up."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    return script


ANSWERS = {
    "a whole answer": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nx-long: " + LARGE,
    "half a body": b"HTTP/1.1 500 No\r\ncontent-length: 90000\r\n\r\n" + LARGE,
    "a body that is too long": b"HTTP/1.1 500 No\r\ncontent-length: 900000\r\n\r\n" + LARGE * 10,
    "what is no HTTP": b"\x00\x01\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_lost_connection_to_a_webhook_leaves_nothing_behind(
    world: World, live: LiveObjects, answer: str
) -> None:
    address = world.sink(answering(ANSWERS[answer]))

    world.push(address)

    assert left_over(world, live) == []


def test_a_sink_that_is_not_there_leaves_nothing_behind(world: World, live: LiveObjects) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/hook"

    world.push(address)
    world.pusher.close()

    assert left_over(world, live) == []


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_letter_that_was_answered_leaves_nothing_behind(
    world: World, live: LiveObjects, answer: str
) -> None:
    address = world.sink(answering(ANSWERS[answer]))

    async def write() -> None:
        with suppress(PeerFailed):
            await HttpClient(world.pusher).post(address, b"<e/>", {}, timeout_s=5.0)

    world.loop.run_until_complete(write())

    assert left_over(world, live) == []


@pytest.mark.parametrize("answer", [b"\x0d\x20\x00\x00" + LARGE, b"no DIME", b""])
def test_a_lost_consumer_on_plain_tcp_leaves_nothing_behind(
    world: World, live: LiveObjects, answer: bytes
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()

    address = world.sink(script).replace("http://", "soap.tcp://")

    async def write() -> None:
        with suppress(PeerFailed):
            await HttpClient(world.pusher).post(address, b"<e/>", {}, timeout_s=5.0)

    world.loop.run_until_complete(write())

    assert left_over(world, live) == []


def test_a_sink_that_does_not_answer_in_time_leaves_nothing_behind(
    world: World, live: LiveObjects
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nx-long: " + LARGE)
        await asyncio.sleep(5)

    world.push(world.sink(script), timeout_s=0.1)

    assert left_over(world, live) == []


@pytest.mark.parametrize("answer", [b"\x00\x00\xff\x00" + LARGE, b"\x7f\xff\xff\xff", b""])
def test_a_lost_consumer_of_performance_events_leaves_nothing_behind(
    world: World, live: LiveObjects, answer: bytes
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        await writer.drain()

    address = world.sink(script).replace("http://", "gma://").removesuffix("/hook")

    world.push(address)

    assert left_over(world, live) == []
