"""A head that was read before is read the same way again, however the network cuts the bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from raw_http import get, post

from tocsin.config import HttpSettings
from tocsin.drivers.http.head_cache import HEADS_MAX, OWN_HEADS_MAX, HeadCache
from tocsin.drivers.http.reader import IDLE, RequestReader
from tocsin.drivers.http.request import Headers
from tocsin.errors import TocsinError

LIMITS = HttpSettings(body_bytes_max=1_000)

Received = tuple[object, ...]


class Ear:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.received: list[Received] = []

    def requested(
        self,
        method: bytes,
        target: bytes,
        version: str,
        headers: Headers,
        body: bytes,
        keep_alive: bool,
    ) -> None:
        self.received.append((method, target, version, dict(headers), body, keep_alive))

    def expects_continue(self) -> None:
        self.received.append(("continue",))

    def refuse(self, error: TocsinError) -> None:
        self.received.append((error.code,))

    def failed(self, cause: BaseException) -> None:
        raise cause

    def upgraded(self, rest: bytes) -> None:
        self.received.append(("upgraded", rest))


def read(pieces: list[bytes], heads: HeadCache) -> list[Received]:
    """What a connection hears, up to the first thing that ends it."""
    ear = Ear()
    reader = RequestReader(ear, LIMITS, heads)
    for piece in pieces:
        reader.feed(piece)
        if ear.received and len(ear.received[-1]) < 6:
            break
    return ear.received


REQUESTS = st.lists(
    st.sampled_from(
        [
            post(b"{}"),
            post(b"{}"),
            post(b"[]", extra="X-Trace: 1\r\n"),
            post(b"{}", extra="Authorization: Bearer a\r\n"),
            post(b"[]", extra="Authorization: Bearer b\r\n"),
            post(b"{}", extra="Cookie: tocsin_token=a\r\n"),
            post(b"{ }"),
            post(b""),
            post(b"{}", extra="Connection: close\r\n"),
            post(b"{}", extra="Connection: keep-alive\r\n"),
            post(b"{}", extra="Content-Encoding: gzip\r\n"),
            post(b"{}", extra="Origin: http://evil.example\r\n"),
            post(b"{}").replace(b"1.1", b"1.0"),
            post(b"{}").replace(b"/events", b"/boxes"),
            post(b"{}").replace(b"Host: localhost\r\n", b""),
            post(b"x" * 1_001),
            b"\r\n" + post(b"{}"),
            post(b"\r\n\r\n"),
            get("/events"),
            b"nonsense\r\n\r\n",
        ]
    ),
    max_size=5,
)


@given(st.lists(REQUESTS, max_size=3), REQUESTS, st.data())
def test_what_is_known_changes_nothing_about_what_is_read(
    before: list[list[bytes]], requests: list[bytes], data: st.DataObject
) -> None:
    heads = HeadCache()
    for earlier in before:
        read(earlier, heads)
    stream = b"".join(requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]

    expected = read([stream[n : n + 1] for n in range(len(stream))], HeadCache())

    assert read(pieces, heads) == expected
    assert read(requests, heads) == expected
    assert read([stream], heads) == expected


def test_a_publish_that_comes_again_is_known() -> None:
    heads = HeadCache()
    request = post(b"{}")
    assert heads.find(request) is None

    (received,) = read([request], heads)

    assert heads.find(request) == (received[3], b"{}")
    assert heads.find(post(b"[]")) == (received[3], b"[]")


def test_a_head_with_a_credential_is_known_to_its_own_connection_alone() -> None:
    ear, heads = Ear(), HeadCache()
    reader = RequestReader(ear, LIMITS, heads)
    request = post(b"{}", extra="Authorization: Bearer a\r\n")
    reader.feed(request)
    (received,) = ear.received

    assert heads.find(request) is None
    assert reader._own_heads is not None
    assert reader._own_heads.find(request) == (received[3], b"{}")
    assert reader._own_heads.find(request.replace(b"Bearer a", b"Bearer b")) is None
    for number in range(OWN_HEADS_MAX + 1):
        reader.feed(post(b"{}", extra=f"Authorization: Bearer {number}\r\n"))
    assert reader._own_heads.find(request) is None


def test_half_a_request_or_more_than_one_is_never_known() -> None:
    heads = HeadCache()
    request = post(b"x" * 98)
    read([request], heads)

    assert heads.find(request) is not None
    assert heads.find(request * 2) is None
    assert all(heads.find(request[:end]) is None for end in range(len(request)))


def test_only_so_many_heads_are_remembered() -> None:
    heads = HeadCache()
    for number in range(HEADS_MAX + 10):
        read([post(b"{}", extra=f"X-Trace: {number}\r\n")], heads)

    assert heads.find(post(b"{}", extra="X-Trace: 0\r\n")) is None
    assert heads.find(post(b"{}", extra=f"X-Trace: {HEADS_MAX + 9}\r\n")) is not None


def test_a_reader_is_idle_between_requests_known_or_not() -> None:
    ear, heads = Ear(), HeadCache()
    reader = RequestReader(ear, LIMITS, heads)
    for _ in range(3):
        reader.feed(post(b"{}"))
        assert reader.phase == IDLE

    assert len(ear.received) == 3
