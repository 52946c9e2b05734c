"""What the matcher promises besides being right: what is shared, not opened, not kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from random import Random

import pytest

from tocsin.event.event import Event
from tocsin.event.filter import (
    EVERYTHING,
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    TextIs,
    TopicIs,
)
from tocsin.event.filter_eval import matches
from tocsin.event.topic import TopicPattern
from tocsin.event.value import Scalar
from tocsin.matching import matcher as matcher_module
from tocsin.matching.conjunction import CONJUNCTIONS_MAX
from tocsin.matching.matcher import KNOWN_TOPICS_MAX, Matcher

every_kernel = pytest.mark.parametrize(
    "new_matcher",
    [
        lambda: Matcher(use_numba=False, few_rows_max=sys.maxsize),
        lambda: Matcher(use_numba=False, few_rows_max=0),
        lambda: Matcher(use_numba=True, few_rows_max=0),
    ],
    ids=["one by one", "numpy", "numba"],
)
NewMatcher = Callable[[], Matcher]


def event(topic: str = "", data: bytes | None = None, **attributes: Scalar) -> Event:
    return Event("1", "/tests", "tested", topic=topic, attributes=dict(attributes), data=data)


def at_least(name: str, number: float) -> Predicate:
    return Predicate(name, Operator.GE, number)


def on(pattern: str) -> TopicIs:
    return TopicIs(TopicPattern.parse(pattern))


class Counting:
    """Calls a function, and counts."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.calls = 0
        self._function = function

    def __call__(self, *arguments: object) -> object:
        self.calls += 1
        return self._function(*arguments)


def test_an_event_that_nobody_wants_goes_to_nobody() -> None:
    assert Matcher().match(event("a/b")) == []


def test_ten_thousand_who_ask_the_same_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Matcher()
    for key in range(10_000):
        matcher.add(key, All((on("a/**"), Predicate("x", Operator.CONTAINS, "needle"))))
    counting = Counting(matcher_module.passes)
    monkeypatch.setattr(matcher_module, "passes", counting)

    found = matcher.match(event("a/b", x="a needle here"))

    assert found == list(range(10_000))
    assert counting.calls == 1
    assert matcher.holdings().rows == 1


def test_one_and_true_are_not_the_same_to_ask_for() -> None:
    matcher = Matcher()
    for key, value in enumerate((1, True, 1.0, "1")):
        matcher.add(key, Predicate("x", Operator.NE, value))

    assert matcher.match(event(x=2)) == [0, 2]
    assert matcher.match(event(x=False)) == [1]


def test_the_payload_stays_closed_while_nobody_asks_for_what_can_be_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening = Counting(matcher_module.visible)
    monkeypatch.setattr(matcher_module, "visible", opening)
    matcher = Matcher()
    matcher.add(1, on("a/*"))
    matcher.add(2, TextIs("type", Operator.PREFIX, "test"))
    matcher.add(3, Not(on("b")))

    assert matcher.match(event("a/b", data=b'{"load": 3}')) == [1, 2, 3]
    assert opening.calls == 0

    matcher.add(5, at_least("load", 3))

    assert matcher.match(event("a/b", data=b'{"load": 3}')) == [1, 2, 3, 5]
    assert opening.calls == 1


def test_the_payload_stays_closed_for_a_topic_that_nobody_filters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening = Counting(matcher_module.visible)
    monkeypatch.setattr(matcher_module, "visible", opening)
    matcher = Matcher()
    matcher.add(1, on("a/*"))
    matcher.add(2, All((on("b/**"), at_least("load", 3))))

    assert matcher.match(event("a/b", data=b'{"load": 3}')) == [1]
    assert opening.calls == 0


def test_a_context_attribute_that_is_not_set_is_looked_for_in_the_payload() -> None:
    matcher = Matcher()
    matcher.add(1, TextIs("subject", Operator.EQ, "inside"))
    matcher.add(2, Not(TextIs("subject", Operator.EQ, "inside")))

    assert matcher.match(event(data=b'{"subject": "inside"}')) == [1]


def test_a_topic_asked_before_is_asked_again_after_a_change() -> None:
    matcher = Matcher()
    matcher.add(1, on("a/**"))
    assert matcher.match(event("a/b")) == [1]

    matcher.add(2, on("a/b"))
    matcher.add(3, on("a/**"))
    matcher.add(4, EVERYTHING)
    assert matcher.match(event("a/b")) == [1, 2, 3, 4]

    matcher.remove(1)
    matcher.remove(4)
    assert matcher.match(event("a/b")) == [2, 3]


def test_what_the_caller_does_with_an_answer_does_not_change_the_next() -> None:
    matcher = Matcher()
    matcher.add(1, on("a"))

    matcher.match(event("a")).append(99)

    assert matcher.match(event("a")) == [1]


def test_more_topics_than_are_remembered_are_still_answered() -> None:
    matcher = Matcher()
    matcher.add(1, on("t/*"))
    matcher.add(2, on("t/7"))

    found = [matcher.match(event(f"t/{number}")) for number in range(KNOWN_TOPICS_MAX + 10)]

    assert found[7] == [1, 2]
    assert matcher.match(event("t/7")) == [1, 2]
    assert found.count([1]) == KNOWN_TOPICS_MAX + 9
    assert len(matcher._known_topics) <= KNOWN_TOPICS_MAX


def test_a_key_that_several_alternatives_find_is_named_once() -> None:
    matcher = Matcher()
    matcher.add(1, AnyOf((at_least("x", 1), at_least("y", 1), on("a"), on("**"))))

    assert matcher.match(event("a", x=5, y=5)) == [1]


