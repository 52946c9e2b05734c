"""CloudEvents SQL: what an expression is worth, and what a filter made of it lets pass."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFilter
from tocsin.event.cesql import ErrorKind, SqlValue, compile_sql, evaluate_sql
from tocsin.event.cesql.like import compile_like
from tocsin.event.event import Event, Value
from tocsin.event.filter import Sql
from tocsin.event.filter_eval import matches
from tocsin.event.value import Quantity

EVENT: dict[str, Value] = {
    "id": "7",
    "source": "/radar/ohio",
    "type": "echo",
    "subject": "run 42",
    "nodes": 12,
    "load5": 1.5,
    "urgent": True,
    "hop": "3",
    "wait": Quantity(20, "min"),
    "bytes": 1 << 40,
    "Temp": 21,
}


def value_of(text: str) -> SqlValue:
    value, error = evaluate_sql(text, EVENT)
    assert error is None, error
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it\\'s'", "it's"),
        ('"it\'s \\"it\\""', 'it\'s "it"'),
        ("'it''s'", "it's"),
        ("'a\\\\'", "a\\\\"),
        ("+5", 5),
        ("-2147483648", -(1 << 31)),
        ("007", 7),
        ("TrUe", True),
        ("4-1", 3),
        ("4 - -1", 5),
        ("--'10'", 10),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("2 + 3 * 4", 14),
        ("20 - 5 - 5", 10),
        ("100 / 5 / 2", 10),
        ("'5' + true", 6),
        ("1 + 1 = 2", True),
        ("nodes", 12),
        ("NODES", 12),
        ("Temp", 21),
        ("specversion", "1.0"),
        ("wait", 20),
    ],
)
def test_an_expression_has_the_value_that_the_specification_gives(
    text: str, value: SqlValue
) -> None:
    assert (value_of(text), type(value_of(text))) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "nodes = 12 AND urgent",
        "hop < nodes",
        "hop = 3",
        "hop = '3'",
        "'TRUE' = urgent",
        "NOT (urgent = 'TRUE')",
        "type <> 'storm' and type != 'rain'",
        "subject LIKE 'run%' AND subject NOT LIKE '%7'",
        "12 LIKE '1_'",
        "source IN ('/lidar', '/radar/ohio')",
        "nodes NOT IN (1, '2', 13)",
        "hop IN (1, 2, 3)",
        "EXISTS subject AND NOT EXISTS owner",
        "EXISTS specversion",
        "true XOR false XOR false",
        "false AND true OR true",
        "LENGTH(CONCAT_WS('-', 'a', nodes, urgent)) = 9",
        "UPPER(LEFT(type, 1)) = 'E' AND lower('ECHO') = type",
        "SUBSTRING(source, 2, 5) = 'radar' AND SUBSTRING(source, -4) = 'ohio'",
        "RIGHT(subject, 2) = 42 AND RIGHT(subject, 0) = ''",
        "TRIM('\u3000 a \t') = 'a' AND TRIM('\x1ca') != 'a'",
        "ABS(-5) = 5 AND INT('+5') = 5 AND BOOL('TRUE') AND STRING(true) = 'true'",
        "IS_INT('12') AND NOT IS_INT('1.2') AND IS_BOOL('False') AND NOT IS_BOOL('no')",
        "BOOL(-50) AND NOT BOOL(0)",
        "wait > 10",
        "(((nodes))) >= 12",
    ],
)
def test_a_filter_lets_pass_what_is_true(text: str) -> None:
    assert compile_sql(text)(EVENT) is True


@pytest.mark.parametrize("text", ["load5 > 1", "load5 < 2", "bytes > 5", "load5 != 1"])
def test_fractions_and_large_numbers_compare_as_numbers(text: str) -> None:
    assert compile_sql(text)(EVENT)


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("owner", False, ErrorKind.MISSING_ATTRIBUTE),
        ("NOT owner", False, ErrorKind.MISSING_ATTRIBUTE),
        ("-owner", 0, ErrorKind.MISSING_ATTRIBUTE),
        ("1 / owner", 0, ErrorKind.MISSING_ATTRIBUTE),
        ("owner != 2", False, ErrorKind.MISSING_ATTRIBUTE),
        ("LOWER(owner)", "", ErrorKind.MISSING_ATTRIBUTE),
        ("LENGTH(owner)", 0, ErrorKind.MISSING_ATTRIBUTE),
        ("5 / 0", 0, ErrorKind.MATH),
        ("5 % 0", 0, ErrorKind.MATH),
        ("true AND 1 != 1 / 0", False, ErrorKind.MATH),
        ("2147483647 + 1", 0, ErrorKind.MATH),
        ("-(-2147483648)", 0, ErrorKind.MATH),
        ("-2147483648 / -1", 0, ErrorKind.MATH),
        ("ABS(-2147483648)", (1 << 31) - 1, ErrorKind.MATH),
        ("INT('12abc')", 0, ErrorKind.CAST),
        ("INT('99999999999')", 0, ErrorKind.CAST),
        ("INT('٣')", 0, ErrorKind.CAST),
        ("INT(load5)", 0, ErrorKind.CAST),
        ("1 + bytes", 0, ErrorKind.CAST),
        ("BOOL('yes')", False, ErrorKind.CAST),
        ("type < 5", False, ErrorKind.CAST),
        ("LEFT('abc', -1)", "abc", ErrorKind.FUNCTION),
        ("CONCAT(LEFT('abc', -1), 'd')", "", ErrorKind.FUNCTION),
        ("SUBSTRING('abc', 9)", "", ErrorKind.FUNCTION),
        ("SUBSTRING('abc', 1, -1)", "", ErrorKind.FUNCTION),
    ],
)
def test_an_error_has_a_kind_and_a_value_and_lets_nothing_pass(
    text: str, value: SqlValue, kind: ErrorKind
) -> None:
    found, error = evaluate_sql(text, EVENT)

    assert (found, type(found)) == (value, type(value))
    assert error is not None
    assert error.kind is kind
    assert compile_sql(text)(EVENT) is False


def test_an_error_beside_a_true_part_still_lets_nothing_pass() -> None:
    assert not compile_sql("owner = 2 OR true")(EVENT)
    assert compile_sql("true OR owner = 2")(EVENT)  # the right side is never asked
    assert evaluate_sql("false AND 1 / 0 = 1", EVENT) == (False, None)


def test_a_value_that_is_no_boolean_lets_nothing_pass() -> None:
    for text in ("1", "'true'", "nodes", "CONCAT('a')"):
        assert compile_sql(text)(EVENT) is False


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("nodes >", 7),
        ("nodes 12", 6),
        ("(nodes = 12", 11),
        ("nodes = 12)", 10),
        ("type LIKE 12", 10),
        ("type LIKE subject", 10),
        ("type IN ()", 9),
        ("type IN 'echo'", 8),
        ("EXISTS 'type'", 7),
        ("EXISTS", 6),
        ("ABC('x')", 0),
        ("true AND LENGTH()", 9),
        ("CONCAT_WS()", 0),
        ("LENGTH('a' 'b')", 11),
        ("type = 'echo", 7),
        ("type ; 1", 5),
        ("2147483648", 0),
        ("-2147483649", 1),
        ("9" * 5000, 0),
        ("load_5 > 1", 0),
        ("+type", 1),
        ("and", 0),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(text: str, position: int) -> None:
    with pytest.raises(BadFilter) as caught:
        compile_sql(text)

    assert caught.value.position == position
    assert caught.value.text == text
    assert caught.value.remedy
    assert len(caught.value.problem) < 120


@pytest.mark.parametrize(
    "text",
    [
        "(" * 33 + "true" + ")" * 33,
        "-" * 33 + "hop",
        "NOT " * 9000 + "true",
        "ABS(" * 33 + "1" + ")" * 33,
        "type" + " LIKE 'a'" * 33,
        " AND ".join(["true"] * 513),
        f"type IN ({','.join('1' * 600)})",
        "'" + "x" * 8191 + "'",
        "(" * 100_000,
    ],
)
def test_an_expression_beyond_a_limit_is_refused(text: str) -> None:
    with pytest.raises(BadFilter):
        compile_sql(text)


def test_an_expression_at_the_limits_works() -> None:
    assert compile_sql("(" * 31 + "true" + ")" * 31)(EVENT)
    assert compile_sql(" AND ".join(["true"] * 250))(EVENT)
    suffixes = " LIKE 'true'" * 31
    assert compile_sql("(" * 10 + "true" + (suffixes + ")") * 10)(EVENT)


def test_text_does_not_grow_without_end() -> None:
    values: dict[str, Value] = {"x": "x" * (1 << 20)}

    _, error = evaluate_sql("LENGTH(CONCAT(x, x)) > 0", values)

    assert error is not None
    assert error.kind is ErrorKind.FUNCTION


@given(
    pattern=st.text(st.sampled_from("ab%_\\.*"), max_size=12),
    text=st.text(st.sampled_from("ab%_\\.*\n"), max_size=12),
)
def test_like_equals_the_regular_expression_it_stands_for(pattern: str, text: str) -> None:
    slow = "".join(
        {"%": ".*", "_": "."}.get(piece) or re.escape(piece[-1])
        for piece in re.findall(r"\\[%_]|.", pattern)
    )

    assert compile_like(pattern)(text) == bool(re.fullmatch(slow, text, re.DOTALL))


@pytest.mark.timeout(10)
def test_like_takes_no_time_for_a_hostile_pattern() -> None:
    text = "a" * 100_000

    assert not compile_like("%a" * 2000 + "%b")(text)
    assert not compile_like("%a_" * 500 + "%b")(text)


@given(left=st.integers(-(1 << 31), (1 << 31) - 1), right=st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_quotient_and_its_remainder_make_the_number_again(left: int, right: int) -> None:
    if right in (0, -1):
        return
    quotient = evaluate_sql("a / b", {"a": left, "b": right})[0]
    remainder = evaluate_sql("a % b", {"a": left, "b": right})[0]

    assert isinstance(quotient, int)
    assert isinstance(remainder, int)
    assert quotient * right + remainder == left
    assert remainder == 0 or (remainder < 0) == (left < 0)


WORDS = st.sampled_from("(),=<+-*/%") | st.sampled_from(
    ["!=", "AND", "OR", "NOT", "LIKE", "IN", "EXISTS", "true", "'a%'", "12", "id", "LENGTH("]
)


@given(text=st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=20))
def test_any_text_is_an_expression_or_a_clean_error(text: str) -> None:
    try:
        passes = compile_sql(text)
    except BadFilter as error:
        pointed = error.pointed()
        assert pointed.endswith("^")
        return

    assert passes(EVENT) in (True, False)


@given(text=st.text(max_size=20))
def test_a_text_between_quotes_is_itself(text: str) -> None:
    if "\\" in text:
        return

    assert evaluate_sql("'" + text.replace("'", "\\'") + "'", {}) == (text, None)
    doubled = text.replace('"', '""')
    assert evaluate_sql(f'x = "{doubled}"', {"x": text}) == (True, None)


def test_the_same_text_is_compiled_once() -> None:
    assert compile_sql("nodes = 12") is compile_sql("nodes = 12")


def test_thousands_of_expressions_are_not_compiled_again_for_every_event() -> None:
    filters = [Sql(f"nodes = {number} OR NOT EXISTS nodes") for number in range(3_000)]
    event = Event("1", "/s", "t", data=b'{"nodes": 7}')
    for _ in range(2):
        before = compile_sql.cache_info().misses
        assert [wanted for wanted in filters if matches(wanted, event)] == [filters[7]]

    assert compile_sql.cache_info().misses == before
