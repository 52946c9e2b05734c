"""Sinks that hang, lie, drip, flood and hang up: each costs its own lane some time, and no more."""

from __future__ import annotations

import asyncio
import itertools
from asyncio import StreamReader, StreamWriter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world import World, read_request

from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.event.event import Event

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
MANY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
QUICK_S = 0.1  # a deadline is seen by the next sweep, at most a quarter of a second later


def test_a_sink_that_never_answers_is_given_up_in_time(world: World) -> None:
    async def hang(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.sleep(60)

    before = world.loop.time()
    outcome = world.push(world.sink(hang), timeout_s=QUICK_S)

    assert outcome == Failed("the sink did not begin an answer in time", reachable=True)
    assert world.loop.time() - before < 1
    assert world.pusher.open == 0


def test_a_head_that_drips_is_given_up_in_time(world: World) -> None:
    async def drip(reader: StreamReader, writer: StreamWriter) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)

    outcome = world.push(world.sink(drip), timeout_s=0.3)

    assert outcome == Failed("the sink did not finish its answer in time", reachable=True)


def test_a_status_counts_though_its_body_drips_past_the_deadline(world: World) -> None:
    async def drip(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 600\r\n\r\n")
        while True:
            writer.write(b".")
            await asyncio.sleep(0.1)

    assert world.push(world.sink(drip), timeout_s=0.3) == Answered(200)
    assert world.pusher.open == 0


@pytest.mark.parametrize("framing", [b"", b"transfer-encoding: chunked\r\n"])
def test_an_endless_body_is_cut_off(world: World, framing: bytes) -> None:
    sent = 0

    async def flood(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 500 Oops\r\n" + framing + b"\r\n")
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n" if framing else b"x" * 1024)
            sent += 1024
            await writer.drain()
            await asyncio.sleep(0)

    outcome = world.push(world.sink(flood))

    assert isinstance(outcome, Answered)
    assert outcome.status == 500
    assert world.pusher.open == 0
    world.wait(0.05)
    assert sent < 50_000_000


def test_an_endless_head_is_cut_off(world: World) -> None:
    async def flood(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"x: y\r\n" * 100)
            await writer.drain()
            await asyncio.sleep(0)

    outcome = world.push(world.sink(flood))

    assert isinstance(outcome, Failed)
    assert outcome.reachable
    assert "65536 bytes" in outcome.reason


def test_endless_interim_answers_are_cut_off(world: World) -> None:
    async def flood(reader: StreamReader, writer: StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            await writer.drain()
            await asyncio.sleep(0)

    outcome = world.push(world.sink(flood))

    assert isinstance(outcome, Failed)


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"<html>no</html>",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\n\n",
    ],
)
def test_garbage_is_a_failure_of_something_that_is_there(world: World, garbage: bytes) -> None:
    outcome = world.push(world.answering(garbage))

    assert isinstance(outcome, Failed)
    assert outcome.reachable
    assert outcome.reason.startswith("the sink")
    assert world.pusher.open == 0


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    answer=st.binary(max_size=200)
    | st.binary(max_size=60).map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail)
    | st.binary(max_size=60).map(lambda tail: OK + tail),
)
def test_whatever_bytes_come_back_there_is_one_outcome(world: World, answer: bytes) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)

    outcome = world.push(world.sink(script))

    assert isinstance(outcome, Answered | Failed)
    if answer.startswith(OK):
        assert outcome == Answered(204)


@given(cuts=st.lists(st.integers(1, 80), max_size=4))
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_where_the_network_cuts_an_answer_makes_no_difference(
    world: World, cuts: list[int]
) -> None:
    answer = b"HTTP/1.1 429 No\r\nretry-after: 5\r\ncontent-length: 40\r\n\r\n" + b"0123456789" * 4
    places = [0, *sorted(cuts), len(answer)]

    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        for start, end in itertools.pairwise(places):
            writer.write(answer[start:end])
            await asyncio.sleep(0.001)

    assert world.push(world.sink(script)) == Answered(429, 5.0, "0123456789" * 4)


def test_a_sink_that_hangs_up_within_the_head_has_not_answered(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")

    outcome = world.push(world.sink(script))

    assert outcome == Failed(
        "the sink closed the connection in the middle of its answer", reachable=True
    )


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_sink_that_hangs_up_within_the_body_has_answered(world: World, version: bytes) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/" + version + b" 500 Oops\r\n\r\nwhat we know so far")

    assert world.push(world.sink(script)) == Answered(500, None, "what we know so far")


def test_nobody_listening_is_unreachable(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None: ...

    address = world.sink(script)
    free_port = address.replace(address.split(":")[2].split("/")[0], "1099")

    outcome = world.push(free_port)

    assert isinstance(outcome, Failed)
    assert not outcome.reachable
    assert "refused" in outcome.reason.lower()


def test_a_sink_that_hangs_up_on_the_first_request_has_failed(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)

    outcome = world.push(world.sink(script))

    assert outcome == Failed("the sink closed the connection without an answer", reachable=True)
    assert world.connections == 1


def test_a_request_that_met_a_closing_connection_is_sent_again_at_once(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        world.requests.append(await read_request(reader))
        writer.write(OK)
        world.requests.append(await read_request(reader))  # and hangs up on this one

    address = world.sink(script)

    outcomes = [world.push(address) for _ in range(3)]

    assert outcomes == [Answered(204)] * 3
    assert world.connections == 3
    assert len(world.requests) == 5


def test_a_request_is_sent_again_only_once(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        if world.connections == 1:
            writer.write(OK)
            await read_request(reader)

    address = world.sink(script)
    world.push(address)

    outcome = world.push(address)

    assert outcome == Failed("the sink closed the connection without an answer", reachable=True)
    assert world.connections == 2


def test_a_sink_may_close_between_requests(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)

    address = world.sink(script)

    for _ in range(3):
        assert world.push(address) == Answered(204)
        world.wait(0.01)

    assert world.connections == 3


def test_bytes_that_nobody_asked_for_end_the_connection(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK)
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 500 Poisoned\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    address = world.sink(script)
    world.push(address)
    world.wait(0.05)

    assert world.push(address) == Answered(204)
    assert world.connections == 2


def test_an_answer_that_overtakes_a_large_request_is_taken(world: World) -> None:
    async def script(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too large\r\ncontent-length: 0\r\n\r\n")
        await asyncio.sleep(0.2)

    data = b"x" * 16_000_000

    outcome = world.push(
        world.sink(script), Event("1", "/s", "t", datacontenttype="a/b", data=data)
    )

    assert outcome == Answered(413)
    assert world.pusher.open == 0


def test_a_slow_sink_delays_no_other(world: World) -> None:
    async def hang(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.sleep(60)

    slow = world.pushing(world.sink(hang), lane=1, timeout_s=0.3)
    address = world.answering(OK)

    outcomes = [world.push(address, lane=2) for _ in range(20)]

    assert outcomes == [Answered(204)] * 20
    assert not slow.done()
    assert isinstance(world.loop.run_until_complete(slow), Failed)
