"""Covering, meeting and never matching: safe for every filter, exact for single intervals."""

from __future__ import annotations

from itertools import product
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.event.event import Event, Value
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    TextIs,
    TopicIs,
    TopicMatches,
)
from tocsin.event.filter_eval import Seen, passes, seen
from tocsin.event.filter_text import parse_filter
from tocsin.event.topic import TopicPattern
from tocsin.event.value import Quantity
from tocsin.matching.covering import covers, intersects, never_matches
from tocsin.matching.regions import REGIONS_MAX

# Values on which the rules between facets turn: texts that are numbers or truths, units, bounds.
VALUES: list[Value | None] = [
    None,
    *(0, 1, 1.5, 2, 3, -1, True, False),
    *("1", "2", "1.0", "true", "false", "", "a", "ab", "abc", "b", "ba", "z"),
    *(
        Quantity(1, "s"),
        Quantity("2", "s"),
        Quantity(1, "ms"),
        Quantity(1, "B"),
        Quantity("ab", "s"),
    ),
]


def event(topic: str, x: Value | None, y: Value | None) -> Seen:
    attributes = {name: value for name, value in (("x", x), ("y", y)) if value is not None}
    return seen(Event(id="1", source="/s", type="t", topic=topic, attributes=attributes))


EVENTS = [event("", x, y) for x, y in product(VALUES, [None, 1, "1", "ab"])]
EVENTS += [
    event(topic, x, None) for topic, x in product(["a", "a/b", "b", "a/b/c"], [None, 1, "a"])
]

names = st.sampled_from(["x", "x", "y"])
order = st.sampled_from([Operator(sign) for sign in ("=", "!=", "<", "<=", ">", ">=")])
text_tests = st.sampled_from([Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS])
numbers = st.sampled_from([0, 1, 1.5, 2])
texts = st.sampled_from(["", "1", "2", "a", "ab", "b", "true"])
form_tests = st.sampled_from([Operator.EQ, Operator.PREFIX, Operator.SUFFIX])
leaves = st.one_of(
    st.builds(Predicate, names, order, numbers, st.sampled_from([None, None, "s", "ms", "B"])),
    st.builds(Predicate, names, order | text_tests, texts),
    st.builds(Predicate, names, st.sampled_from([Operator.EQ, Operator.NE]), st.booleans()),
    st.builds(Predicate, names, st.just(Operator.EXISTS)),
    st.builds(TextIs, names, form_tests, texts),
    st.sampled_from(["a", "a/*", "a/**", "**", "*/b"]).map(TopicPattern.parse).map(TopicIs),
    st.sampled_from(["a", "a(/b)*", "[ab].*", "b?"]).map(TopicMatches),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple).map(All),
        st.lists(inner, max_size=3).map(tuple).map(AnyOf),
        inner.map(Not),
    ),
    max_leaves=5,
)

# Halves stand between and beside the whole numbers: every relation of two intervals shows on them.
GRID = [half / 2 for half in range(-1, 8)]
GRID_EVENTS = [event("", x, y) for x, y in product([None, *GRID], repeat=2)]
bounds = st.integers(0, 3)
interval_signs = st.sampled_from([Operator(sign) for sign in ("=", "<", "<=", ">", ">=")])
interval_parts = st.builds(Predicate, st.sampled_from(["x", "y"]), interval_signs, bounds)
intervals: st.SearchStrategy[Filter] = st.lists(interval_parts, max_size=4).map(tuple).map(All)


def passing(wanted: Filter, events: list[Seen]) -> set[int]:
    return {number for number, each in enumerate(events) if passes(wanted, each)}


@settings(max_examples=300)
@given(filters, filters)
def test_what_passes_the_covered_filter_passes_the_cover(wide: Filter, narrow: Filter) -> None:
    if covers(wide, narrow):
        assert passing(narrow, EVENTS) <= passing(wide, EVENTS)


