"""The HTTP/1.1 reader of the client: what the network does to a message makes no difference."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.transport.address import broker_address
from tocsin.client.transport.http1 import HEAD_BYTES_MAX, MessageReader, request_bytes
from tocsin.errors import BadRequest, BadSetting


def chunked(parts: list[bytes]) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def sized(parts: list[bytes]) -> bytes:
    body = b"".join(parts)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@given(
    parts=st.lists(st.binary(max_size=30), max_size=6),
    write=st.sampled_from([chunked, sized]),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_where_the_network_cuts_a_message_makes_no_difference(parts, write, cuts) -> None:
    stream = write(parts) + b"NEXT"
    reader = MessageReader(response=True)
    body = b""

    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, end in itertools.pairwise(places):
        if reader.complete:
            reader.rest += stream[start:end]
        elif start < end:
            body += reader.feed(stream[start:end])

    assert reader.complete
    assert body == b"".join(parts)
    assert reader.rest == b"NEXT"


def test_an_interim_answer_is_passed_over() -> None:
    reader = MessageReader(response=True)

    body = reader.feed(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok"
    )

    assert (reader.status, body, reader.complete) == (202, b"ok", True)


def test_a_body_without_a_length_ends_when_the_peer_closes() -> None:
    reader = MessageReader(response=True)
    body = reader.feed(b"HTTP/1.1 200 OK\r\n\r\nsome") + reader.feed(b" more")

    assert not reader.complete
    assert reader.end()
    assert body == b"some more"


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"x" * (HEAD_BYTES_MAX + 1),
    ],
)
def test_what_is_not_http_is_refused(garbage: bytes) -> None:
    with pytest.raises(BadRequest):
        MessageReader(response=True).feed(garbage)


@given(data=st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes) -> None:
    for response in (True, False):
        with contextlib.suppress(BadRequest):
            MessageReader(response=response).feed(data)


def test_a_request_is_read_back_as_it_was_written() -> None:
    address = broker_address("http://[::1]:8400/under/a/proxy/")
    reader = MessageReader(response=False)

    body = reader.feed(request_bytes(address, "POST", "/events", body=b"hello"))

    assert reader.start_line == "POST /under/a/proxy/events HTTP/1.1"
    assert reader.headers["host"] == "[::1]:8400"
    assert body == b"hello"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("http://broker", "http://broker:80"),
        ("https://broker/x/", "https://broker:443/x"),
        ("http://[fe80::1]:1", "http://[fe80::1]:1"),
    ],
)
def test_an_address_is_taken_apart_and_put_together(text: str, shown: str) -> None:
    assert str(broker_address(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "ftp://x",
        "http://",
        "http://x:99999",
        "http://x:http",
        "http://u@x",
        "http://a b",
        "http://é",
    ],
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadSetting, match=r"127\.0\.0\.1:8400"):
        broker_address(text)
