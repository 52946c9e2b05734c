"""The filter language: what is read, how it is written, and what an error says."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFilter, BadTopic, BadTopicPattern
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
    TopicMatches,
)
from tocsin.event.filter_text import format_filter, parse_filter, parse_topic_filter
from tocsin.event.topic import TopicPattern, valid_topic
from tocsin.event.value import UNITS

NAUGHTY = Path(__file__).parents[2] / "../shared/data/hostile/blns/blns.json"

LINUX = Predicate("system", Operator.EQ, "Linux")
DISK = Predicate("disk", Operator.GT, 120)


def topic(text: str) -> TopicIs:
    return TopicIs(TopicPattern.parse(text))


def test_the_example_of_the_manual() -> None:
    assert parse_filter("topic lead/*/radar and load5 >= 5 and system = Linux") == All(
        (topic("lead/*/radar"), Predicate("load5", Operator.GE, 5), LINUX)
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", EVERYTHING),
        (" \n ", EVERYTHING),
        ("everything", EVERYTHING),
        ("nothing", AnyOf(())),
        ("system=Linux", LINUX),
        ("system == 'Linux'", LINUX),
        ('system = "Linux"', LINUX),
        ("(((system = Linux)))", LINUX),
        ("a <> 5", Predicate("a", Operator.NE, 5)),
        ("a != -5.5e1", Predicate("a", Operator.NE, -55.0)),
        ("a<-5", Predicate("a", Operator.LT, -5)),
        ("a = .5", Predicate("a", Operator.EQ, 0.5)),
        ("a = 10.0.0.1", Predicate("a", Operator.EQ, "10.0.0.1")),
        ("a = 2024-05-01T10:00:00Z", Predicate("a", Operator.EQ, "2024-05-01T10:00:00Z")),
        ("a = TRUE", Predicate("a", Operator.EQ, True)),
        ("a = 'true'", Predicate("a", Operator.EQ, "true")),
        ("a = '5'", Predicate("a", Operator.EQ, "5")),
        ("a prefix 5", Predicate("a", Operator.PREFIX, "5")),
        ("a Contains x", Predicate("a", Operator.CONTAINS, "x")),
        ("memory >= 2 GiB", Predicate("memory", Operator.GE, 2, "GiB")),
        ("memory >= 2GiB", Predicate("memory", Operator.GE, 2, "GiB")),
        ("use < 90%", Predicate("use", Operator.LT, 90, "%")),
        ("exists a", Predicate("a", Operator.EXISTS)),
        ("a EXISTS", Predicate("a", Operator.EXISTS)),
        ("`and` = 1", Predicate("and", Operator.EQ, 1)),
        ("`a b` = 1", Predicate("a b", Operator.EQ, 1)),
        ("not-ready = 1", Predicate("not-ready", Operator.EQ, 1)),
        ("text contains x", Predicate("text", Operator.CONTAINS, "x")),
        ("sql = x", Predicate("sql", Operator.EQ, "x")),
        ("text n = 5", TextIs("n", Operator.EQ, "5")),
        ("sql \"type = 'x'\"", Sql("type = 'x'")),
        ("topic = a/b", topic("a/b")),
        ("TOPIC 'a b/**'", topic("a b/**")),
        ("(topic a/**)", topic("a/**")),
        ("topic contains/x", topic("contains/x")),
        ("topic contains x", Predicate("topic", Operator.CONTAINS, "x")),
        ("topic nats:'a.>'", topic("a/*/**")),
        ("topic regex:'a/[0-9]+'", TopicMatches("a/[0-9]+")),
        (r"topic = REGEX:'a\\d'", TopicMatches(r"a\d")),
        ('topic full:"a//b|c"', AnyOf((topic("a/**/b"), topic("c")))),
        (r"a = 'it\'s \"\\\n\u00e9'", Predicate("a", Operator.EQ, "it's \"\\\né")),
    ],
)
def test_what_a_text_means(text: str, wanted: Filter) -> None:
    assert parse_filter(text) == wanted


def test_and_binds_tighter_than_or_and_not_tightest() -> None:
    a, b, c = (Predicate(name, Operator.EQ, 1) for name in "abc")

    assert parse_filter("a = 1 or b = 1 and not c = 1") == AnyOf((a, All((b, Not(c)))))
    assert parse_filter("(a = 1 or b = 1) and c = 1") == All((AnyOf((a, b)), c))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[system,=,Linux], [disk,>,120]", All((LINUX, DISK))),
        ("[system,eq,'Linux'];[disk,>,120]", All((LINUX, DISK))),
        ("[ system , = , Linux ]", LINUX),
        ("[class,eq,5]", Predicate("class", Operator.EQ, "5")),
        ("[class,neq,x]", Predicate("class", Operator.NE, "x")),
        ("[a,<>,5]", Predicate("a", Operator.NE, 5)),
        ("[a,str-prefix,x y]", Predicate("a", Operator.PREFIX, "x y")),
        ('[a,str-postfix,"x,]"]', Predicate("a", Operator.SUFFIX, "x,]")),
        ("[a,str-contains,x]", Predicate("a", Operator.CONTAINS, "x")),
        ("[a,str-lt,5]", Predicate("a", Operator.LT, "5")),
        ("[a,isPresent,any]", Predicate("a", Operator.EXISTS)),
        ("[a,isPresent]", Predicate("a", Operator.EXISTS)),
        ("[disk,>,120 GB]", Predicate("disk", Operator.GT, 120, "GB")),
        ("[topic,=,a/*]", topic("a/*")),
        ("not [system,=,Linux] and disk > 120", All((Not(LINUX), DISK))),
    ],
)
def test_the_brackets_of_the_papers_mean_the_same(text: str, wanted: Filter) -> None:
    assert parse_filter(text) == wanted


@pytest.mark.parametrize(
    ("text", "position", "problem", "remedy"),
    [
        ("a => 5", 2, "'=>'", "Did you mean >=?"),
        ("topic full:lead", 6, "full:", "full:'lead'"),
        ("not topic = NATS:a.>", 12, "nats:", "nats:'a.>'"),
        ("topic regex:a.*", 6, "regex:", "regex:'a.*'"),
        ("a = 1 and topic regex:'a('", 22, "missing )", "RE2"),
        ("topic regex:''", 12, "0 characters", ""),
        ("a = 5 && b = 6", 6, "'&&'", "Did you mean and?"),
        ("a like x", 2, "'like'", "Did you mean contains?"),
        ("a >= 5 GIB", 7, "'GIB'", "Did you mean GiB?"),
        ("a >= 5 furlong", 7, "'furlong'", "Units are: B"),
        ("a", 1, "the end", ""),
        ("a =", 3, "a value", ""),
        ("a = and", 4, "a value", ""),
        ("and a = 1", 0, "a condition", ""),
        ("(a = 1", 6, "the end", ""),
        ("a = 1)", 5, "')'", ""),
        ("a = 'x", 4, "never closed", ""),
        (r"a = '\q'", 5, "escape", ""),
        (r"a = '\ud800'", 5, "escape", ""),
        ("a < true", 4, "only with = and !=", ""),
        ("topic a//b", 6, "empty level", ""),
        ("topic != a", 6, "topic !=", "not topic a/b"),
        ("topic", 5, "a topic pattern", ""),
        ("a = 1 and sql 'type = '", 14, "", ""),
        ("sql type", 4, "an operator", ""),
        ("text n contains x", 7, "prefix or suffix", ""),
        ("a = 1e999", 4, "too large", ""),
        ("a = " + "1" * 65, 4, "too long", ""),
        ("x" * 129 + " = 1", 0, "too long", ""),
        ("`` = 1", 3, "an attribute name", ""),
        ("[a,=]", 4, "a comma and a value", ""),
        ("[a,~,1]", 3, "no operator '~'", ""),
        ("[a b,=,1]", 1, "not an attribute name", ""),
        ("[a,=,1", 6, "]", ""),
        ("[a,=,1],", 8, "another", ""),
        ("[a,<,true]", 5, "only with = and !=", ""),
        ("[topic,=,a//b]", 9, "empty level", ""),
        ("a = \ud800", 4, "half of a surrogate pair", ""),
    ],
)
def test_an_error_says_where_and_what_was_found_and_what_to_do(
    text: str, position: int, problem: str, remedy: str
) -> None:
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)

    assert caught.value.position == position
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy
    assert caught.value.pointed().encode().endswith(b"^")


names = st.one_of(
    st.sampled_from(["a", "load5", "and", "topic", "text", "x.y-z"]),
    st.text(min_size=1, max_size=8),
)
texts = st.one_of(
    st.sampled_from(["", "5", "true", "or", "Linux", "a/b", "it's\\"]), st.text(max_size=8)
)
finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(st.integers(-(10**18), 10**18), finite)
signs = st.sampled_from(
    [Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE]
)
text_signs = st.sampled_from([Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS])
topics = st.sampled_from(["**", "a/*/b", "contains", "a b/c", "it's/**", "full:x", "a>b"])
leaves = st.one_of(
    st.builds(Predicate, names, signs, numbers, st.none() | st.sampled_from(sorted(UNITS))),
    st.builds(Predicate, names, signs | text_signs, texts),
    st.builds(Predicate, names, st.sampled_from([Operator.EQ, Operator.NE]), st.booleans()),
    st.builds(Predicate, names, st.just(Operator.EXISTS)),
    st.builds(topic, topics),
    st.sampled_from(["a/.*", r"it's\s'\d+\n", '[`"]']).map(TopicMatches),
    st.builds(
        TextIs, names, st.sampled_from([Operator.EQ, Operator.PREFIX, Operator.SUFFIX]), texts
    ),
    st.sampled_from([EVERYTHING, AnyOf(()), Sql("type = 'x' AND EXISTS subject")]),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(tuple).map(All),
        st.lists(inner, min_size=2, max_size=3).map(tuple).map(AnyOf),
        inner.map(Not),
    ),
    max_leaves=8,
)


@given(filters)
def test_a_filter_is_read_back_from_what_it_prints(wanted: Filter) -> None:
    assert parse_filter(format_filter(wanted)) == wanted


@given(st.text(alphabet="ab()[],;='\"`\\ <>!5.%*/|&~_ndortpic", max_size=40))
def test_any_text_is_a_filter_or_a_bad_filter(text: str) -> None:
    try:
        wanted = parse_filter(text)
    except BadFilter:
        return
    assert parse_filter(format_filter(wanted)) == wanted


@pytest.mark.skipif(not NAUGHTY.exists(), reason="the list of naughty strings is not here")
def test_naughty_strings_are_read_or_refused_and_nothing_else() -> None:
    for text in json.loads(NAUGHTY.read_text()):
        started = perf_counter()
        for read in (
            valid_topic,
            parse_topic_filter,
            lambda each: parse_topic_filter(each, "full"),
            lambda each: parse_topic_filter(each, "nats"),
            lambda each: parse_topic_filter(each, "regex"),
            parse_filter,
            lambda each: parse_filter(f"a = {each}"),
            lambda each: parse_filter(f"topic {each}"),
            lambda each: parse_filter(f"[a,=,{each}]"),
            lambda each: parse_filter(format_filter(Sql(each))),
        ):
            try:
                read(text)
            except (BadTopic, BadTopicPattern, BadFilter) as refused:
                str(refused).encode()
        quoted = format_filter(Predicate("a", Operator.EQ, text))
        assert parse_filter(quoted) == Predicate("a", Operator.EQ, text)
        assert perf_counter() - started < 0.5, text


@pytest.mark.parametrize(
    "text",
    [
        "(" * 8000,
        "not " * 2000,
        "[" * 8000,
        "'" + "\\" * 8000,
        "a = 1 and " * 800 + "a = 1",
        "[a,=,1]," * 1000 + "[a,=,1]",
        "a = 1 " * 200_000,
        "x" * 1_000_000,
        "topic full:'" + "a|" * 3000 + "a'",
        "a = '" + "x" * 8000,
        " " * 8000 + "a",
    ],
)
def test_what_is_too_deep_or_too_long_is_refused_at_once(text: str) -> None:
    started = perf_counter()

    with pytest.raises(BadFilter) as caught:
        parse_filter(text)

    assert perf_counter() - started < 0.5
    assert len(str(caught.value)) < 500


def test_the_deepest_and_widest_filters_are_read() -> None:
    assert parse_filter("(" * 32 + "a = 1" + ")" * 32) == Predicate("a", Operator.EQ, 1)
    assert isinstance(parse_filter(" and ".join(["a = 1"] * 256)), All)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("load5 contians x", "contains"),
        ("topc lead/**", "topic"),
        ("load5 >= 5 adn system = Linux", "and"),
        ("load5 > 5 ro x = 1", "or"),
        ("nto load5 > 5", "not"),
        ("exist load5", "exists"),
        ("name prefx x", "prefix"),
        ("concpet ActivityProblem", "concept"),
        ("age > 5 minuts", "minute"),
        ("(load5 > 5 adn x = 1)", "and"),
    ],
)
def test_a_misspelt_word_gets_the_one_that_was_meant(text: str, meant: str) -> None:
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)

    assert caught.value.remedy.startswith(f"Did you mean {meant}")
