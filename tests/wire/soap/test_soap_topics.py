"""Topics between QName paths and plain ones."""

from __future__ import annotations

import msgspec
import pytest
from lxml import etree

from tocsin.errors import BadTopic, TocsinError
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.wire.soap.topics import (
    TopicName,
    dialect_kind,
    topic_context,
    topic_filters,
    topic_of,
    write_topic,
)

ONVIF = "http://www.onvif.org/ver10/topics"
SCOPE: dict[str | None, str] = {"tns1": ONVIF, "t": "urn:t"}


def event(text: str, *namespaces: tuple[str, str]) -> Event:
    path, extensions = topic_context(TopicName(text, namespaces))
    return Event("1", "/s", "t", topic=path, extensions={**extensions})


def wants(expression: str, kind: str, published: Event, *, names_only: bool = False) -> bool:
    filters = topic_filters(expression, SCOPE, kind, names_only=names_only)
    return matches(read_filters(filters), published)


JOBS = event("t:jobs/status", ("t", "urn:t"))
OTHER = event("x:jobs/status", ("x", "urn:other"))
PLAIN = event("jobs/status")


@pytest.mark.parametrize(
    ("expression", "kind", "expected"),
    [
        ("t:jobs/status", "concrete", (True, False, True)),
        ("jobs/status", "concrete", (True, True, True)),
        ("  t:jobs/status\n", "concrete", (True, False, True)),
        ("t:jobs", "simple", (False, False, False)),
        ("t:jobs//.", "full", (True, False, True)),
        ("t:jobs/*", "full", (True, False, True)),
        ("t://status", "full", (True, False, True)),
        ("//status", "full", (True, True, True)),
        ("*/status | t:a/b", "full", (True, True, True)),
        ("t:a/b|t:c", "full", (False, False, False)),
        ("/t:jobs/status", "xpath", (True, False, False)),
    ],
)
def test_a_namespace_counts_where_both_sides_name_one(
    expression: str, kind: str, expected: tuple[bool, ...]
) -> None:
    got = tuple(wants(expression, kind, published) for published in (JOBS, OTHER, PLAIN))

    assert got == expected


def test_the_original_looks_at_local_names_and_knows_one_wildcard() -> None:
    assert wants("w:jobs/status", "concrete", OTHER, names_only=True)
    assert wants("w:>", "simple", OTHER, names_only=True)
    assert wants(">", "simple", Event("1", "/s", "t"), names_only=True)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("tns1:root//child", "concrete"),
        ("tns1:a[1]", "full"),
        ("a/b", "simple"),
        ("", "simple"),
        ("*", "concrete"),
        ("a///b", "full"),
        ("x" * 5000, "full"),
    ],
)
def test_an_illegal_expression_is_refused(expression: str, kind: str) -> None:
    with pytest.raises(TocsinError):
        read_filters(topic_filters(expression, SCOPE, kind))


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full", "full"),
        ("http://docs.oasis-open.org/wsn/2004/06/TopicExpression/Simple", "simple"),
        ("http://www.ibm.com/xmlns/stdwip/web-services/WS-Topics/TopicExpression/simple", "simple"),
        ("http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet", "full"),
        ("http://www.onvif.org/ver10/tev/topicExpression/concreteset ", "full"),
        ("http://www.w3.org/TR/1999/REC-xpath-19991116", "xpath"),
        ("http://example.org/Full", None),
        ("", None),
    ],
)
def test_a_dialect_is_known_by_its_last_word(uri: str, kind: str | None) -> None:
    assert dialect_kind(uri) == kind


@pytest.mark.parametrize("text", ["a//b", "", "*", "a/*", "x\x01"])
def test_a_published_topic_must_be_one(text: str) -> None:
    with pytest.raises(BadTopic):
        topic_context(TopicName(text))


def test_what_was_sent_is_told_again_as_it_was_sent() -> None:
    sent = TopicName("tns1:Device/tns1:Trigger/sam:In", (("tns1", ONVIF), ("sam", "urn:sam")))
    published = event(sent.text, *sent.namespaces)

    assert published.topic == "Device/Trigger/In"
    assert topic_of(published) == sent
    assert write_topic("urn:n", published, "wsn13") == (
        b'<wsnt:Topic xmlns:wsnt="urn:n" xmlns:tns1="http://www.onvif.org/ver10/topics" '
        b'xmlns:sam="urn:sam" Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">'
        b"tns1:Device/tns1:Trigger/sam:In</wsnt:Topic>"
    )


def test_a_prefix_of_the_publishers_may_be_the_one_we_use() -> None:
    published = event("wsnt:a", ("wsnt", "urn:mine"))

    assert b"<wsnt0:Topic" in write_topic("urn:n", published, "wsn12")


def test_a_topic_changed_on_the_way_is_told_as_it_is_now() -> None:
    moved = msgspec.structs.replace(JOBS, topic="moved")

    assert topic_of(moved) == TopicName("tns:moved", (("tns", "urn:t"),))


def test_only_where_a_topic_must_be_there_is_one_made_up() -> None:
    nowhere = Event("1", "/s", "t")

    assert write_topic("urn:n", nowhere, "wsn13") == b""
    assert b">wseTopic<" in write_topic("urn:n", nowhere, "wsn12")


@pytest.mark.parametrize(
    "extensions",
    [
        {"wstopic": "x><evil/=urn:t x:a"},
        {"wstopic": "xml=urn:t xml:a"},
        {"wstopic": 'p="/><evil/> p:a'},
        {"wstopic": "p=no{uri p:a"},
        {"topicns": "no { uri"},
        {"topicns": ""},
        {"topicns": "relative"},
    ],
)
def test_an_extension_that_is_no_declaration_is_not_declared(extensions: dict[str, str]) -> None:
    published = Event("1", "/s", "t", topic="a", extensions={**extensions})

    element = etree.fromstring(write_topic("urn:n", published, "wsn13"))

    assert (element.text, element.nsmap) == ("a", {"wsnt": "urn:n"})
