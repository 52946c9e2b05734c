"""Reading CloudEvents: the three modes, what is kept, and what is refused with which words."""

from __future__ import annotations

import base64
import json

import pytest
from cloudevents_read import (
    BATCH,
    HEADERS,
    LIMITS,
    least,
    read_one,
    with_data,
    with_members,
)

from tocsin.errors import BadEvent, BadTopic, TooLarge
from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.wire.cloudevents import Limits, read_events


def test_a_structured_event_keeps_every_attribute() -> None:
    event = read_one(
        with_members(
            topic="lead/ohio/radar",
            time="2024-02-29T23:59:60.5+05:30",
            subject="run 7",
            datacontenttype="application/json",
            dataschema="https://example.org/schema",
            load5=1.5,
            nodes=12,
            urgent=True,
            owner="Zoë",
        )
    )

    assert event == Event(
        id="1",
        source="/radar",
        type="echo",
        topic="lead/ohio/radar",
        time="2024-02-29T23:59:60.5+05:30",
        subject="run 7",
        datacontenttype="application/json",
        dataschema="https://example.org/schema",
        extensions={"load5": 1.5, "nodes": 12, "urgent": True, "owner": "Zoë"},
    )


@pytest.mark.parametrize(
    ("media_type", "member", "kept"),
    [
        (None, b'{"b" : 1.00,\n "a":[ ]}', b'{"b" : 1.00,\n "a":[ ]}'),
        ("application/json", b'"text"', b'"text"'),
        ("application/vnd.x+json; v=1", b"[1, 2]", b"[1, 2]"),
        (None, b"null", b"null"),
        ("text/plain", b'"caf\\u00e9\\n"', "café\n".encode()),
        ("application/xml", b'"<a b=\\"c\\"/>"', b'<a b="c"/>'),
        ("text/plain", b"[1, 2]", b"[1, 2]"),
        ("text/plain", b"null", None),
    ],
)
def test_data_is_kept_as_it_was_sent(
    media_type: str | None, member: bytes, kept: bytes | None
) -> None:
    body = with_data(member)
    if media_type is not None:
        body = body[:-1] + b',"datacontenttype":"%b"}' % media_type.encode()

    assert read_one(body).data == kept


def test_base64_data_is_decoded_and_only_that_which_is_base64() -> None:
    packed = base64.b64encode(b"\x00\xffecho").decode()

    assert read_one(with_members(data_base64=packed)).data == b"\x00\xffecho"
    assert read_one(with_members(data_base64="")).data == b""
    assert read_one(with_members(data_base64=None, data=1)).data == b"1"
    for wrong in ("AA\n==", "A", "AA", "A-_=", "AA==AA==", 7, "é"):
        with pytest.raises(BadEvent, match="base64"):
            read_one(with_members(data_base64=wrong))


def test_data_twice_is_refused() -> None:
    with pytest.raises(BadEvent, match="both"):
        read_one(with_members(data=None, data_base64="AA=="))


def test_a_member_that_is_null_counts_as_absent() -> None:
    assert read_one(with_members(subject=None, load5=None, topic=None)) == Event(**least())


def test_a_member_sent_twice_is_refused() -> None:
    with pytest.raises(BadEvent, match="'id' comes twice"):
        read_one(with_members()[:-1] + b',"id":"2"}')


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": 1.0}, "specversion"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"source": None}, "source is missing"),
        ({"source": "two words"}, "source"),
        ({"source": "no\u00a0break"}, "source"),
        ({"type": ["echo"]}, "type"),
        ({"dataschema": ""}, "dataschema"),
        ({"dataschema": "a b"}, "dataschema"),
        ({"datacontenttype": "json"}, "datacontenttype"),
        ({"datacontenttype": "text/plain;" + "x" * 1024}, "datacontenttype"),
        ({"time": f"2024-05-01T12:00:00.{'0' * 65}Z"}, "time"),
        ({"topic": "a\ufffeb"}, "topic"),
        ({"datacontenttype": "text/plain\r\nx: y"}, "datacontenttype"),
        ({"datacontenttype": "text/plain; name=é"}, "datacontenttype"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2024-05-01"}, "time"),
        ({"time": "2024-05-01T12:00:00"}, "time"),
        ({"time": "2024-05-01T25:61:00Z"}, "time"),
        ({"time": "2024-05-01T12:00:61Z"}, "time"),
        ({"time": "2023-02-29T12:00:00Z"}, "time"),
        ({"time": "1900-02-29T12:00:00Z"}, "time"),
        ({"time": "0000-01-01T00:00:00Z"}, "time"),
        ({"time": "2024-13-01T00:00:00Z"}, "time"),
        ({"time": "2024-05-01T12:00:00+24:00"}, "time"),
        ({"time": "٢٠٢٤-05-01T12:00:00Z"}, "time"),
        ({"time": 1714564800}, "time"),
        ({"subject": "a\nb"}, r"subject.*U\+000A"),
        ({"subject": "a\x85b"}, r"subject.*U\+0085"),
        ({"subject": "a\ufdd0b"}, r"subject.*U\+FDD0"),
        ({"subject": "a\U0010ffffb"}, r"subject.*U\+10FFFF"),
        ({"owner": "a\x7fb"}, r"owner.*U\+007F"),
        ({"owner": {"name": "Zoë"}}, "owner"),
        ({"owner": "x" * 8193}, "owner.*8193"),
        ({"id": "x" * 8193}, "id.*8193"),
        ({"nodes": 1 << 63}, "nodes"),
        ({"Load": 1}, "Load"),
        ({"load_5": 1}, "load_5"),
        ({"": 1}, "name"),
        ({"x" * 65: 1}, "xxx"),
    ],
)
def test_a_bad_attribute_is_refused_by_name(members: dict[str, object], named: str) -> None:
    with pytest.raises(BadEvent, match=named) as caught:
        read_one(with_members(**members))

    assert caught.value.remedy
    assert len(str(caught.value)) < 400


