"""HttpClient to other services: whole answers, or a plain word why there is none."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator

import pytest
from world import World, read_request

from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.runtime import HttpAnswer
from tocsin.drivers.push.http_client import ANSWER_BYTES_MAX, REQUESTS_MAX, HttpClient
from tocsin.drivers.push.pusher import PushOptions
from tocsin.errors import BadRequest, BadSubscription, PeerFailed, ShuttingDown, SinkRefused

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Kind: a\r\n\r\nhello"


def post(
    world: World, url: str, headers: dict[str, str] | None = None, timeout_s: float = 5.0
) -> HttpAnswer:
    letters = HttpClient(world.pusher)
    return world.loop.run_until_complete(
        letters.post(url, b"<a/>", headers or {}, timeout_s=timeout_s)
    )


@pytest.fixture(autouse=True)
def connections_are_given_back(world: World) -> Iterator[None]:
    yield
    world.pusher.close()
    assert world.pusher.open == 0


def test_a_letter_arrives_with_its_headers_and_its_answer_comes_back(world: World) -> None:
    url = world.answering(WHOLE)

    answer = post(world, url, {"SOAPAction": '"urn:x"', "Content-Type": "text/xml"})

    assert answer == HttpAnswer(200, {"content-length": "5", "x-kind": "a"}, b"hello")
    (request,) = world.requests
    assert (request.method, request.target, request.body) == ("POST", "/hook", b"<a/>")
    assert request.headers["SOAPAction"] == '"urn:x"'
    assert request.headers["connection"] == "close"


def test_the_same_answer_is_read_again_and_not_looked_up(world: World) -> None:
    url = world.answering(WHOLE)
    world.push(url)  # whose pusher remembers it from now on
    assert world.push(url)

    assert [post(world, url).body for _ in range(2)] == [b"hello", b"hello"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        b"HTTP/1.0 500 Oops\r\n\r\nabcde",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nabcde",
    ],
)
def test_an_answer_is_whole_however_it_is_framed(world: World, answer: bytes) -> None:
    async def once(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        for start in range(0, len(answer), 7):
            writer.write(answer[start : start + 7])
            await asyncio.sleep(0.001)

    got = post(world, world.sink(once))

    assert (got.status, got.body) == (500, b"abcde")


@pytest.mark.parametrize(
    "torn",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 777 What\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_half_an_answer_is_none(world: World, torn: bytes) -> None:
    async def once(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        writer.write(torn)

    with pytest.raises(PeerFailed):
        post(world, world.sink(once))


def test_an_answer_may_be_long_but_not_too_long(world: World) -> None:
    def of(size: int) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size

    assert len(post(world, world.answering(of(ANSWER_BYTES_MAX))).body) == ANSWER_BYTES_MAX
    world.requests.clear()
    with pytest.raises(PeerFailed, match="over"):
        post(world, world.answering(of(ANSWER_BYTES_MAX + 1)))


def test_a_peer_that_hangs_is_given_up_in_time(world: World) -> None:
    async def hang(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.sleep(60)

    async def hang_in_the_body(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
        await asyncio.sleep(60)

    for script in (hang, hang_in_the_body):
        before = world.loop.time()
        with pytest.raises(PeerFailed, match="within"):
            post(world, world.sink(script), timeout_s=0.1)
        assert world.loop.time() - before < 1


def test_where_nobody_listens_the_reason_is_told(world: World) -> None:
    with pytest.raises(PeerFailed, match="no connection"):
        post(world, "http://127.0.0.1:9/", timeout_s=2)


def test_a_name_that_leads_nowhere_is_told(world: World) -> None:
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    world.restart(resolve=nowhere)
    with pytest.raises(PeerFailed, match="not known"):
        post(world, "http://nowhere.example/")


def test_a_letter_goes_nowhere_that_a_push_may_not_go(world: World) -> None:
    url = world.answering(WHOLE)
    world.options = PushOptions(SinkRules(allow_private=False))
    world.restart()

    with pytest.raises(SinkRefused):
        post(world, url)
    assert world.connections == 0


@pytest.mark.parametrize("value", ["a\r\nx: y", "\x00", "ä", "a\n"])
def test_a_header_cannot_carry_another(world: World, value: str) -> None:
    url = world.answering(WHOLE)
    with pytest.raises(BadRequest):
        post(world, url, {"SOAPAction": value})
    with pytest.raises(BadRequest):
        post(world, url, {f"a{value}": "b"})
    assert world.connections == 0


def test_no_address_no_letter(world: World) -> None:
    with pytest.raises(BadSubscription):
        post(world, "urn:nobody")


def test_of_many_letters_a_bounded_number_is_under_way(world: World) -> None:
    open_now = most = 0

    async def slow(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await read_request(reader)
        await asyncio.sleep(0.01)
        writer.write(WHOLE)
        open_now -= 1

    url = world.sink(slow)
    letters = HttpClient(world.pusher)

    async def many() -> list[HttpAnswer]:
        return await asyncio.gather(*(letters.post(url, b"", {}) for _ in range(REQUESTS_MAX * 3)))

    assert {answer.status for answer in world.loop.run_until_complete(many())} == {200}
    assert most <= REQUESTS_MAX


def test_who_waits_when_the_broker_stops_is_told(world: World) -> None:
    async def hang(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.sleep(60)

    url = world.sink(hang)
    letters = HttpClient(world.pusher)

    async def stop() -> None:
        waiting = asyncio.ensure_future(letters.post(url, b"", {}))
        await asyncio.sleep(0.05)
        letters.close()
        with pytest.raises(ShuttingDown):
            await waiting
        with pytest.raises(ShuttingDown):
            await letters.post(url, b"", {})

    world.loop.run_until_complete(stop())
