"""Writing CloudEvents: what was read comes out again, in every mode, and harms no header."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.event import CONTEXT_NAMES, Event, Value
from tocsin.event.stored import Stored
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.cloudevents import (
    Limits,
    batch,
    binary_headers,
    binary_of,
    read_events,
    structured,
    structured_of,
)
from tocsin.wire.cloudevents.write import canonical_text

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
LIMITS = Limits()

CLEAN = st.characters(
    exclude_categories=["Cc", "Cs"],
    exclude_characters=[
        *map(chr, range(0xFDD0, 0xFDF0)),
        *(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)),
    ],
)
TEXTS = st.text(CLEAN, max_size=12)
WORDS = st.text(CLEAN, min_size=1, max_size=12)
REFERENCES = WORDS.filter(lambda text: not any(char.isspace() for char in text))
TIMES = st.datetimes().map(lambda time: time.isoformat() + "Z")
MEDIA_TYPES = st.sampled_from(
    [
        "application/json",
        "application/x+json; v=2",
        "text/plain",
        "text/xml; charset=latin-1",
        "application/soap+xml",
        "application/octet-stream",
        "image/png",
    ]
)
SCALARS: st.SearchStrategy[Scalar] = st.one_of(
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
TAKEN = {"specversion", "data", "tocsinattributes", *CONTEXT_NAMES}
NAMES = st.from_regex(r"\A[a-z0-9]{1,20}\Z").filter(lambda name: name not in TAKEN)
EXTENSIONS = st.dictionaries(NAMES, SCALARS, max_size=4)
VALUES: st.SearchStrategy[Value] = st.one_of(
    SCALARS,
    st.text(max_size=8),
    st.builds(Quantity, SCALARS, st.none() | st.text(max_size=4), st.none() | TEXTS),
)
PAYLOADS = st.one_of(
    st.none(),
    st.binary(max_size=30),
    st.text(max_size=20).map(str.encode),
    st.recursive(SCALARS | st.none(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))
    .map(json.dumps)
    .map(str.encode),
)
EVENTS = st.builds(
    Event,
    id=WORDS,
    source=REFERENCES,
    type=WORDS,
    topic=st.sampled_from(["", "lead", "lead/ohio/radar", "Zoë/x y"]),
    time=st.none() | TIMES,
    subject=st.none() | TEXTS,
    datacontenttype=st.none() | MEDIA_TYPES,
    dataschema=st.none() | REFERENCES,
    extensions=EXTENSIONS,
    attributes=st.dictionaries(st.text(max_size=6), VALUES, max_size=3),
    data=PAYLOADS,
)


def replaced(event: Event, **changes: object) -> Event:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return Event(**{**fields, **changes})


def header_map(block: bytes) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in block.decode().split("\r\n")[:-1])


def from_binary(event: Event) -> Event:
    headers = header_map(binary_headers(event))
    content_type = headers.pop("content-type", "")
    (read,) = read_events(content_type, headers, event.data or b"", LIMITS)
    return read


@given(event=EVENTS)
def test_structured_and_back_is_the_same_event(event: Event) -> None:
    (read,) = read_events(STRUCTURED, {}, structured(event), LIMITS)

    # Space around a JSON payload is no part of the value, and the JSON format has no place for it.
    kept = event.data if read.data == event.data else (event.data or b"").strip(b" \t\r\n")
    assert read == replaced(event, data=kept)
    assert type(read.data) is type(event.data)


@given(event=EVENTS)
def test_binary_and_back_is_the_same_event_with_texts_for_numbers(event: Event) -> None:
    read = from_binary(event)

    texts = {name: canonical_text(value) for name, value in event.extensions.items()}
    said = read.datacontenttype if event.datacontenttype is None else event.datacontenttype
    assert read == replaced(event, extensions=texts, datacontenttype=said, data=event.data or None)
    assert said in (event.datacontenttype, "application/json")


@given(events=st.lists(EVENTS, max_size=3))
def test_a_batch_is_its_events(events: list[Event]) -> None:
    assert json.loads(batch(events)) == [json.loads(structured(event)) for event in events]
    assert len(read_events(BATCH, {}, batch(events), LIMITS)) == len(events)


@given(event=EVENTS)
def test_the_official_library_reads_what_we_write(event: Event) -> None:
    event = replaced(
        event,
        # It knows no fractions, no numbers of 64 bits and no empty subject.
        extensions={
            name: value
            for name, value in event.extensions.items()
            if isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 1 << 31)
        },
        subject=event.subject or None,
    )

    theirs = JSONFormat().read(CloudEvent, structured(event))

    assert (theirs.get_id(), theirs.get_source(), theirs.get_type()) == (
        event.id,
        event.source,
        event.type,
    )
    for name, value in event.extensions.items():
        assert theirs.get_extension(name) == value
    if event.data is not None and event.datacontenttype == "image/png":
        assert theirs.get_data() == event.data


def test_we_read_what_the_official_library_writes() -> None:
    theirs = CloudEvent(
        {
            "id": "7",
            "source": "/radar",
            "type": "echo",
            "time": datetime(2024, 5, 1, 12, tzinfo=UTC),
            "subject": "Zoë",
            "datacontenttype": "application/json",
            "owner": "a b",
        },
        {"load5": 1.5},
    )
    (read,) = read_events(STRUCTURED, {}, JSONFormat().write(theirs), LIMITS)

    assert (read.id, read.subject, read.extensions) == ("7", "Zoë", {"owner": "a b"})
    assert json.loads(read.data or b"") == {"load5": 1.5}


def test_the_official_library_reads_our_headers() -> None:
    event = Event("é 1", "/radar", "echo", data=b"\x00\xff", datacontenttype="image/png")
    headers = header_map(binary_headers(event))

    theirs = from_http_event(HTTPMessage(headers, event.data or b""))

    assert theirs.get_id() == "é 1"
    assert theirs.get_data() == b"\x00\xff"


@pytest.mark.parametrize(
    ("media_type", "data", "member", "written"),
    [
        ("application/json", b'{"a": 1.0}', "data", {"a": 1.0}),
        (None, b"[1]", "data", [1]),
        (None, b"null", "data", None),
        ("application/json", b"{broken", "data_base64", "e2Jyb2tlbg=="),
        ("application/json", b'"\xff"', "data_base64", base64.b64encode(b'"\xff"').decode()),
        ("application/json", b"", "data_base64", ""),
        ("text/plain", "Zoë\n".encode(), "data", "Zoë\n"),
        ("text/plain; charset=latin-1", b"Zo\xeb", "data_base64", "Wm/r"),
        ("image/svg+xml", b"<svg/>", "data", "<svg/>"),
        ("application/xml", b"<a/>", "data", "<a/>"),
        ("application/pdf", b"%PDF", "data_base64", "JVBERg=="),
    ],
)
def test_data_is_written_in_the_plainest_form_that_keeps_it(
    media_type: str | None, data: bytes, member: str, written: object
) -> None:
    rendered = json.loads(
        structured(Event("1", "/radar", "echo", datacontenttype=media_type, data=data))
    )

    assert rendered[member] == written
    assert ("data" in rendered) != ("data_base64" in rendered)


def test_json_too_deep_for_a_reader_is_written_as_base64() -> None:
    deep = b"[" * 65 + b"]" * 65

    assert b"data_base64" in structured(Event("1", "/radar", "echo", data=deep))
    assert b"data_base64" not in structured(Event("1", "/radar", "echo", data=deep[1:-1]))


def test_no_attribute_can_break_out_of_its_header_line() -> None:
    nasty = "a\r\nset-cookie: b\x00 \u2028\xa0%0d%0a"
    event = Event(
        nasty,
        nasty,
        nasty,
        topic=nasty,
        subject=nasty,
        datacontenttype=nasty,
        dataschema=nasty,
        extensions={"owner": nasty, "x\r\ny": 1},
        attributes={nasty: Quantity(nasty, nasty)},
    )

    block = binary_headers(event)

    assert block.isascii()
    assert block.endswith(b"\r\n")
    assert all(
        line.startswith((b"ce-", b"content-type: ")) and line.decode().isprintable()
        for line in block.split(b"\r\n")[:-1]
    )


def test_an_event_within_an_event_is_not_mistaken_for_the_event() -> None:
    inner = structured(Event("1", "/radar", "echo"))
    outer = Event("2", "/relay", "wrapped", datacontenttype=STRUCTURED, data=inner)

    assert from_binary(outer).id == "2"
    assert read_events(STRUCTURED, {}, structured(outer), LIMITS) == [outer]


def test_a_stored_event_is_rendered_once() -> None:
    stored = Stored(1, 0, Event("1", "/radar", "echo", data=b"[1]"))

    assert structured_of(stored) is structured_of(stored)
    assert binary_of(stored) is binary_of(stored)
    assert binary_of(stored)[1] == b"[1]"
    assert batch([stored, stored.event]) == b"[%b,%b]" % ((structured(stored.event),) * 2)


def test_typed_attributes_of_an_event_without_data_are_its_data_for_others() -> None:
    event = Event("1", "/radar", "echo", attributes={"wait": Quantity(2.5, "min"), "up": True})

    assert json.loads(structured(event)) == {
        "specversion": "1.0",
        "id": "1",
        "source": "/radar",
        "type": "echo",
        "tocsinattributes": "data",
        "data": {"wait": {"value": 2.5, "unit": "min"}, "up": True},
    }