@settings(max_examples=300)
@given(filters, filters)
def test_no_event_passes_two_filters_that_do_not_meet(one: Filter, other: Filter) -> None:
    if not intersects(one, other):
        assert not passing(one, EVENTS) & passing(other, EVENTS)
    assert intersects(one, other) == intersects(other, one)


@given(filters)
def test_no_event_passes_a_filter_that_never_matches(wanted: Filter) -> None:
    if never_matches(wanted):
        assert not passing(wanted, EVENTS)


@settings(max_examples=300)
@given(filters, filters)
def test_a_conjunction_is_covered_by_its_parts_and_they_by_either(
    one: Filter, other: Filter
) -> None:
    assert covers(one, All((one, other)))
    assert covers(AnyOf((one, other)), one)
    assert covers(one, one)
    assert covers(All(()), one)
    assert covers(one, AnyOf(()))
    assert not intersects(one, Not(one)) or not isinstance(one, Predicate | TopicIs | TextIs)


def test_a_part_covers_the_whole_also_where_the_whole_has_too_many_alternatives() -> None:
    many = AnyOf(tuple(Predicate("a", Operator.EQ, n) for n in range(REGIONS_MAX)))
    more = AnyOf(tuple(Predicate("b", Operator.EQ, n) for n in range(REGIONS_MAX)))
    last = Predicate("c", Operator.EQ, 1)
    whole = All((All((many, more)), last))

    for part in (many, more, last, All((many, more)), All((last, many)), All(())):
        assert covers(part, whole)
        assert not covers(whole, part)
    either = AnyOf((whole, AnyOf((many, last))))
    for one in (whole, many, last, AnyOf((last, whole)), AnyOf(())):
        assert covers(either, one)
        assert not covers(one, either)


@given(intervals, intervals)
def test_for_intervals_covering_is_exact(wide: Filter, narrow: Filter) -> None:
    assert covers(wide, narrow) == (passing(narrow, GRID_EVENTS) <= passing(wide, GRID_EVENTS))


@given(intervals, intervals)
def test_for_intervals_meeting_is_exact(one: Filter, other: Filter) -> None:
    common = passing(one, GRID_EVENTS) & passing(other, GRID_EVENTS)

    assert intersects(one, other) == bool(common)
    assert never_matches(All((one, other))) == (not common)


@given(intervals, intervals, intervals)
def test_covering_is_transitive(one: Filter, two: Filter, three: Filter) -> None:
    widest, wide, narrow = one, All((one, two)), All((one, two, three))

    assert covers(widest, wide)
    assert covers(wide, narrow)
    assert covers(widest, narrow)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a > 5", "a >= 6"),
        ("a < 5.5", "a <= 5"),  # where bounds made for integers go wrong
        ("a > 5", "a > 5 and b = 1"),
        ("a != 5", "a > 5"),
        ("a != 5", "a != 5 and a != 6"),
        ("exists a", "a = 1"),
        ("exists a", "text a = 1"),
        ("a prefix ab", "a prefix abc"),
        ("a prefix ab", "a >= abc and a <= abd"),
        ("a suffix c", "a suffix bc"),
        ("a contains b", "a prefix abc"),
        ("a contains b", "a = abc"),
        ("a > 5", "a = '7'"),  # a text that is a number
        ("text a prefix x", "a = xy"),
        ("memory >= 1 GB", "memory >= 1 GiB"),
        ("topic a/**", "topic a/*/b"),
        ("topic **", "a = 1"),
        ("sql 'EXISTS a'", "sql 'EXISTS a' and a = 1"),
        ("xpath '//a'", "xpath '//a' and a = 1"),
        ("topic regex:'a/[bc]'", "topic a/b"),  # one topic, and the expression is asked of it
        ("topic regex:'a/[bc]'", "topic regex:'a/[bc]' and topic a/**"),
        ("topic a/**", "topic regex:'b' and topic a/*"),
        ("not topic regex:'a/[bc]'", "topic a/d"),
        ("a > 1 or b > 1", "a > 2 or b > 3"),
        ("not a > 5", "a < 3"),
        ("not (a > 5 or b = 1)", "a < 3 and b = 2"),
        ("a = 1", "b > 5 and b < 3"),  # nothing passes it, so anything covers it
        ("a = 1", "a = 1.0"),
    ],
)
def test_one_covers_the_other_and_not_the_reverse(wide: str, narrow: str) -> None:
    assert covers(parse_filter(wide), parse_filter(narrow))
    if narrow != "a = 1.0":
        assert not covers(parse_filter(narrow), parse_filter(wide))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1", "a = true"),
        ("a <= 5", "a < 5.5 and a > 5"),
        ("memory >= 1 GB", "memory >= 1000000000"),
        ("topic a/*", "topic */b"),
        ("a = x", "text a = y"),
        ("a != x", "a prefix x"),
        ("xpath '/a'", "xpath '//a'"),  # an expression is known by its text alone
        ("xpath '//a'", "xpath '//a' on envelope"),
        ("topic regex:'a.*'", "topic regex:'a/b'"),
        ("topic regex:'a/.*'", "topic a/*"),
    ],
)
def test_neither_covers_the_other(one: str, other: str) -> None:
    assert not covers(parse_filter(one), parse_filter(other))
    assert not covers(parse_filter(other), parse_filter(one))


