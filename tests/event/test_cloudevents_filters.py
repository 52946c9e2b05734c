"""The `filters` of a subscription: what is read, what is written, and where an error is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event.written_filters import write_filters
from tocsin.errors import BadFilter
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.filter import (
    EVERYTHING,
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    Sql,
    TextIs,
    TopicIs,
)
from tocsin.event.topic import TopicPattern

TYPE_IS_LOAD = TextIs("type", Operator.EQ, "load")
HOT = Predicate("load5", Operator.GE, 5)
LEAD = TopicIs(TopicPattern.parse("lead/**"))


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([], EVERYTHING),
        ([{"exact": {"type": "load"}}], TYPE_IS_LOAD),
        ([{"topic": "lead/**"}, {"filter": "load5 >= 5"}], All((LEAD, HOT))),
        (
            [{"prefix": {"type": "a", "source": "/b"}}],
            All((TextIs("type", Operator.PREFIX, "a"), TextIs("source", Operator.PREFIX, "/b"))),
        ),
        ([{"suffix": {"subject": ".nc"}}], TextIs("subject", Operator.SUFFIX, ".nc")),
        ([{"not": {"exact": {"type": "load"}}}], Not(TYPE_IS_LOAD)),
        (
            [{"any": [{"exact": {"type": "load"}}, {"all": [{"filter": "load5 >= 5"}]}]}],
            AnyOf((TYPE_IS_LOAD, All((HOT,)))),
        ),
        ([{"topic": {"dialect": "full", "expression": "lead//."}}], LEAD),
        ([{"sql": "type = 'load'"}], Sql("type = 'load'")),
    ],
)
def test_a_list_of_filters_means_all_of_them(filters: list[object], wanted: Filter) -> None:
    assert read_filters(filters) == wanted


@pytest.mark.parametrize(
    ("filters", "path", "said"),
    [
        ([1], "filters[0]", "a number"),
        ([{}], "filters[0]", "0 dialects"),
        ([{"exact": {"a": "b"}, "not": {}}], "filters[0]", "exact, not"),
        (
            [{"concept": "a"}],
            "filters[0]",
            "'concept', which is not a filter dialect of this broker",
        ),
        ([{"concepts": "a"}], "filters[0].concepts", "a text"),
        ([{"concepts": []}], "filters[0].concepts", "empty"),
        ([{"concepts": [7]}], "filters[0].concepts[0]", "a number"),
        ([{"concepts": ["ActivityClosd"]}], "filters[0].concepts", "ActivityClosed"),
        ([{"concepts": ["RunId"] * 10_001}], "filters[0].concepts", "10000"),
        ([{"xpath": 7}], "filters[0].xpath", "a number"),
        ([{"xpath": "/a["}], "filters[0].xpath", "ends too early"),
        ([{"xpath": "/p:a"}], "filters[0].xpath", "'p' is bound to no namespace"),
        ([{"xpath": "$x"}], "filters[0].xpath", "variable $x"),
        ([{"xpath": "nope(1)"}], "filters[0].xpath", "no function nope()"),
        ([{"xpath": {"on": "topic"}}], "filters[0].xpath", "has the keys on"),
        ([{"xpath": {"expression": "1", "on": "topic"}}], "filters[0].xpath", "find elements"),
        ([{"xpath": {"expression": "a", "on": "moon"}}], "filters[0].xpath", "document"),
        ([{"xpath": {"expression": "a", "soap": "9"}}], "filters[0].xpath", "document"),
        (
            [{"xpath": {"expression": "a", "namespaces": []}}],
            "filters[0].xpath.namespaces",
            "empty",
        ),
        ([{"xpath": {"expression": "a", "wsa": 1}}], "filters[0].xpath.wsa", "a number"),
        (
            [{"xpath": {"expression": "a", "namespaces": {"": "u"}}}],
            "filters[0].xpath",
            "prefix",
        ),
        ([{"like": ["a"]}], "filters[0]", "It has: exact, prefix"),
        ([{"exact": {}}], "filters[0].exact", "empty"),
        ([{"exact": {"type": 5}}], "filters[0].exact.type", "a number"),
        ([{"exact": {"type": ""}}], "filters[0].exact.type", "empty"),
        ([{"exact": {"n" * 129: "x"}}], "filters[0].exact.", "128"),
        ([{"all": []}], "filters[0].all", "empty"),
        ([{"all": {"exact": {"a": "b"}}}], "filters[0].all", "an object"),
        (
            [{"filter": "a = 1"}, {"topic": "a"}, {"any": [{"like": "x"}]}],
            "filters[2].any[0]",
            "'like'",
        ),
        ([{"not": [{"filter": ""}]}], "filters[0].not", "a list"),
        ([{"filter": "a => 5"}], "filters[0].filter", "Did you mean >=?"),
        ([{"filter": None}], "filters[0].filter", "null"),
        ([{"topic": "a//b"}], "filters[0].topic", "empty level"),
        ([{"topic": {"dialect": "full"}}], "filters[0].topic", "dialect and expression"),
        ([{"topic": {"dialect": "mqtt", "expression": "a"}}], "filters[0].topic", "'mqtt'"),
        ([{"sql": "type = "}], "filters[0].sql", ""),
        ([{"sql": True}], "filters[0].sql", "true or false"),
    ],
)
def test_an_error_names_the_place_in_the_list(filters: list[object], path: str, said: str) -> None:
    with pytest.raises(BadFilter) as caught:
        read_filters(filters)

    assert caught.value.problem.startswith(path)
    assert said in str(caught.value)


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(BadFilter, match="filters is an object"):
        read_filters({"exact": {"type": "x"}})  # type: ignore[arg-type]


def nested(depth: int) -> object:
    member: object = {"exact": {"type": "x"}}
    for _ in range(depth - 1):
        member = {"not": member}
    return member


def test_sixteen_levels_are_read_and_seventeen_are_not() -> None:
    read_filters([nested(16)])

    with pytest.raises(BadFilter, match="more than 16 deep"):
        read_filters([nested(17)])
    with pytest.raises(BadFilter, match="more than 16 deep"):
        read_filters([nested(900)])


def test_no_more_than_512_conditions_and_groups_are_read_however_they_are_written() -> None:
    read_filters([{"topic": "a"}] * 512)

    for filters in (
        [{"topic": "a"}] * 513,
        [{"exact": {f"a{n}": "x" for n in range(512)}}],
        [{"filter": " and ".join(["a = 1"] * 250)}] * 3,
        [{"topic": {"dialect": "full", "expression": "|".join("a" * 60)}}] * 9,
    ):
        with pytest.raises(BadFilter, match="512"):
            read_filters(filters)


def test_a_megabyte_of_name_is_not_echoed() -> None:
    for filters in ([{"x" * 1_000_000: 1}], [{"exact": {"x" * 1_000_000: 1}}]):
        with pytest.raises(BadFilter) as caught:
            read_filters(filters)
        assert len(str(caught.value)) < 500


names = st.text(min_size=1, max_size=6)
leaves = st.one_of(
    st.builds(TextIs, names, st.sampled_from([Operator.EQ, Operator.PREFIX]), names),
    st.sampled_from([HOT, LEAD, Sql("type = 'load'"), EVERYTHING, AnyOf(())]),
)
filters_of_any_kind: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(tuple).map(All),
        st.lists(inner, min_size=1, max_size=3).map(tuple).map(AnyOf),
        inner.map(Not),
    ),
    max_leaves=6,
)


@given(filters_of_any_kind)
def test_filters_are_read_back_from_what_is_written(wanted: Filter) -> None:
    assert read_filters(json.loads(json.dumps(write_filters(wanted)))) == wanted


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["exact", "all", "any", "not", "filter", "topic", "dialect", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=10,
)


@given(st.lists(json_values, max_size=3))
def test_any_json_is_read_or_refused(filters: list[object]) -> None:
    try:
        wanted = read_filters(filters)
    except BadFilter:
        return
    assert read_filters(write_filters(wanted)) == wanted
