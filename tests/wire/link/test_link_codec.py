"""Link messages keep what they say, and nothing else passes for one."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFrame, BadLinkMessage, TocsinError
from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.wire.framing import HEAD_BYTES, framed
from tocsin.wire.link import messages as m
from tocsin.wire.link.codec import (
    FRAME_BYTES_MAX,
    LinkMessage,
    LinkReader,
    check_relayed,
    decode,
    encode,
)
from tocsin.wire.link.discovery_messages import Cancel, Result, Results

READING = Event(
    id="e1",
    source="/host",
    type="reading",
    topic="hosts/a",
    extensions={"site": "x"},
    attributes={"load": 1.5, "disk": Quantity(3, "GB", "+-1")},
    data=b"\x00\xff",
)
RELAYED = m.Relayed("A", "log-A", 7, 1_000, 2, READING)
EXAMPLES: list[m.Message] = [
    m.Hello(m.PROTOCOL_VERSION, "A", "log-A", 3, "tocsin/1.0", "i", {"C": "A", "D": "C"}, "E", "n"),
    m.Welcome("5f" * 32),
    m.IssueToken("5eed"),
    m.TokenKept(),
    m.Refuse("T803", "the link would close a cycle"),
    m.Heartbeat(5),
    m.HeartbeatReply(5),
    m.Behind({"E": "D"}, ("C",)),
    m.PlacesKept(("A", "E"), ("B", "C")),
    m.Advertise("A", "all", ""),
    m.Unadvertise("A", "all"),
    m.Subscribe("A", "s1", "load > 5"),
    m.Unsubscribe("A", "s1"),
    m.Synced("subscriptions"),
    m.Ignored(4, "T806", "as many as may come by one"),
    m.Reached("A", "s1", ("B", "C")),
    m.Forget("C", 5),
    m.Events(12, (RELAYED,)),
    m.Events(13),
    m.Acknowledge(13),
    m.NotStored("T403", "the disk is full"),
    m.Resume(),
    m.Handover("A", "C", "h1", 4, 1, (RELAYED,)),
    m.HandedOver("A", "h1", 4, 1),
    m.Direct(m.PROTOCOL_VERSION, "A", "C"),
    m.Control("c1", "Entity/e", "A", "C", 255, 5, "answer", b"\x00\xff"),
    m.Serves("C", 5, ("a-tdn",)),
    m.Bye("stopping"),
]
messages: st.SearchStrategy[LinkMessage] = st.sampled_from([*EXAMPLES, Cancel("r1")])


def body_of(message: LinkMessage) -> bytes:
    return encode(message)[HEAD_BYTES:]


def test_every_kind_of_message_is_read_as_it_was_written() -> None:
    assert {type(each) for each in EXAMPLES} == set(m.Message.__args__)
    for message in EXAMPLES:
        assert decode(body_of(message)) == message


def test_a_message_of_resource_discovery_travels_with_the_others() -> None:
    found = Results(
        "r1", (Result(adv_id="a", broker="A", resource_id="r", attributes={}, as_of_ns=5),)
    )

    stream = encode(m.Welcome()) + encode(found) + encode(Cancel("r1"))

    assert LinkReader().read(stream) == [m.Welcome(), found, Cancel("r1")]


def test_a_message_is_an_array_that_begins_with_its_name() -> None:
    assert body_of(m.Subscribe("A", "s1", "load > 5")) == msgspec.msgpack.encode(
        ["subscribe", "A", "s1", "load > 5"]
    )


@given(st.lists(messages), st.lists(st.integers(0, 4_000)))
def test_where_the_network_cuts_the_stream_makes_no_difference(
    sent: list[LinkMessage], cuts: list[int]
) -> None:
    stream = b"".join(map(encode, sent))
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    reader = LinkReader()

    read = [
        message for start, end in pairwise(places) for message in reader.read(stream[start:end])
    ]

    assert read == sent
    assert reader.waiting == 0


@given(messages, st.data())
def test_a_message_cut_short_is_none(message: LinkMessage, data: st.DataObject) -> None:
    body = body_of(message)
    cut = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(BadLinkMessage):
        decode(body[:cut])
    with pytest.raises(BadLinkMessage):
        decode(body + b"\x00")


@given(st.binary(max_size=200))
def test_garbage_is_a_message_or_a_clear_error(garbage: bytes) -> None:
    for attempt in (garbage, framed(garbage)):
        with suppress(BadFrame, BadLinkMessage):
            LinkReader().read(attempt)


@given(messages, st.integers(0, 10_000), st.integers(1, 255))
def test_a_flipped_byte_gives_a_message_or_a_clear_error(
    message: LinkMessage, place: int, flip: int
) -> None:
    body = bytearray(body_of(message))
    body[place % len(body)] ^= flip
    with suppress(BadLinkMessage):
        decode(bytes(body))


@pytest.mark.parametrize(
    "fields",
    [
        ["shout", "A"],
        ["discovery"],
        ["discovery", {"type": "shout"}],
        ["discovery", ["cancel", "r1"]],
        ["welcome", "and more"],
        ["subscribe", "A", "s1"],
        ["subscribe", "A", "s1", 5],
        ["subscribe", "A", "", "load > 5"],
        ["subscribe", "A", "s" * 257, "load > 5"],
        ["subscribe", "A", "s1", "x" * (m.FILTER_CHARS_MAX + 1)],
        ["subscribe", "no id\n", "s1", ""],
        ["subscribe", "A" * 65, "s1", ""],
        ["acknowledge", -1],
        ["acknowledge", 1 << 63],
        ["acknowledge", True],
        ["synced", "everything"],
        ["behind", ["A"], []],
        ["behind", {"A": "B", "": "B"}, []],
        ["behind", {}, [f"b{n}" for n in range(m.BROKERS_MAX + 1)]],
        ["events", 1, [["A", "log", 1, 1, 256, ["id", "/s", "t"]]]],
        ["events", 1, [["A", "log", 1, 1, 0, ["id", "/s"]]]],
        {"type": "welcome"},
        "welcome",
        [],
        None,
    ],
)
def test_what_is_almost_a_message_is_refused(fields: object) -> None:
    with pytest.raises(BadLinkMessage) as caught:
        decode(msgspec.msgpack.encode(fields))

    assert str(caught.value).startswith("invalid message on a link between brokers: ")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BadLinkMessage):
        decode(b"\x91" * 1_000_000)


@pytest.mark.parametrize("size", [FRAME_BYTES_MAX + 1, (1 << 32) - 1])
def test_a_frame_over_the_limit_is_refused_by_its_length(size: int) -> None:
    reader = LinkReader()

    with pytest.raises(BadFrame):
        reader.read(size.to_bytes(4, "big"))

    assert reader.waiting == 0


def test_messages_before_the_bad_one_are_given_out_first() -> None:
    reader = LinkReader()

    assert reader.read(encode(m.Welcome()) + framed(b"\xc0")) == [m.Welcome()]
    assert isinstance(reader.refusal, BadLinkMessage)
    with pytest.raises(BadLinkMessage):
        reader.read(b"")


@pytest.mark.parametrize(
    "event",
    [
        msgspec.structs.replace(READING, topic="a//b"),
        msgspec.structs.replace(READING, id=""),
        msgspec.structs.replace(READING, attributes={"load": float("nan")}),
        msgspec.structs.replace(READING, extensions={"id": "twice"}),
    ],
)
def test_an_event_that_could_not_have_been_published_is_found(event: Event) -> None:
    check_relayed(msgspec.structs.replace(RELAYED, event=READING))

    with pytest.raises(TocsinError):
        check_relayed(msgspec.structs.replace(RELAYED, event=event))
