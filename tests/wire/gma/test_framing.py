"""Frames: messages with their length in front, wherever the network cuts the stream."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFrame
from tocsin.wire.framing import FrameSplitter, framed

BYTES_MAX = 1_000


@given(
    messages=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_where_the_stream_is_cut_makes_no_difference(
    messages: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(framed, messages))
    splitter = FrameSplitter(BYTES_MAX)

    found: list[bytes] = []
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    for start, end in pairwise(places):
        found += splitter.split(stream[start:end])

    assert found == messages
    assert splitter.waiting == 0


@given(
    messages=st.lists(st.binary(min_size=1, max_size=40), max_size=4),
    bad=st.sampled_from([0, BYTES_MAX + 1, 2**31, 2**32 - 1]),
    cut=st.integers(0, 200),
)
def test_messages_before_a_bad_length_are_given_out_wherever_the_stream_is_cut(
    messages: list[bytes], bad: int, cut: int
) -> None:
    stream = b"".join(map(framed, messages)) + struct.pack(">I", bad)
    splitter = FrameSplitter(BYTES_MAX)

    found: list[bytes] = []
    for part in (stream[:cut], stream[cut:]):
        with suppress(BadFrame):
            found += splitter.split(part)

    assert found == messages
    assert splitter.waiting == 0
    with pytest.raises(BadFrame):
        splitter.split(b"")


@pytest.mark.parametrize("size", [0, BYTES_MAX + 1, 2**31, 2**32 - 1])
def test_a_length_that_cannot_be_is_refused_at_once_and_for_good(size: int) -> None:
    splitter = FrameSplitter(BYTES_MAX)

    with pytest.raises(BadFrame) as first:
        splitter.split(struct.pack(">I", size) + b"x" * 100)
    with pytest.raises(BadFrame) as again:
        splitter.split(framed(b"sound"))

    assert first.value is again.value
    assert splitter.waiting == 0


def test_the_longest_message_that_is_allowed_is_given_out() -> None:
    splitter = FrameSplitter(BYTES_MAX)

    assert splitter.split(framed(b"x" * BYTES_MAX)) == [b"x" * BYTES_MAX]


def test_a_frame_of_three_bytes_is_a_message_that_the_codec_must_judge() -> None:
    assert FrameSplitter(BYTES_MAX).split(b"\0\0\0\x03<a>") == [b"<a>"]


def test_a_length_of_which_nothing_follows_holds_no_more_than_what_came() -> None:
    splitter = FrameSplitter(BYTES_MAX)

    assert splitter.split(struct.pack(">I", BYTES_MAX)) == []
    assert splitter.waiting == 4
    assert splitter.split(b"x" * 10) == []
    assert splitter.waiting == 14


@pytest.mark.parametrize(
    ("sent", "spoken"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /gma HTTP/1.1\r\n", "HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\0", "TLS"),
    ],
)
def test_who_speaks_something_else_is_told_what(sent: bytes, spoken: str) -> None:
    with pytest.raises(BadFrame, match=spoken):
        FrameSplitter(BYTES_MAX).split(sent)
