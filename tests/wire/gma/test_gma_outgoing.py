"""Every event of the broker as a performance event, with names, types, units and times kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mediated import RECEIVED_NS, sent

from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.safexml import parse
from tocsin.wire.gma.messages import Element, PerformanceEvent
from tocsin.wire.gma.names import EventName, name_of
from tocsin.wire.gma.normal import (
    content_of,
    name_of_event,
)
from tocsin.wire.gma.plain import ELEMENTS_MAX
from tocsin.wire.gma.stamp import read_stamp
from wire.gma.drawn import scalars, texts

# Out


def an_event(data: bytes | None, media_type: str | None, **more: Any) -> Event:
    return Event("1", "/s", "com.example.order", datacontenttype=media_type, data=data, **more)


def test_json_is_told_as_elements_with_their_types_and_units() -> None:
    order = {
        "load": 1.5,
        "count": 3,
        "up": True,
        "host": "foo.gov",
        "code": "007",
        "free": {"value": 12, "unit": "GB", "accuracy": "+/-1"},
        "disk": {"name": "sda", "temperature": 30},
        "tags": ["a", "b"],
        "nothing": None,
        "empty": {},
        "big": 2**70,
        "two words": 1,
        "Größe": 2,
    }
    event = an_event(json.dumps(order).encode(), "application/json", time="2024-05-01T12:00:00Z")

    reported = sent(event)

    assert reported == PerformanceEvent(
        EventName("com.example.order", "urn:tocsin:type"),
        "2024-05-01T12:00:00Z",
        (
            Element("load", 1.5),
            Element("count", 3),
            Element("up", True),
            Element("host", "foo.gov"),
            Element("code", "007"),
            Element("free", 12, "GB", "+/-1"),
            Element("disk.name", "sda"),
            Element("disk.temperature", 30),
            Element("tags.1", "a"),
            Element("tags.2", "b"),
            Element("empty", ""),
            Element("big", str(2**70)),
            Element("two_x0020_words", 1),
            Element("Größe", 2),
        ),
    )
    assert reported.name.type == event.type
    assert name_of_event(event) == reported.name


@pytest.mark.parametrize(
    ("data", "media_type", "elements"),
    [
        (None, None, ()),
        (b"", "text/plain", (Element("DataContentType", "text/plain"), Element("Data", ""))),
        (b"42", "text/plain", (Element("DataContentType", "text/plain"), Element("Data", "42"))),
        (
            b"\xff\0",
            "image/png",
            (Element("DataContentType", "image/png"), Element("DataBase64", "/wA=")),
        ),
        (b"[1, 2]", None, (Element("Data", "[1, 2]"),)),
        (b"{", None, (Element("Data", "{"),)),
        (
            b"<broken",
            "application/xml",
            (Element("DataContentType", "application/xml"), Element("Data", "<broken")),
        ),
    ],
)
def test_what_is_no_object_is_told_whole(
    data: bytes | None, media_type: str | None, elements: tuple[Element, ...]
) -> None:
    assert sent(an_event(data, media_type)).elements == elements


def test_without_a_time_an_event_has_the_time_at_which_it_was_received() -> None:
    assert sent(an_event(None, None)).time == "2023-11-14T22:13:20.123456789Z"


def test_attributes_and_extensions_are_told_beside_the_data() -> None:
    event = an_event(
        b'{"load": 2}',
        None,
        attributes={"wait": Quantity(2, "min"), "load": 9},
        extensions={"priority": 5},
    )

    assert sent(event).elements == (
        Element("load", 2),
        Element("wait", 2, "min"),
        Element("priority", 5),
    )


def test_units_that_go_on_and_on_are_cut() -> None:
    event = an_event(None, None, attributes={"wait": Quantity(2, "m" * 9_999, "\0")})

    assert sent(event).elements == (Element("wait", 2, "m" * 256, "\ufffd"),)


def test_a_payload_of_another_door_goes_out_as_it_was_with_the_time() -> None:
    payload = b'<n:state xmlns:n="urn:x"><n:job units="h">5</n:job><note/></n:state>'
    event = Event("1", "/s", "urn:x/state", datacontenttype="application/xml", data=payload)

    content = content_of(event, RECEIVED_NS)

    assert content.startswith(
        b'<n:state xmlns="" xmlns:n="urn:x"><n:job units="h">5</n:job><note/>'
    )
    assert sent(event) == PerformanceEvent(
        EventName("state", "urn:x"),
        "2023-11-14T22:13:20.123456789Z",
        (Element("job", 5, "h"), Element("note", "")),
    )
    assert name_of_event(event) == EventName("state", "urn:x")


def test_a_payload_that_is_not_what_the_type_says_goes_out_inside_the_event() -> None:
    event = an_event(b"<order><id>7</id></order>", "application/xml", extensions={"priority": 5})

    content = content_of(event, RECEIVED_NS)

    assert b'<order xmlns=""><id>7</id></order>' in content
    assert sent(event).elements == (
        Element("order", (Element("id", 7),)),
        Element("priority", 5),
    )


def _nested(depth: int) -> str:
    return "<a>" * depth + "</a>" * depth


@pytest.mark.parametrize(
    "payload",
    [
        f"<order>{_nested(60)}</order>",
        f"<order>{'<a/>' * ELEMENTS_MAX}</order>",
        f"<{'x' * 300}/>",
        "<order><TimeStamp>yesterday</TimeStamp></order>",
        "<order><TimeStamp/><TimeStamp/></order>",
        "<TimeStamp>yesterday</TimeStamp>",
        "<Error>out of paper</Error>",
        "<order xmlns='http://www.gridforum.org/Performance/Protocol'/>",
        "<Error xmlns='http://www.gridforum.org/Performance/Protocol'>1</Error>",
        "<Context xmlns='urn:tocsin:gma:1' seq='1' id='forged' source='' topic=''/>",
        "<UptimeCPULoadEvent xmlns='http://www.gridforum.org/Performance/Events'/>",
        "<!-- c --><order/><!-- d -->",
        "<?xml version='1.0'?><order>text<b/>more</order>",
        "<p:order xmlns:p='urn:x' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'"
        " i:type='p:Order'><v i:type='int'>x</v></p:order>",
    ],
)
@pytest.mark.parametrize("type_is_payloads", [True, False])
def test_whatever_the_payload_a_consumer_finds_one_event_of_the_type(
    payload: str, type_is_payloads: bool
) -> None:
    tag = parse(payload.encode()).tag
    namespace, _, local = str(tag).rpartition("}")
    own_type = f"{namespace[1:]}/{local}" if namespace else local
    event_type = own_type if type_is_payloads else "com.example.order"
    event = Event("1", "/s", event_type, datacontenttype="text/xml", data=payload.encode())

    reported = sent(event)

    assert reported.name.type == event_type or len(event_type) > 256
    assert name_of_event(event).type == event_type or len(event_type) > 256
    assert reported.time == "2023-11-14T22:13:20.123456789Z"


json_values = st.recursive(
    st.none() | scalars | st.text(max_size=5) | st.floats() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
event_types = st.sampled_from(
    ["com.example.order", "urn:x/state", "Error", "urn:tocsin:gma:1/Context", "two words", "urn:ä"]
) | st.text(min_size=1, max_size=12)
events = st.builds(
    Event,
    id=st.just("1"),
    source=st.just("/s"),
    type=event_types,
    time=st.sampled_from([None, "2024-05-01T12:00:00.5+02:00", "2016-12-31t23:59:60z"]),
    datacontenttype=st.sampled_from([None, "application/json", "text/plain", "a/b+xml", "x/y"]),
    extensions=st.dictionaries(st.text("abTimeS1", min_size=1, max_size=5), scalars, max_size=3),
    attributes=st.dictionaries(
        st.text(max_size=9) | st.just("TimeStamp"),
        scalars | st.builds(Quantity, scalars, st.none() | texts, st.none() | st.text(max_size=4)),
        max_size=3,
    ),
    data=st.none()
    | st.binary(max_size=20)
    | st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace"))
    | st.dictionaries(st.text(max_size=9) | st.just("TimeStamp"), json_values, max_size=4).map(
        lambda value: json.dumps(value).encode()
    )
    | st.sampled_from(
        [b"<a/>", b"<Error/>", b'<state xmlns="urn:x"/>', b"<order><TimeStamp/></order>"]
    ),
)


@settings(max_examples=300)
@given(event=events)
def test_every_event_of_the_broker_is_a_performance_event_of_its_type_and_time(
    event: Event,
) -> None:
    reported = sent(event)

    assert reported.name.type == event.type
    assert name_of_event(event).type == event.type
    if event.time is not None:
        assert read_stamp(reported.time).time == read_stamp(event.time).time


@given(members=st.dictionaries(st.text(max_size=9), st.integers(-(2**63), 2**63 - 1), max_size=5))
def test_numbers_of_a_json_object_keep_their_names_and_types(members: dict[str, int]) -> None:
    reported = sent(an_event(json.dumps(members).encode(), None))

    assert [each.value for each in reported.elements] == [
        value for name, value in members.items() if name != "TimeStamp"
    ]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({f"n{number}": number for number in range(ELEMENTS_MAX)}).encode(),
        json.dumps({"list": list(range(ELEMENTS_MAX))}).encode(),
        json.dumps({"x" * 300: 1}).encode(),
        b'{"a":' * 18 + b"1" + b"}" * 18,
        b'{"a":' * 60 + b"1" + b"}" * 60,
        b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"a":' + b"9" * 5_000 + b"}",
    ],
    ids=range(7),
)
def test_json_that_is_too_large_for_elements_is_told_as_text(data: bytes) -> None:
    assert sent(an_event(data, None)).elements == (Element("Data", data.decode()),)


def test_the_most_that_can_be_told_as_elements_is() -> None:
    most = {f"n{number}": number for number in range(ELEMENTS_MAX - 2)}
    event = an_event(json.dumps(most).encode(), None, attributes={"more": 1, "most": 2})

    assert len(sent(event).elements) == ELEMENTS_MAX - 1


def test_the_name_of_a_type_is_the_name_under_which_its_events_go_out() -> None:
    assert sent(an_event(None, None)).name == name_of("com.example.order")
