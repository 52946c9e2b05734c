"""The index must answer what the slow definition answers, whatever was added and removed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.event.event import Event
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    Sql,
    TextIs,
    TopicIs,
    TopicMatches,
    XPath,
)
from tocsin.event.filter_eval import matches
from tocsin.event.topic import TopicPattern
from tocsin.event.value import Quantity, Scalar
from tocsin.matching.matcher import Matcher

KERNELS: dict[str, Callable[[], Matcher]] = {
    "one by one": lambda: Matcher(use_numba=False, few_rows_max=sys.maxsize),
    "numpy": lambda: Matcher(use_numba=False, few_rows_max=0),
    "numba": lambda: Matcher(use_numba=True, few_rows_max=0),
    "as shipped, in small": lambda: Matcher(few_rows_max=3, numba_rows_min=6),
}

every_kernel = pytest.mark.parametrize("kernel", KERNELS)

# Few names and few values, so that filters and events meet.
names = st.sampled_from(["a", "b", "type", "subject", "time", "topic", "é", ""])
texts = st.sampled_from(["", "x", "xy", "yx", "7", "7.0", "true", "a/b", "x" * 70, "x" * 64])
numbers = st.one_of(
    st.integers(-2, 8),
    st.sampled_from([0.5, -0.0, 6.999999999999999, 7.000000000000001, 1e308, -5e-324, 2**53 + 1]),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 10**400, -(10**400)]),
)
scalars: st.SearchStrategy[Scalar] = st.one_of(numbers, texts, st.booleans())
units = st.sampled_from([None, None, None, "B", "KiB", "s", "ms", "nonsense"])
quantities = st.builds(Quantity, numbers, units)
topics = st.sampled_from(["", "a", "b", "a/b", "a/b/c", "b/a/b", "a/b/a/b", "c"])
patterns = st.sampled_from(
    ["**", "a", "a/*", "*/b", "a/**", "**/b", "**/a/**", "*", "a/b", "**/**", "*/**/b", "**/a/*/b"]
).map(TopicPattern.parse)
expressions = st.sampled_from(["type = 'x'", "EXISTS a AND a > 3", "subject LIKE 'x%'"])

xpaths = st.sampled_from(
    [
        "/c/b/a",
        "/c/b/a[text() = 1]",
        "//a",
        "//a[@x = 'y']",
        "//a or //z",
        "not(//a)",
        "count(//*) > 3",
        "//ce:type[. = 'x']",
        "//*[local-name() = 'Topic'] = 'a/b'",
        "7 = //a",
        "//a = false()",
        "//namespace::xml",
    ]
)
topic_paths = st.sampled_from(["a", "a/b", "//b", "a//*", "*/*", "/a", "//a | //b"])

leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Predicate, names, st.sampled_from(Operator), scalars),
    st.builds(Predicate, names, st.sampled_from(Operator), numbers, units),
    st.builds(
        TextIs,
        names,
        st.sampled_from([Operator.EQ, Operator.PREFIX, Operator.SUFFIX]),
        texts,
    ),
    st.builds(TopicIs, patterns),
    st.builds(TopicMatches, st.sampled_from(["a/.*", "a(/b)*", "[ab]", "", ".*"]).filter(bool)),
    st.builds(Sql, expressions),
    st.builds(XPath, xpaths, on=st.sampled_from(["payload", "envelope"])),
    st.builds(XPath, topic_paths, on=st.just("topic")),
)
filters = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.builds(All, st.lists(parts, max_size=4).map(tuple)),
        st.builds(AnyOf, st.lists(parts, max_size=4).map(tuple)),
        st.builds(Not, parts),
    ),
    max_leaves=8,
)
payloads = st.sampled_from(
    [
        None,
        b"not json",
        b'{"a": 7, "b": "x", "subject": "hidden?", "time": 3}',
        b'{"a": {"value": 2, "unit": "KiB"}, "b": true, "deep": {"a": 1}}',
        b'{"a": "7", "b": null, "": 1}',
        b"<c><b><a>1</a></b></c>",
        b"<c><b><a x = 'y'>7</a></b><z/></c>",
        b"<!DOCTYPE a><a/>",
    ]
)
events = st.builds(
    Event,
    id=st.just("1"),
    source=st.just("/tests"),
    type=texts,
    topic=topics,
    time=st.none() | texts,
    subject=st.none() | texts,
    extensions=st.dictionaries(names, scalars, max_size=3),
    attributes=st.dictionaries(names, st.one_of(scalars, quantities), max_size=3),
    data=payloads,
)


def wanting(stored: dict[int, Filter], event: Event) -> list[int]:
    """The definition: everybody is asked."""
    return sorted(key for key, filter in stored.items() if matches(filter, event))


@every_kernel
@given(data=st.data())
@settings(deadline=None)
def test_the_index_answers_as_the_definition_does_after_any_adds_and_removes(
    kernel: str, data: st.DataObject
) -> None:
    matcher = KERNELS[kernel]()
    stored: dict[int, Filter] = {}
    pool = data.draw(st.lists(filters, min_size=1, max_size=12), "pool")
    for round_ in range(data.draw(st.integers(1, 3), "rounds")):
        for key, filter in enumerate(data.draw(st.lists(st.sampled_from(pool), max_size=15))):
            stored[100 * round_ + key] = filter
            matcher.add(100 * round_ + key, filter)
        leaving = data.draw(st.sets(st.sampled_from(sorted(stored)))) if stored else ()
        for key in leaving:
            del stored[key]
            matcher.remove(key)

        assert len(matcher) == len(stored)
        for event in data.draw(st.lists(events, min_size=1, max_size=3)):
            assert matcher.match(event) == wanting(stored, event)


@every_kernel
@given(data=st.data())
@settings(deadline=None)
def test_when_everybody_has_left_nothing_is_kept(kernel: str, data: st.DataObject) -> None:
    matcher = KERNELS[kernel]()
    pool = data.draw(st.lists(filters, max_size=20))
    for key, filter in enumerate(pool):
        matcher.add(key, filter)
    for event in data.draw(st.lists(events, max_size=2)):
        matcher.match(event)

    for key in data.draw(st.permutations(range(len(pool)))):
        matcher.remove(key)

    assert len(matcher) == 0
    assert matcher.holdings() == Matcher().holdings()
