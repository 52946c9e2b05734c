"""Topics and patterns: what is one, what fits, and what that says about two patterns."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadTopic, BadTopicPattern
from tocsin.event.filter import AnyOf, TopicIs
from tocsin.event.filter_text import parse_topic_filter
from tocsin.event.topic import TopicPattern, valid_topic

LETTERS = ("a", "b", "c")
EVERY_SHORT_TOPIC = [
    "/".join(levels) for length in range(6) for levels in product(LETTERS, repeat=length)
]

pattern_levels = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=4)
patterns = pattern_levels.map(tuple).map(TopicPattern)


def pattern(text: str, dialect: str = "tocsin") -> TopicPattern:
    return TopicPattern.parse(text, dialect)


def test_a_topic_is_its_own_text() -> None:
    assert valid_topic("weather/ohio/radar") == "weather/ohio/radar"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("/a", "empty level"),
        ("a/", "empty level"),
        ("a//b", "empty level"),
        ("a/*/b", "wildcard"),
        ("a/**", "wildcard"),
        ("a/b*", "wildcard"),
        ("a\nb", "control character"),
        ("a\x85b", "control character"),
        ("a\ud800", "control character"),
        ("é" * 513, "1024 bytes"),
        ("x" * 1025, "1024 bytes"),
        ("/".join("a" * 33), "32 levels"),
    ],
)
def test_what_is_no_topic_is_refused_and_the_reason_said(text: str, problem: str) -> None:
    with pytest.raises(BadTopic, match=problem):
        valid_topic(text)


def test_the_longest_topics_are_topics() -> None:
    assert valid_topic("é" * 512)
    assert valid_topic("/".join("a" * 32))


@pytest.mark.parametrize("text", [">", "a/>", "a/>/b"])
def test_the_wildcard_of_nats_is_not_taken_for_a_level(text: str) -> None:
    with pytest.raises(BadTopicPattern, match="wildcard of NATS") as refused:
        pattern(text)

    assert "**" in refused.value.remedy
    assert pattern(text.removesuffix("/b"), "nats")


@pytest.mark.parametrize("text", ["", "a//b", "a/b*", "a/***", "/**", "a\x00", "/".join("*" * 33)])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(BadTopicPattern):
        pattern(text)


@pytest.mark.parametrize(
    ("text", "fitting", "others"),
    [
        ("a/b", ["a/b"], ["a", "a/b/c", "", "b/a"]),
        ("*", ["a"], ["", "a/b"]),
        ("a/*/c", ["a/b/c", "a/c/c"], ["a/c", "a/b/b/c"]),
        ("**", ["", "a", "a/b/c"], []),
        ("a/**", ["a", "a/b", "a/b/c"], ["", "b/a"]),
        ("**/a", ["a", "b/a", "a/a"], ["", "a/b"]),
        ("a/**/b", ["a/b", "a/c/b", "a/b/b"], ["a", "b", "a/b/c"]),
        ("**/a/*/**", ["a/b", "b/a/c/b"], ["a", "b/a"]),
    ],
)
def test_which_topics_fit_a_pattern(text: str, fitting: list[str], others: list[str]) -> None:
    assert all(pattern(text).matches(topic) for topic in fitting)
    assert not any(pattern(text).matches(topic) for topic in others)


@pytest.mark.parametrize(
    ("dialect", "text", "same_as"),
    [
        ("simple", "lead", "lead"),
        ("concrete", "lead/ohio/radar", "lead/ohio/radar"),
        ("full", "lead/*/radar", "lead/*/radar"),
        ("full", "lead//radar", "lead/**/radar"),
        ("full", "//radar", "**/radar"),
        ("full", "lead//.", "lead/**"),
        ("full", "lead/.", "lead"),
        ("full", "lead//*", "lead/**/*"),
        ("nats", "lead.*.radar", "lead/*/radar"),
        ("nats", "lead.>", "lead/*/**"),
        ("nats", "lead/v1.2/>", "lead/v1.2/*/**"),
        ("nats", ">", "*/**"),
    ],
)
def test_other_dialects_become_the_same_levels(dialect: str, text: str, same_as: str) -> None:
    assert pattern(text, dialect) == pattern(same_as)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("simple", "lead/ohio"),
        ("simple", "*"),
        ("concrete", "lead/*"),
        ("full", "lead/**"),
        ("full", "lead//"),
        ("full", "/lead"),
        ("full", "lead/"),
        ("full", "lead///radar"),
        ("full", "//."),
        ("full", "."),
        ("full", "a||b"),
        ("full", "a|b"),  # two patterns where one is wanted
        ("nats", ">.a"),
        ("nats", "a..b"),
        ("nats", "a.**"),
        ("mqtt", "a/#"),
    ],
)
def test_what_a_dialect_does_not_write_is_refused(dialect: str, text: str) -> None:
    with pytest.raises(BadTopicPattern):
        pattern(text, dialect)


def test_the_alternatives_of_the_full_dialect_become_any_of_them() -> None:
    wanted = parse_topic_filter("a//b | c", "full")

    assert wanted == AnyOf((TopicIs(pattern("a/**/b")), TopicIs(pattern("c"))))


@given(patterns)
def test_a_pattern_is_read_back_from_what_it_prints(wanted: TopicPattern) -> None:
    assert TopicPattern.parse(str(wanted)) == wanted


@given(patterns, patterns)
def test_covering_is_exactly_inclusion_of_topics(wide: TopicPattern, narrow: TopicPattern) -> None:
    # Four levels on each side and a letter that no pattern names: short topics tell all there is.
    missed = [t for t in EVERY_SHORT_TOPIC if narrow.matches(t) and not wide.matches(t)]

    assert wide.covers(narrow) == (not missed), missed[:3]


@given(patterns, patterns)
def test_intersecting_is_exactly_a_common_topic(one: TopicPattern, other: TopicPattern) -> None:
    common = any(one.matches(t) and other.matches(t) for t in EVERY_SHORT_TOPIC)

    # Two patterns of four levels may first meet in a topic of eight.
    if common or len(one.levels) + len(other.levels) <= 5:
        assert one.intersects(other) == common
    assert one.intersects(other) == other.intersects(one)


def test_a_pattern_made_to_be_awkward_costs_little_and_is_answered_safely() -> None:
    wide = TopicPattern(("**", "x") + ("*",) * 30)
    narrow = TopicPattern(("**", "x") * 15 + ("**",))

    assert not wide.covers(narrow)
    assert wide.intersects(narrow)
    assert not TopicPattern(("**", "a") * 16).matches("/".join("a" * 15 + "b" * 17))
