"""DIME: a message is the same wherever the network cuts it, and what is no message is told."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFrame
from tocsin.wire.dime import (
    Decoder,
    DimeLimits,
    Message,
    Part,
    TypeFormat,
    encode,
    envelope_message,
    read_envelope_message,
    without_filling,
)
from tocsin.wire.soap.names import SOAP11, SOAP12

CAPTURES = Path(__file__).parent.parent / "captures" / "ws"
HI = Message((Part(TypeFormat.URI, SOAP11.encode(), b"", b"<hi/>"),))
TERMINATOR = bytes.fromhex("0a40 0000 0000 0000 0000 0000")

named = st.builds(
    Part,
    st.sampled_from([TypeFormat.MEDIA_TYPE, TypeFormat.URI]),
    st.binary(min_size=1, max_size=9),
    st.binary(max_size=9),
    st.binary(max_size=40),
)
nameless = st.builds(
    Part,
    st.just(TypeFormat.UNKNOWN),
    st.just(b""),
    st.binary(max_size=9),
    st.binary(max_size=40),
)
messages = st.builds(Message, st.lists(named | nameless, max_size=4).map(tuple))


def decode(*pieces: bytes, limits: DimeLimits | None = None) -> list[Message]:
    decoder = Decoder(limits)
    found: list[Message] = []
    for piece in pieces:
        decoder.receive(piece)
        while (message := decoder.next_message()) is not None:
            found.append(message)
    decoder.end()
    return found


def record(
    first: int,
    second: int,
    *,
    options: bytes = b"",
    id_: bytes = b"",
    type_: bytes = b"",
    data: bytes = b"",
) -> bytes:
    fields = (options, id_, type_)
    head = bytes([first, second]) + b"".join(len(field).to_bytes(2, "big") for field in fields)
    padded = (field + bytes(-len(field) % 4) for field in (*fields, data))
    return head + len(data).to_bytes(4, "big") + b"".join(padded)


@given(message=messages, chunk_bytes_max=st.none() | st.integers(1, 50), terminated=st.booleans())
def test_what_is_encoded_is_decoded_however_it_is_chunked(
    message: Message, chunk_bytes_max: int | None, terminated: bool
) -> None:
    stream = encode(message, chunk_bytes_max=chunk_bytes_max, terminated=terminated)

    assert len(stream) % 4 == 0
    assert decode(stream) == [message]


@given(sent=st.lists(messages, max_size=4), cuts=st.lists(st.integers(0, 600), max_size=8))
def test_where_the_network_cuts_the_stream_makes_no_difference(
    sent: list[Message], cuts: list[int]
) -> None:
    stream = b"".join(encode(message, chunk_bytes_max=7) for message in sent)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    pieces = [stream[a:b] for a, b in itertools.pairwise(places)]

    assert decode(*pieces) == sent


def outcome(pieces: list[bytes]) -> tuple[list[Message], str]:
    decoder = Decoder(DimeLimits(message_bytes_max=64, records_max=5, field_bytes_max=16))
    found: list[Message] = []
    try:
        for piece in pieces:
            decoder.receive(piece)
            while (message := decoder.next_message()) is not None:
                found.append(message)
        decoder.end()
    except BadFrame as error:
        return found, error.problem
    return found, ""


@given(
    sent=st.lists(messages, max_size=3),
    at=st.integers(0, 300),
    byte=st.integers(0, 255),
    garbage=st.binary(max_size=40),
)
def test_a_damaged_stream_ends_in_one_error_that_does_not_depend_on_the_cuts(
    sent: list[Message], at: int, byte: int, garbage: bytes
) -> None:
    stream = bytearray(b"".join(encode(message) for message in sent) + garbage)
    if at < len(stream):
        stream[at] = byte
    whole = bytes(stream)

    at_once = outcome([whole])

    assert outcome([whole[i : i + 1] for i in range(len(whole))]) == at_once


@pytest.mark.parametrize(
    ("name", "body"),
    [("req", b"http://schemas.xmlsoap.org/ws/2004/08/eventing/Subscribe<"), ("resp", b">ok</")],
)
def test_the_messages_of_wse_are_read_without_their_mark_and_filling(
    name: str, body: bytes
) -> None:
    stream = (CAPTURES / f"wsetcp_dime_soap11_01_{name}.bin").read_bytes()
    pieces = [stream[i : i + 1_000] for i in range(0, len(stream), 1_000)]

    (message,) = decode(*pieces)
    soap, envelope = read_envelope_message(message)

    assert soap == "1.1"
    assert envelope.startswith(b"<?xml")
    assert envelope.endswith(b"</s:Envelope>")
    assert body in envelope


def test_our_record_is_the_one_that_wse_writes() -> None:
    captured = (CAPTURES / "wsetcp_dime_soap11_01_req.bin").read_bytes()
    (message,) = decode(captured)

    assert envelope_message("1.1", message.parts[0].data) == captured


def test_the_type_tells_the_version_of_soap() -> None:
    (message,) = decode(envelope_message("1.2", b"<e/>"))

    assert message.parts[0].type == SOAP12.encode()
    assert read_envelope_message(message) == ("1.2", b"<e/>")


def test_a_message_may_be_ended_by_a_record_of_its_own() -> None:
    stream = encode(HI, terminated=True)

    assert stream.endswith(TERMINATOR)
    assert stream[0] == 0b00001_100
    assert decode(stream) == [HI]


def test_the_text_before_and_behind_the_xml_is_taken_away_in_every_encoding() -> None:
    assert without_filling(b"\xef\xbb\xbf<a/>\0\0\0") == b"<a/>"
    for encoding in ("utf-16-le", "utf-16-be"):
        text = "\ufeff<a/>".encode(encoding)
        assert without_filling(text + bytes(6)) == text


BROKEN = {
    "not DIME": b"POST /soap HTTP/1.1\r\n",
    "which is not DIME": b"\x16",  # the first byte of TLS, and nothing after it
    "reserved bit": record(0x0E, 0x21, type_=b"t"),
    "does not begin": record(0x0A, 0x20, type_=b"t"),
    "begins a message within": record(0x0C, 0x20, type_=b"t") + record(0x0E, 0x20, type_=b"t"),
    "a chunk of nothing": record(0x0E, 0x00),
    "not a chunk though": record(0x0D, 0x20, type_=b"t") + record(0x0A, 0x20, type_=b"t"),
    "ends the message though": record(0x0F, 0x20, type_=b"t"),
    "says that more": record(0x0D, 0x40),
    "unknown type format 9": record(0x0E, 0x90),
    "a type though": record(0x0E, 0x30, type_=b"t"),
    "id of its own": record(0x0D, 0x20, type_=b"t") + record(0x0A, 0x00, id_=b"i"),
    "content though": record(0x0E, 0x40, data=b"d"),
    "no type though": record(0x0E, 0x20, data=b"d"),
    "ended in the middle of a message": encode(HI)[:-1],
}


@pytest.mark.parametrize("problem", BROKEN)
def test_what_is_no_message_is_told(problem: str) -> None:
    with pytest.raises(BadFrame, match=problem):
        decode(BROKEN[problem])


@pytest.mark.parametrize(
    ("announced", "problem"),
    [
        ("0e20 0000 0000 0001 0000 0065", "the message has 101 bytes"),
        ("0e20 0000 0000 0001 ffff ffff", "the message has 4294967295 bytes"),
        ("0e20 0011 0000 0001 0000 0000", "a field of the record's head has 17 bytes"),
        ("0e20 0000 ffff 0001 0000 0000", "a field of the record's head has 65535 bytes"),
        ("0e20 0000 0000 0011 0000 0000", "a field of the record's head has 17 bytes"),
    ],
)
def test_what_is_too_much_is_refused_before_it_comes(announced: str, problem: str) -> None:
    limits = DimeLimits(message_bytes_max=100, field_bytes_max=16)
    decoder = Decoder(limits)
    decoder.receive(bytes.fromhex(announced))

    with pytest.raises(BadFrame, match=problem):
        decoder.next_message()


def test_the_chunks_of_a_message_together_keep_to_its_limits() -> None:
    long = Message((Part(TypeFormat.UNKNOWN, b"", b"", bytes(100)),))

    assert decode(encode(long, chunk_bytes_max=25), limits=DimeLimits(100, 4)) == [long]
    with pytest.raises(BadFrame, match="has 100 bytes"):
        decode(encode(long, chunk_bytes_max=25), limits=DimeLimits(99, 4))
    with pytest.raises(BadFrame, match="more than 3 records"):
        decode(encode(long, chunk_bytes_max=25), limits=DimeLimits(100, 3))


def test_the_limits_are_of_one_message_and_not_of_the_stream() -> None:
    stream = encode(HI) * 50

    assert decode(stream, limits=DimeLimits(10, 1, 64)) == [HI] * 50


def test_messages_before_the_damage_are_had_and_after_it_nothing_is() -> None:
    decoder = Decoder()
    decoder.receive(encode(HI) + b"GARBAGE")

    assert decoder.next_message() == HI
    for _ in range(2):
        with pytest.raises(BadFrame):
            decoder.next_message()
        with contextlib.suppress(BadFrame):
            decoder.receive(encode(HI))


@pytest.mark.parametrize(
    "message",
    [
        Message(()),
        Message(HI.parts * 2),
        Message((Part(TypeFormat.URI, b"http://www.w3.org/2001/12/soap-envelope", b"", b""),)),
        Message((Part(TypeFormat.UNKNOWN, b"", b"", b"<hi/>"),)),
        Message((Part(TypeFormat.MEDIA_TYPE, SOAP11.encode(), b"", b"<hi/>"),)),
    ],
)
def test_a_message_that_is_not_one_envelope_is_refused(message: Message) -> None:
    with pytest.raises(BadFrame):
        read_envelope_message(message)


def test_what_came_is_not_kept_after_it_was_read() -> None:
    decoder = Decoder()
    stream = encode(HI)
    for _ in range(1_000):
        decoder.receive(stream)
        assert decoder.next_message() == HI
        assert decoder.is_between_messages

    assert len(decoder._buffer) <= len(stream)
