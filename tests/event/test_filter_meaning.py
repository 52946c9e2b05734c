"""What filters mean, one rule at a time. docs/filters.md tells the same story with examples."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.event import Event, Value
from tocsin.event.facets import facets, is_plain_number
from tocsin.event.filter import Operator, Predicate, TextIs
from tocsin.event.filter_eval import matches
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import Quantity, in_base_units


def event(topic: str = "", /, **attributes: Value) -> Event:
    return Event(id="1", source="/test", type="t", topic=topic, attributes=attributes)


def passes(text: str, topic: str = "", /, **attributes: Value) -> bool:
    return matches(parse_filter(text), event(topic, **attributes))


@pytest.mark.parametrize("how", ["=", "!=", "<", "<=", ">", ">="])
def test_an_event_without_the_attribute_fails_every_comparison(how: str) -> None:
    assert not passes(f"load {how} 5", other=5)
    assert not passes(f"load {how} 'x'", other="x")


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a = 5", 5, True),
        ("a = 5", 5.0, True),
        ("a = 5", "5", True),
        ("a = 5", "5.0", True),
        ("a = 5", "5e0", True),
        ("a = 5", " 5", False),
        ("a = 5", "5 ", False),
        ("a = 5", "+5", False),
        ("a = 5", "0x5", False),
        ("a = 5", "５", False),
        ("a > 5", "nan", False),
        ("a > 5", "inf", False),
        ("a > 5", "1e999", False),
        ("a > 5", "9" * 64, True),
        ("a > 5", "9" * 65, False),
        ("a = 1", True, False),
        ("a = true", True, True),
        ("a = true", 1, False),
        ("a = true", "true", True),
        ("a = true", "True", False),
        ("a != true", "false", True),
        ("a != true", "no", False),
        ("a = '5'", "5", True),
        ("a = '5'", 5, False),
        ("a != '5'", 5, False),
        ("a != 5", "five", False),
        ("a != 5", "6", True),
        ("a < b", "apple", True),
        ("a < b", "banana", False),
        ("a prefix ap", "apple", True),
        ("a suffix le", "apple", True),
        ("a contains ppl", "apple", True),
        ("a contains 5", 5, False),
        ("a exists", False, True),
        ("a exists", math.nan, True),
    ],
)
def test_types_never_mix_but_a_text_may_be_a_number_or_a_truth(
    text: str, value: Value, expected: bool
) -> None:
    assert passes(text, a=value) is expected


@pytest.mark.parametrize("how", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_what_is_not_a_finite_double_never_matches_a_comparison(how: str, value: float) -> None:
    assert not passes(f"a {how} 5", a=value)
    assert not matches(Predicate("a", Operator(how), value), event(a=5))


def test_integers_are_compared_as_doubles() -> None:
    assert passes(f"a = {2**53}", a=2**53 + 1)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("memory >= 2 GiB", Quantity(2, "GiB"), True),
        ("memory >= 2 GiB", Quantity(2, "GB"), False),
        ("memory >= 2 GiB", Quantity(2048, "MiB"), True),
        ("memory >= 2 GiB", Quantity("2048", "MiB"), True),
        ("memory >= 2 GiB", Quantity(3, "GHz"), False),
        ("memory >= 2 GiB", Quantity(3, "furlong"), False),
        ("memory >= 2 GiB", Quantity(3), False),
        ("memory >= 2 GiB", 3e9, False),
        ("memory >= 2", Quantity(3, "GiB"), True),
        ("memory >= 2", Quantity(1, "GiB"), False),
        ("memory = 50 %", Quantity(0.5, "1"), True),
        ("memory = big", Quantity("big"), True),
        ("memory >= 1 GB", Quantity(1e308, "TB"), False),
    ],
)
def test_a_unit_asks_for_a_quantity_of_the_same_dimension(
    text: str, value: Value, expected: bool
) -> None:
    assert passes(text, memory=value) is expected


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("x", "x"),
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (-0.5, "-0.5"),
        (Quantity(3, "s"), "3"),
    ],
)
def test_cloudevents_comparisons_are_on_the_string_form(value: Value, form: str) -> None:
    assert matches(TextIs("a", Operator.EQ, form), event(a=value))
    assert matches(TextIs("a", Operator.PREFIX, form[:1]), event(a=value))
    assert matches(TextIs("a", Operator.SUFFIX, form[-1:]), event(a=value))
    assert not matches(TextIs("a", Operator.EQ, form + "?"), event(a=value))
    assert not matches(TextIs("b", Operator.EQ, form), event(a=value))


def test_an_integer_too_long_to_write_has_no_string_form() -> None:
    assert not matches(TextIs("a", Operator.PREFIX, "1"), event(a=10**5000))


def test_an_event_without_a_topic_fits_only_any_depth() -> None:
    assert passes("topic **")
    assert not passes("topic *")
    assert not passes("topic exists")
    assert passes("topic exists", "a/b")
    assert passes("not topic a/b")


def test_and_or_not_mean_what_they_say() -> None:
    assert passes("a = 1 and not b = 1 or c = 1", a=1)
    assert passes("a = 1 and not b = 1 or c = 1", b=1, c=1)
    assert not passes("a = 1 and (not b = 1 or c = 1)", c=1)
    assert passes("everything")
    assert passes("")
    assert not passes("nothing")


def test_filters_see_the_payload_of_json_and_the_context() -> None:
    data = json.dumps({"load5": 7, "memory": {"value": 4, "unit": "GiB"}}).encode()
    sent = Event(id="1", source="/host/9", type="load", data=data)

    assert matches(parse_filter("load5 > 5 and memory >= 4 GiB and source prefix /host"), sent)


def test_an_sql_expression_sees_the_same_attributes() -> None:
    assert passes("sql \"type = 't' AND load > 5\"", load=7)
    assert not passes("sql \"type = 't' AND load > 5\"", load=4)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_sent_as_text_has_the_facet_of_the_number(number: float) -> None:
    assert facets({"a": repr(number)})["a", "n"] == number


@given(st.text())
def test_only_what_python_reads_as_a_number_counts_as_one(text: str) -> None:
    if is_plain_number(text):
        float(text)


def test_a_unit_that_is_not_known_has_no_base() -> None:
    assert in_base_units(1.0, "furlong") is None
    assert in_base_units(2.0, "KiB") == ("bytes", 2048.0)


def test_one_and_true_make_different_filters() -> None:
    one, true = Predicate("a", Operator.EQ, 1), Predicate("a", Operator.EQ, True)

    assert one != true
    assert len({one, true}) == 2
    assert one == Predicate("a", Operator.EQ, 1.0)
