"""Reading CloudEvents from headers, and which content types there are."""

from __future__ import annotations

import pytest
from cloudevents_read import (
    HEADERS,
    LIMITS,
    STRUCTURED,
    least,
    with_members,
)

from tocsin.errors import BadEvent, BadMediaType
from tocsin.event.event import Event
from tocsin.wire.cloudevents import read_events


def test_binary_mode_takes_attributes_from_headers_and_data_from_the_body() -> None:
    headers = {**HEADERS, "ce-owner": "Zo%C3%AB%20%25", "ce-topic": "lead/ohio", "host": "x"}

    (event,) = read_events("Text/Plain; charset=latin-1", headers, b"\xe9\r\n", LIMITS)

    assert event == Event(
        **least(),
        topic="lead/ohio",
        datacontenttype="Text/Plain; charset=latin-1",
        extensions={"owner": "Zoë %"},
        data=b"\xe9\r\n",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ('"quoted \\"text\\""', 'quoted "text"'),
        ("%41%2f%2F", "A//"),
        ("100%", "100%"),
        ("Zo\u00c3\u00ab", "Zoë"),
        ("7", "7"),
    ],
)
def test_header_values_are_decoded_as_the_binding_says(value: str, text: str) -> None:
    (event,) = read_events("", {**HEADERS, "ce-owner": value}, b"", LIMITS)

    assert event.extensions == {"owner": text}
    assert event.data is None
    assert event.datacontenttype is None


@pytest.mark.parametrize("value", ["%C0%A0", "%ff", "\u00e9", "%0d%0aset-cookie: a"])
def test_header_values_that_carry_no_clean_text_are_refused(value: str) -> None:
    with pytest.raises(BadEvent, match="owner"):
        read_events("", {**HEADERS, "ce-owner": value}, b"", LIMITS)


def test_a_second_content_type_among_the_attributes_must_agree() -> None:
    headers = {**HEADERS, "ce-datacontenttype": "text/xml"}

    assert read_events("text/xml", headers, b"<a/>", LIMITS)[0].datacontenttype == "text/xml"
    with pytest.raises(BadEvent, match="datacontenttype"):
        read_events("text/plain", headers, b"<a/>", LIMITS)


def test_plain_json_without_attributes_gets_a_command_that_works() -> None:
    with pytest.raises(BadEvent) as caught:
        read_events("application/json", {"host": "x"}, b'{"load5": 1}', LIMITS)

    headers = dict(
        part.lower().split(": ", 1)
        for part in caught.value.remedy.split("'")
        if ": " in part and not part.startswith(("{", "Try"))
    )
    assert read_events(headers["content-type"], headers, b'{"load5": 1.5}', LIMITS)


@pytest.mark.parametrize(
    "content_type",
    [STRUCTURED, "Application/CloudEvents+JSON; charset=UTF-8", f'{STRUCTURED};charset="utf-8"'],
)
def test_the_content_type_may_say_utf8_in_any_case(content_type: str) -> None:
    assert len(read_events(content_type, {}, with_members(), LIMITS)) == 1


@pytest.mark.parametrize(
    "content_type",
    ["application/cloudevents+avro", "application/cloudevents", f"{STRUCTURED}; charset=latin-1"],
)
def test_other_formats_and_charsets_are_refused(content_type: str) -> None:
    with pytest.raises(BadMediaType):
        read_events(content_type, {}, with_members(), LIMITS)