@pytest.mark.parametrize(
    "text",
    [
        "a > 5 and a < 3",
        "a > 5 and a = true",
        "a = x and a > 5",
        "a = '7' and a > 8",
        "a prefix x and a = true",
        "a prefix x and a prefix y",
        "a = xy and a suffix x",
        "a = 1 and a != 1",
        "a >= 1 and a <= 1 and a != 1",
        "memory > 1 GB and memory > 1 s",
        "topic a/* and topic b/*",
        "topic a/b and topic regex:'a/[cd]'",
        "topic a/b and not topic regex:'a/.*'",
        "a > 5 and not exists a",
        "a > 5 and not a > 4",
        "a = x and text a = y",
        "nothing",
        "not everything",
    ],
)
def test_contradictions_are_seen(text: str) -> None:
    assert never_matches(parse_filter(text))


@pytest.mark.parametrize(
    "text", ["", "a = '7' and a > 5", "a = 'true' and a = true", "a > 5 and a != 6", "not a = 1"]
)
def test_what_can_match_is_not_called_a_contradiction(text: str) -> None:
    assert not never_matches(parse_filter(text))


def test_a_filter_with_too_many_alternatives_gets_the_safe_answer() -> None:
    many = AnyOf(tuple(Predicate("a", Operator.EQ, n) for n in range(REGIONS_MAX + 1)))
    other = Predicate("a", Operator.EQ, -1)
    one_of_them = All((Predicate("a", Operator.GE, 1), Predicate("a", Operator.LE, 1)))

    assert covers(many, many)
    assert not covers(many, one_of_them)
    assert intersects(many, other)
    assert not intersects(many, AnyOf(()))
    assert not never_matches(many)


def test_the_worst_filters_are_compared_in_reasonable_time() -> None:
    choices = " and ".join(f"(a{n} > {n} or b{n} > {n})" for n in range(5))
    rest = " and ".join(f"c{n} > {n}" for n in range(240))
    topics = " and ".join(f"topic **/x/*/*/*/{n}/**" for n in range(200))
    wide, narrow = parse_filter(f"{choices} and {rest}"), parse_filter(f"{rest} and {choices}")
    many_topics = parse_filter(topics)
    started = perf_counter()

    assert covers(wide, narrow)
    assert intersects(wide, narrow)
    assert not never_matches(many_topics)
    assert not covers(many_topics, wide)

    assert perf_counter() - started < 5
