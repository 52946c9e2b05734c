"""Regular expressions over topics: what they mean, and what they may cost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFilter, BadTopicPattern
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter import TopicMatches
from tocsin.event.filter_eval import matches
from tocsin.event.filter_text import parse_filter
from tocsin.event.topic_regex import CHARS_MAX, compile_topic_regex


def on(topic: str) -> Event:
    return Event(id="1", source="/s", type="t", topic=topic)


def test_the_whole_topic_is_asked() -> None:
    wanted = parse_filter("topic regex:'lab/[a-z]+'")

    assert matches(wanted, on("lab/radar"))
    for topic in ("lab/radar/1", "x/lab/radar", "lab/", "", "lab/R"):
        assert not matches(wanted, on(topic)), topic


pieces = st.one_of(
    st.text("ab/", min_size=1, max_size=3),
    st.builds(
        str.__add__, st.sampled_from(["a", "b", "/", ".", "[ab]", "[^/]"]), st.sampled_from("*+?")
    ),
    st.sampled_from(["(a|b)", "(a/|b|ab)", "(?i:AB)", r"\w", r"\W", r"a{2,3}", r"\Aa?", "$"]),
)


@given(
    expression=st.lists(pieces, min_size=1, max_size=6).map("".join),
    topics=st.lists(st.text("abA/", max_size=8), min_size=1, max_size=5),
)
def test_it_means_what_python_means_where_both_can_read_it(
    expression: str, topics: list[str]
) -> None:
    ours, theirs = compile_topic_regex(expression), re.compile(expression)

    for topic in topics:
        assert ours(topic) == (theirs.fullmatch(topic) is not None)


def test_a_subscription_may_name_it_as_a_dialect() -> None:
    found = read_filters([{"topic": {"dialect": "regex", "expression": "a/.*"}}])

    assert found == TopicMatches("a/.*")
    with pytest.raises(BadFilter, match=r"filters\[0\]\.topic: .*regular expression"):
        read_filters([{"topic": {"dialect": "regex", "expression": "("}}])


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "(",
        "a{1001}",
        r"(a)\1",  # a backreference
        "(?=a)",
        "(?<!a)b",
        "a" * (CHARS_MAX + 1),
        "(?:a?){400}a{400}",
        r"\p{L}{500}" * 20,
        r"\p{L}{100}",
        "((a{100}){100}){100}",
        "((((((((((x{2}){2}){2}){2}){2}){2}){2}){2}){2}){2})",
        "\ud800",
        "[z-a]",
        "\\",
    ],
)
def test_what_is_no_expression_or_too_large_is_refused(expression: str) -> None:
    with pytest.raises(BadTopicPattern):
        compile_topic_regex(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "(a+)+$",
        "(a|a)*b",
        "(?:a?){330}a{330}",
        "(?:(?:[ab]*a[ab]{40}c?){0,6})*[cd]",
        "(.*a){20}[.]*b",
    ],
)
def test_what_takes_others_for_ever_is_answered(expression: str) -> None:
    holds = compile_topic_regex(expression)

    # A millisecond each was measured. Python's own take years for the first two, and so this test
    # would reach its timeout.
    assert not any(holds("a" * 1_022 + each) for each in ("!!", "!a"))


@given(st.text(max_size=300))
def test_any_text_is_an_expression_or_refused_in_one_way(text: str) -> None:
    try:
        holds = compile_topic_regex(text)
    except BadTopicPattern as refused:
        str(refused).encode("utf-8", "surrogatepass")
        return
    assert holds("a/b") in (True, False)
