"""Types of events as XML names, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tocsin.event.xml_name import (
    TYPES,
    escaped_name,
    is_namespace,
    is_xml_name,
    name_of_type,
    name_uri,
    unescaped_name,
)

uris = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["http://example.org", "urn:lab", "https://h:80/a", "tag:x,2001:y", "urn:ä"]),
    st.sampled_from(["/", "#", ":", "?q=", "//", ""]),
    st.text("abZ_9.-/#:é% ", max_size=8),
    st.sampled_from(["Temperature", "1st", "", "x.y", "_x0041_"]),
)


@pytest.mark.parametrize(
    ("event_type", "name"),
    [
        ("http://example.org/a/Load", ("http://example.org/a", "Load")),
        ("urn:lab:Load", ("urn:lab:", "Load")),
        ("http://example.org/a#Load", ("http://example.org/a#", "Load")),
        ("com.example.order", (TYPES, "com.example.order")),
        ("Größe", (TYPES, "Größe")),
        ("two words", (TYPES, "two_x0020_words")),
        ("1st", (TYPES, "_x0031_st")),
        ("_x0041_", (TYPES, "_x005F_x0041_")),
        ("", (TYPES, "_xFFFFFF_")),
        ("urn:\xe4:Load", (TYPES, "urn_x003A__x00E4__x003A_Load")),
        ("http://example.org/", (TYPES, "http_x003A__x002F__x002F_example.org_x002F_")),
    ],
)
def test_a_type_is_cut_into_namespace_and_name_where_it_is_a_uri(
    event_type: str, name: tuple[str, str]
) -> None:
    assert name_of_type(event_type) == name
    assert name_uri(name) == event_type


@given(event_type=st.text(max_size=30) | uris)
def test_every_type_can_be_told_again(event_type: str) -> None:
    namespace, local = name_of_type(event_type)

    assert name_uri((namespace, local)) == event_type


@given(event_type=st.text(max_size=30) | uris)
def test_every_type_is_a_name_that_a_parser_reads(event_type: str) -> None:
    namespace, local = name_of_type(event_type)

    root = etree.Element(f"{{{namespace}}}{local}", nsmap={None: namespace})

    assert etree.fromstring(etree.tostring(root, encoding="utf-8")).tag == root.tag


@given(text=st.text(max_size=20))
def test_every_text_can_be_told_by_a_name(text: str) -> None:
    name = escaped_name(text)

    assert is_xml_name(name)
    assert unescaped_name(name) == text


@given(text=st.text(max_size=6) | st.text("ab:.-_é1", max_size=6))
def test_a_name_is_what_the_parser_takes_for_one(text: str) -> None:
    try:
        root = etree.fromstring(f"<{text}/>".encode())
    except (etree.XMLSyntaxError, UnicodeEncodeError):
        assert not is_xml_name(text)
    else:
        assert is_xml_name(text) == (root.tag == text)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("urn:lab", True),
        ("http://www.gridforum.org/Performance/Events", True),
        ("relative", True),
        ("a?b=c&d='e'", True),
        ("", False),
        ("two words", False),
        ("urn:\xe4", False),
        ("http://[x", False),
        ("http://www.w3.org/2000/xmlns/", False),
        ("http://www.w3.org/XML/1998/namespace", False),
        ("\ud800", False),
    ],
)
def test_a_namespace_is_what_parsers_take_for_one(text: str, is_one: bool) -> None:
    assert is_namespace(text) is is_one
