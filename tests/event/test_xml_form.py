"""The event as one XML element, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace

from tocsin.errors import TocsinError
from tocsin.event.event import Event, Value
from tocsin.event.value import Quantity, Scalar
from tocsin.event.xml_form import CLOUDEVENTS, event_from_xml, event_xml, payload_xml
from tocsin.safexml import parse

texts = st.text(max_size=20) | st.text("a\r\n\t\x00\x0b<&>]\ufffe\ud800", max_size=8)
names = st.text("abc01_é data", min_size=1, max_size=6) | st.sampled_from(["id", "data", "topic"])
scalars: st.SearchStrategy[Scalar] = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values: st.SearchStrategy[Value] = scalars | st.builds(
    Quantity, scalars, st.none() | texts, st.none() | texts
)
media_types = st.sampled_from(
    [None, "application/json", "text/plain", "application/xml", "application/octet-stream"]
)
payloads = (
    st.none()
    | st.binary(max_size=20)
    | texts.map(lambda text: text.encode(errors="replace"))
    | st.sampled_from([b"<a/>", b' <a xmlns="u">&#13;</a>', b"<?xml version='1.0'?><a/>"])
)
events = st.builds(
    Event,
    id=texts.filter(bool),
    source=texts.filter(bool),
    type=texts.filter(bool),
    topic=st.sampled_from(["", "lead", "lead/ohio/radar"]),
    time=st.none() | texts,
    subject=st.none() | texts,
    datacontenttype=media_types,
    dataschema=st.none() | texts,
    extensions=st.dictionaries(names, scalars, max_size=3),
    attributes=st.dictionaries(names, values, max_size=3),
    data=payloads,
)


def same_data(data: bytes | None, event: Event) -> bool:
    """To the byte; or as an element that means the same, where it travelled as one."""
    if data == event.data or data is None or event.data is None:
        return data == event.data
    return canonical(data) == canonical(event.data)


def canonical(data: bytes) -> bytes:
    return etree.tostring(parse(data), method="c14n", exclusive=True)


@given(event=events)
def test_an_event_comes_back_from_the_xml_format_as_it_was(event: Event) -> None:
    read = event_from_xml(parse(event_xml(event)))

    assert same_data(read.data, event)
    assert replace(read, data=event.data) == event


@given(event=events)
def test_every_event_has_an_element_that_can_stand_inside_another(event: Event) -> None:
    inside = parse(b'<outer xmlns="urn:other">' + payload_xml(event) + b"</outer>")

    [child] = inside
    assert etree.QName(child).localname in {"event", "a"}


def event(data: bytes, media_type: str | None = "application/xml") -> Event:
    return Event(id="1", source="s", type="t", datacontenttype=media_type, data=data)


@pytest.mark.parametrize(
    ("data", "element"),
    [
        (b"<a b='1' ><![CDATA[x]]></a >", b"<a b='1' ><![CDATA[x]]></a >"),
        (b"<?xml version='1.0'?>\n<!-- hello -->\n<a/>\n", b"<a/>"),
        (b"\xef\xbb\xbf<a>\xc3\xa9</a>", b"<a>\xc3\xa9</a>"),
        ("<?xml version='1.0' encoding='UTF-16'?><a>é</a>".encode("utf-16"), b"<a>\xc3\xa9</a>"),
        (b"<a>x</a><!-- bye -->", b"<a>x</a>"),
    ],
)
def test_a_payload_that_is_xml_is_its_own_element_to_the_byte(data: bytes, element: bytes) -> None:
    assert payload_xml(event(data)) == element


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"<a>", b"<a/><b/>", b"<!DOCTYPE a><a/>", b"<a>\x00</a>", b"<a:b/>"]
)
def test_a_payload_that_is_not_xml_goes_in_the_cloudevents_format(data: bytes) -> None:
    root = parse(payload_xml(event(data)))

    assert root.tag == f"{{{CLOUDEVENTS}}}event"
    assert event_from_xml(root).data == data


def test_what_people_write_by_hand_is_read_too() -> None:
    root = parse(
        b"""<ce:event xmlns:ce="http://cloudevents.io/xmlformat/V1" specversion="1.0"
              xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
              <!-- a comment --> <ce:id>7</ce:id> <ce:source>s</ce:source> <ce:type>t</ce:type>
              <ce:loud xsi:type="ce:boolean">1</ce:loud> <ce:n xsi:type="ce:integer">-4</ce:n>
              <ce:data xsi:type="xs:any"> <p:a xmlns:p="urn:p"/> </ce:data></ce:event>"""
    )

    read = event_from_xml(root)

    assert (read.id, read.extensions) == ("7", {"loud": True, "n": -4})
    assert read.data is not None
    assert parse(read.data).tag == "{urn:p}a"


@pytest.mark.parametrize(
    "inside",
    [
        "<id>1</id><source>s</source>",
        "<id>1</id><source>s</source><type><b/></type>",
        "<id>1</id><source>s</source><type>t</type><topic>a//b</topic>",
        '<id>1</id><source>s</source><type>t</type><n xsi:type="ce:integer">x</n>',
        '<id>1</id><source>s</source><type>t</type><data xsi:type="ce:binary">*</data>',
        '<id>1</id><source>s</source><type>t</type><data xsi:type="xs:any"><a/><b/></data>',
        '<id>1</id><source>s</source><type>t</type><exact xmlns="urn:tocsin:event:1">[]</exact>',
    ],
)
def test_what_is_no_event_is_refused(inside: str) -> None:
    head = f'<event xmlns="{CLOUDEVENTS}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

    with pytest.raises(TocsinError):
        event_from_xml(parse(f'{head} specversion="1.0">{inside}</event>'.encode()))
