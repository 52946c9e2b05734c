"""Every part of a request has a limit and a deadline; reaching one is told, and frees the room."""

from __future__ import annotations

import gzip
import time
from contextlib import ExitStack, suppress

import pytest
from raw_http import Raw, get, once, post, structured

from served import Served


def test_headers_that_drip_in_are_cut_off(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(b"POST /events HTTP/1.1\r\nHost: localhost\r\n")
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 4:
                raw.send(b"X-Drip: 1\r\n")
                time.sleep(0.1)

        assert b"408 Request Timeout" in raw.rest()


def test_a_request_line_that_never_ends_is_cut_off(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(b"GE")

        assert raw.is_closed_within(6)


def test_a_body_that_drips_in_is_cut_off(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(post(b"")[:-2].replace(b"Length: 0", b"Length: 100000") + b"\r\n")
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < 4:
                raw.send(b"x")
                time.sleep(0.1)

        assert b"408 Request Timeout" in raw.rest()


def test_a_body_that_flows_may_take_longer_than_the_deadline(strict: Served) -> None:
    event = structured("flows", data="x" * 900_000)
    with Raw(strict.address) as raw:
        request = post(event)
        for start in range(0, len(request), 300_000):
            raw.send(request[start : start + 300_000])
            time.sleep(0.45)

        assert raw.answer().status == 202


def test_an_idle_connection_is_closed_without_a_word(strict: Served) -> None:
    with Raw(strict.address) as raw:
        assert raw.send(get("/livez")).answer().status == 200

        assert raw.rest() == b""


def test_a_body_longer_than_allowed_is_refused_as_soon_as_it_says_so(strict: Served) -> None:
    head = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000001\r\n\r\n"

    answer = once(strict.address, head)

    assert (answer.status, answer.json["code"]) == (413, "T202")
    assert answer.headers["connection"] == "close"


def test_a_chunked_body_longer_than_allowed_is_refused_while_it_comes(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(40):
                raw.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

        assert raw.answer().status == 413


def test_chunk_framing_without_a_body_is_refused(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(100):
                raw.send(b"1;" + b"e" * 10_000 + b"\r\nx\r\n")

        assert b" 413 " in raw.rest()


def test_a_gzip_bomb_does_not_go_off(strict: Served) -> None:
    bomb = gzip.compress(b"\0" * 100_000_000)
    assert len(bomb) < 200_000

    answer = once(strict.address, post(bomb, extra="Content-Encoding: gzip\r\n"))

    assert (answer.status, answer.json["code"]) == (413, "T202")


@pytest.mark.parametrize(
    "headers",
    [
        "".join(f"X-{n}: 1\r\n" for n in range(10_000)),
        "X-Long: " + "x" * 1_000_000 + "\r\n",
        "X-Long: " + "x" * 40_000 + "\r\n",
        "".join(f"X-{n}: 1\r\n" for n in range(101)),
    ],
    ids=["10,000 headers", "a header of 1 MB", "just too long", "one too many"],
)
def test_a_head_over_its_limit_is_refused(strict: Served, headers: str) -> None:
    with Raw(strict.address) as raw:
        with suppress(ConnectionError):
            raw.send(get("/livez", headers))

        answer = raw.answer()

    assert (answer.status, answer.json["code"]) == (431, "T210")


def test_a_header_that_never_ends_is_refused(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        with suppress(ConnectionError):
            for _ in range(100):
                raw.send(b"x" * 50_000)

        assert b" 431 " in raw.rest()


def test_a_url_that_never_ends_is_refused(strict: Served) -> None:
    with Raw(strict.address) as raw:
        raw.send(b"GET /")
        with suppress(ConnectionError):
            for _ in range(100):
                raw.send(b"x" * 50_000)

        assert b" 431 " in raw.rest()


def test_one_connection_too_many_is_told_so(strict: Served) -> None:
    with ExitStack() as open_now:
        first = [open_now.enter_context(Raw(strict.address)) for _ in range(20)]
        # The kernel takes connections before the broker does: make sure that it has them all.
        assert all(raw.send(get("/livez")).answer().status == 200 for raw in first)

        answer = once(strict.address, get("/events"))

    assert (answer.status, answer.json["code"]) == (503, "T207")
    assert answer.headers["retry-after"] == "1"
    time.sleep(0.3)
    assert once(strict.address, get("/livez")).status == 200


def test_who_pipelines_and_never_reads_is_made_to_wait_and_then_cut_off(strict: Served) -> None:
    request = get("/openapi.json") * 200
    sent = 0
    with Raw(strict.address, receive_buffer=4096) as raw:
        raw.socket.settimeout(0.5)
        with suppress(OSError):
            while sent < 50_000_000:
                sent += raw.socket.send(request)

        assert sent < 20_000_000
        time.sleep(3.5)
        with pytest.raises(ConnectionError):
            _send_all(raw, request, times=100)
    assert "did not read for too long" in strict.said()
    assert once(strict.address, get("/livez")).status == 200


def test_a_stream_too_many_is_refused(strict: Served) -> None:
    with ExitStack() as open_now:
        streams = [open_now.enter_context(Raw(strict.address)) for _ in range(3)]
        for raw in streams:
            raw.send(get("/events/stream"))
            assert raw.file.readline() == b"HTTP/1.1 200 OK\r\n"

        answer = once(strict.address, get("/events/stream"))

    assert (answer.status, answer.json["code"]) == (429, "T306")


def _send_all(raw: Raw, data: bytes, times: int) -> None:
    for _ in range(times):
        raw.send(data)