def test_a_topic_must_be_a_topic() -> None:
    for topic in ("lead/*/radar", "a//b", ""):
        with pytest.raises(BadTopic):
            read_one(with_members(topic=topic))
    with pytest.raises(BadEvent, match="topic"):
        read_one(with_members(topic=7))


def test_numbers_beyond_32_bits_are_taken_and_stay_exact() -> None:
    numbers = {"low": -(1 << 63), "high": (1 << 63) - 1, "load5": 0.1}

    assert read_one(with_members(**numbers)).extensions == numbers


def test_a_batch_is_read_in_order_and_an_empty_one_is_empty() -> None:
    body = b"[%b,%b]" % (with_members(id="a"), with_members(id="b", load5=3))

    assert [event.id for event in read_events(BATCH, {}, body, LIMITS)] == ["a", "b"]
    assert read_events(BATCH, {}, b" [ ] ", LIMITS) == []


def test_one_bad_event_refuses_the_batch_and_is_named_by_its_place() -> None:
    for member, error in (({"id": ""}, BadEvent), ({"topic": "a//b"}, BadTopic)):
        body = b"[%b,%b]" % (with_members(), with_members(**member))
        with pytest.raises(error, match="event 1 of the batch"):
            read_events(BATCH, {}, body, LIMITS)


def test_limits_are_kept() -> None:
    small = Limits(event_bytes_max=200, batch_events_max=2, attributes_max=6, attribute_text_max=20)
    fine = with_members()

    assert len(read_events(BATCH, {}, b"[%b,%b]" % (fine, fine), small)) == 2
    with pytest.raises(TooLarge, match="3 events"):
        read_events(BATCH, {}, b"[%b,%b,%b]" % (fine, fine, fine), small)
    with pytest.raises(TooLarge, match="bytes"):
        read_one(with_members(data="x" * 200), small)
    with pytest.raises(TooLarge, match="event 0"):
        read_events(BATCH, {}, b"[%b]" % with_members(data="x" * 200), small)
    with pytest.raises(TooLarge):
        read_events("text/plain", HEADERS, b"x" * 201, small)
    with pytest.raises(BadEvent, match="7 attributes"):
        read_one(with_members(a=1, b=2, c=3), small)
    with pytest.raises(BadEvent, match="subject"):
        read_one(with_members(subject="x" * 21), small)


def test_typed_attributes_are_read_from_their_extension_and_from_the_data() -> None:
    wanted = {"load5": 1.5, "wait": Quantity(2, "min", "+/-1"), "up": True}
    written = {"load5": 1.5, "wait": {"value": 2, "unit": "min", "accuracy": "+/-1"}, "up": True}

    beside = read_one(with_members(tocsinattributes=json.dumps(written), data=[1]))
    within = read_one(with_members(tocsinattributes="data", data=written))

    assert (beside.attributes, beside.data) == (wanted, b"[1]")
    assert (within.attributes, within.data) == (wanted, None)
    for wrong in ("data", "[]", '{"a":{"value":[]}}', '{"a":{"volume":1}}', 7, "{" * 9999):
        with pytest.raises(BadEvent, match="tocsinattributes"):
            read_one(with_members(tocsinattributes=wrong))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_typed_attribute_that_no_log_can_hold_is_refused_at_the_door(number: int) -> None:
    for written in ({"size": number}, {"size": {"value": number, "unit": "MB"}}):
        for members in (
            {"tocsinattributes": json.dumps(written)},
            {"tocsinattributes": "data", "data": written},
        ):
            with pytest.raises(BadEvent, match=r"size.*64 bits"):
                read_one(with_members(**members))