@every_kernel
def test_strict_and_loose_bounds_differ_by_one_double(new_matcher: NewMatcher) -> None:
    just_below_seven = 6.999999999999999
    matcher = new_matcher()
    for key, operator in enumerate((Operator.LT, Operator.LE, Operator.EQ, Operator.GE)):
        matcher.add(key, Predicate("x", operator, 7))
    matcher.add(4, Predicate("x", Operator.GT, just_below_seven))

    assert matcher.match(event(x=7)) == [1, 2, 3, 4]
    assert matcher.match(event(x=just_below_seven)) == [0, 1]


@every_kernel
def test_a_filter_of_two_hundred_conditions_needs_all_of_them(new_matcher: NewMatcher) -> None:
    names = [f"n{number}" for number in range(200)]
    matcher = new_matcher()
    matcher.add(1, All(tuple(at_least(name, 1) for name in names)))
    matcher.add(2, All(tuple(at_least(name, 1) for name in names[:3])))

    assert matcher.match(event(**dict.fromkeys(names, 1))) == [1, 2]
    assert matcher.match(event(**{**dict.fromkeys(names, 1), "n150": 0})) == [2]


@every_kernel
def test_an_event_of_five_thousand_attributes_meets_every_pair(new_matcher: NewMatcher) -> None:
    matcher = new_matcher()
    for key in range(1_000):
        matcher.add(key, All((at_least(f"n{key}", 1), at_least(f"n{key + 1}", 1))))
    wide = event(**{f"n{number}": number % 100 for number in range(5_000)})

    assert matcher.match(wide) == [key for key in range(1_000) if key % 100 and (key + 1) % 100]


@every_kernel
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_what_is_no_finite_number_is_compared_with_nothing(
    new_matcher: NewMatcher, value: float
) -> None:
    matcher = new_matcher()
    operators = [each for each in Operator if each is not Operator.EXISTS]
    for key, operator in enumerate(operators):
        matcher.add(key, Predicate("x", operator, 3))
        matcher.add(100 + key, Predicate("y", operator, value))
    matcher.add(999, Predicate("x", Operator.EXISTS))

    assert matcher.match(event(x=value, y=3)) == [999]


def test_alternatives_that_would_multiply_without_end_are_asked_as_they_are() -> None:
    choices = tuple(
        AnyOf((Predicate(f"n{number}", Operator.EQ, 1), Predicate(f"n{number}", Operator.EQ, 2)))
        for number in range(30)
    )
    matcher = Matcher()
    matcher.add(1, All(choices))

    assert matcher.holdings().rows <= CONJUNCTIONS_MAX
    assert matcher.match(event(**{f"n{number}": 1 + number % 2 for number in range(30)})) == [1]
    assert matcher.match(event(**{f"n{number}": number % 3 for number in range(30)})) == []


def random_filter(dice: Random) -> Filter:
    terms: list[Filter] = []
    for name in dice.sample("abcdefghij", dice.randint(1, 4)):
        operator = dice.choice([Operator.EQ, Operator.LT, Operator.GE, Operator.NE])
        terms.append(Predicate(name, operator, dice.randint(0, 9)))
    if dice.random() < 0.3:
        terms.append(on(dice.choice(["t/*", "t/1", "**/2", "t/**"])))
    if dice.random() < 0.1:
        terms.append(Predicate(dice.choice("abc"), Operator.PREFIX, dice.choice("xyz")))
    return All(tuple(terms)) if dice.random() < 0.8 else AnyOf(tuple(terms))


@every_kernel
def test_two_thousand_that_come_and_go_are_found_as_the_definition_finds_them(
    new_matcher: NewMatcher,
) -> None:
    dice = Random(7)
    matcher = new_matcher()
    stored: dict[int, Filter] = {}
    for key in range(4_000):
        stored[key] = random_filter(dice)
        matcher.add(key, stored[key])
        if key >= 2_000:
            leaving = dice.choice(list(stored)) if key % 50 == 0 else min(stored)
            del stored[leaving]
            matcher.remove(leaving)

    for _ in range(10):
        names = dice.sample("abcdefghij", 6)
        values = {name: dice.choice([dice.randint(0, 9), "xyz"]) for name in names}
        seen = event(dice.choice(["t/1", "t/2", "u/2", ""]), **values)
        assert matcher.match(seen) == [key for key in stored if matches(stored[key], seen)]


def test_a_small_matcher_never_loads_numba_and_a_large_one_does_without() -> None:
    program = """
import sys
from tocsin.event.event import Event
from tocsin.event.filter import Operator, Predicate
from tocsin.matching.matcher import Matcher
small = Matcher()
for key in range(1_000):
    small.add(key, Predicate("x", Operator.GE, key))
assert len(small.match(Event("1", "/s", "t", attributes={"x": 99}))) == 100
assert "numba" not in sys.modules
sys.modules["numba"] = None  # as if it were not installed
large = Matcher(use_numba=True)
for key in range(5_000):
    large.add(key, Predicate("x", Operator.GE, key))
assert len(large.match(Event("1", "/s", "t", attributes={"x": 99}))) == 100
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@every_kernel
def test_a_text_shorter_than_an_affix_asked_for_is_found_once(new_matcher: NewMatcher) -> None:
    matcher = new_matcher()
    for key, affix in enumerate(("", "x", "xx", "xxx")):
        matcher.add(key, Predicate("text", Operator.PREFIX, affix))
        matcher.add(10 + key, TextIs("text", Operator.SUFFIX, affix))

    assert matcher.match(event(text="x")) == [0, 1, 10, 11]
    assert matcher.match(event(text="xx")) == [0, 1, 2, 10, 11, 12]
