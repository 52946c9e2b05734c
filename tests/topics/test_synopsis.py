"""Synopses: where the UUID goes in each, what an event needs, and which events pass."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tocsin.access.delegation.protected import owned
from tocsin.errors import BadSynopsis
from tocsin.event.event import Event
from tocsin.event.filter import TopicIs
from tocsin.event.filter_eval import matches
from tocsin.event.filter_text import format_filter, parse_filter
from tocsin.event.topic import TopicPattern
from tocsin.matching.covering import covers
from tocsin.topics.synopsis import (
    PATH_LEVELS_MAX,
    REGEX_CHARS_MAX,
    AnySynopsis,
    IntegerSynopsis,
    PairsSynopsis,
    PropertiesSynopsis,
    RegexSynopsis,
    StringSynopsis,
    XmlSynopsis,
    check_placeholder,
    filter,
    place,
    template,
    uuid_of,
)

UUID = "0123abcd-4567-870c-89ab-0123456789ab"
OTHER = "ffffffff-ffff-870c-bfff-ffffffffffff"

EXAMPLES: dict[str, AnySynopsis] = {
    "string": StringSynopsis(path="lab/radar"),
    "integer": IntegerSynopsis(integer=42),
    "pairs": PairsSynopsis(path="lab", pairs={"system": "Linux", "load": None}),
    "properties": PropertiesSynopsis(predicate="size > 5 AND kind LIKE 'r%'"),
    "xml": XmlSynopsis(path="lab", xpath="/p:order[p:total > 100]", namespaces={"p": "urn:p"}),
    "regex": RegexSynopsis(path="lab", regex="(radar|lidar)-[0-9]+(/raw)?"),
}


def event(
    topic: str, data: bytes | None = None, media_type: str | None = None, **seen: Any
) -> Event:
    return Event(
        id="1", source="/s", type="t", topic=topic, data=data, datacontenttype=media_type,
        extensions=seen,
    )  # fmt: skip


ORDER = b"<order xmlns='urn:p'><total>%d</total></order>"


def passing(kind: str) -> list[Event]:
    """Events of each example, at its topic."""
    return {
        "string": [event(f"lab/radar/{UUID}"), event(f"lab/radar/{UUID}/a/b")],
        "integer": [event(UUID, integer=42), event(f"{UUID}/a", integer="42")],
        "pairs": [event(f"lab/{UUID}", system="Linux", load=0, more=1)],
        "properties": [event(UUID, size=6, kind="radar")],
        "xml": [event(f"lab/{UUID}", ORDER % 101, "application/xml")],
        "regex": [event(f"lab/{UUID}/radar-7"), event(f"lab/{UUID}/lidar-12/raw")],
    }[kind]


def missing(kind: str) -> list[Event]:
    """Events that are none of the topic."""
    return {
        "string": [event("lab/radar"), event(f"lab/gauge/{UUID}"), event(f"lab/radar/{OTHER}")],
        "integer": [event(UUID), event(UUID, integer=43), event("42", integer=42)],
        "pairs": [event(f"lab/{UUID}", system="Linux"), event("lab", system="Linux", load=0)],
        "properties": [event(UUID, size=5, kind="radar"), event(UUID, kind="radar")],
        "xml": [event(f"lab/{UUID}", ORDER % 100, "application/xml"), event(f"lab/{UUID}")],
        "regex": [
            event(f"lab/{UUID}"),
            event(f"lab/{UUID}/radar-x"),
            event(f"lab/{UUID}/a/radar-7"),
            event(f"lab/{OTHER}/radar-7"),
            event("lab/radar-7"),
        ],
    }[kind]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_uuid_is_placed_and_found_again(kind: str) -> None:
    placeholder = EXAMPLES[kind]

    placed = place(placeholder, UUID)

    assert placed.topic == (f"{placeholder.path}/{UUID}" if placeholder.path else UUID)
    assert uuid_of(placed) == UUID
    assert replace(placed, topic="") == placeholder
    with pytest.raises(BadSynopsis, match="no UUID"):
        uuid_of(placeholder)
    with pytest.raises(BadSynopsis, match="names its topic already"):
        place(placed, OTHER)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_events_of_the_topic_pass_its_filter_and_others_do_not(kind: str) -> None:
    wanted = filter(place(EXAMPLES[kind], UUID))

    for each in passing(kind):
        assert matches(wanted, each), each
    for each in missing(kind):
        assert not matches(wanted, each), each


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_filter_travels_as_text_and_asks_for_nothing_beside_the_topic(kind: str) -> None:
    placed = place(EXAMPLES[kind], UUID)
    wanted = filter(placed)

    assert parse_filter(format_filter(wanted)) == wanted
    assert covers(TopicIs(TopicPattern.parse(f"{placed.topic}/**")), wanted)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_template_says_what_an_event_needs(kind: str) -> None:
    placed = place(EXAMPLES[kind], UUID)
    needed = template(placed)

    assert needed.topic == placed.topic
    assert {
        "string": not needed.attributes and not needed.payload,
        "integer": needed.attributes == {"integer": 42},
        "pairs": needed.attributes == {"system": "Linux", "load": None},
        "properties": "size > 5" in needed.payload,
        "xml": "/p:order" in needed.payload,
        "regex": needed.below == "(radar|lidar)-[0-9]+(/raw)?",
    }[kind]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_synopsis_is_the_same_from_its_json(kind: str) -> None:
    placed = place(EXAMPLES[kind], UUID)
    written = msgspec.json.encode(placed)

    assert msgspec.json.decode(written, type=AnySynopsis) == placed  # type: ignore[comparison-overlap]
    assert f'"type":"{kind}"'.encode() in written


@pytest.mark.parametrize(
    "synopsis",
    [
        StringSynopsis(path="/a"),
        StringSynopsis(path="a//b"),
        StringSynopsis(path="a/*"),
        StringSynopsis(path="a\0"),
        StringSynopsis(path="x" * 600),
        StringSynopsis(path="/".join("a" * (PATH_LEVELS_MAX + 1))),
        StringSynopsis(path=f"a/{OTHER}"),
        StringSynopsis(path=f"{OTHER}/a"),
        IntegerSynopsis(integer=2**64),
        PairsSynopsis(pairs={}),
        PairsSynopsis(pairs={"topic": "x"}),
        PairsSynopsis(pairs={"a b": "x"}),
        PairsSynopsis(pairs={"": "x"}),
        PairsSynopsis(pairs={"a": "x" * 300}),
        PairsSynopsis(pairs={"a": float("inf")}),
        PairsSynopsis(pairs={f"a{n}": n for n in range(40)}),
        PropertiesSynopsis(predicate=""),
        PropertiesSynopsis(predicate="size >"),
        PropertiesSynopsis(predicate="a = 1; DROP TABLE topics"),
        PropertiesSynopsis(predicate="SELECT * FROM topics"),
        PropertiesSynopsis(predicate="a = 1 OR " * 100 + "a = 1"),
        XmlSynopsis(xpath="//a["),
        XmlSynopsis(xpath="document('/etc/passwd')"),
        XmlSynopsis(xpath="re:test(a, '(a+)+$')"),
        XmlSynopsis(xpath="x" * 600),
        XmlSynopsis(xpath="//a", namespaces={f"n{n}": "urn:n" for n in range(20)}),
        RegexSynopsis(regex=""),
        RegexSynopsis(regex="a)|(b"),
        RegexSynopsis(regex="\\Qab"),  # takes the end of whatever it is put into
        RegexSynopsis(regex="a" * (REGEX_CHARS_MAX + 1)),
        RegexSynopsis(regex="(?:a?){400}a{400}"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(synopsis: AnySynopsis) -> None:
    with pytest.raises(BadSynopsis):
        check_placeholder(synopsis)


@given(
    regex=st.text("ab|()?*\\QE[]^$.", min_size=1, max_size=12),
    path=st.sampled_from(["", "lab", "a/b"]),
    topic=st.text("ab/|", max_size=12),
)
def test_no_regular_expression_reaches_beyond_its_topic(regex: str, path: str, topic: str) -> None:
    synopsis = RegexSynopsis(path=path, regex=regex)
    try:
        placed = place(synopsis, UUID)
    except BadSynopsis:
        return
    wanted = filter(placed)

    assert not matches(wanted, event(topic))
    assert not matches(wanted, event(f"{OTHER}/{topic}"))
    assert not matches(wanted, event(f"{OTHER}/{placed.topic}/{topic}"))


levels = st.text(
    st.characters(exclude_characters="/*", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8
)


@given(path=st.lists(levels, max_size=6).map("/".join), bits=st.integers(0, 2**110 - 1))
def test_every_uuid_is_found_where_it_was_placed(path: str, bits: int) -> None:
    first, last = f"{bits >> 62:012x}", f"{bits & (1 << 62) - 1 | 1 << 63:016x}"
    uuid = f"{first[:8]}-{first[8:]}-870c-{last[:4]}-{last[4:]}"
    synopsis = StringSynopsis(path=path)
    try:
        placed = place(synopsis, uuid)
    except BadSynopsis:
        return
    found = owned(f"{placed.topic}/x")

    assert uuid_of(placed) == uuid
    assert found is not None
    assert (found.uuid, "/".join(found.above), found.below) == (uuid, path, ("x",))


@given(
    content=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "path", "topic", "pairs", "regex", "xpath", "predicate"])
                | st.text(max_size=5),
                inner | st.sampled_from([*EXAMPLES]),
                max_size=5,
            )
        ),
        max_leaves=10,
    )
)
def test_any_json_is_a_synopsis_or_refused(content: Any) -> None:
    try:
        synopsis = msgspec.convert(content, type=AnySynopsis)
        check_placeholder(synopsis)
    except (msgspec.ValidationError, BadSynopsis):
        return
    assert uuid_of(place(synopsis, UUID)) == UUID
