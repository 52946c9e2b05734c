"""Many subscriptions over few XPath expressions cost the expressions, not the subscriptions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tocsin.event.event import Event
from tocsin.event.filter import All, Filter, Operator, Predicate, Sql, TopicIs, XPath
from tocsin.event.filter_eval import matches
from tocsin.event.topic import TopicPattern
from tocsin.event.xpath import Inquiry
from tocsin.matching.matcher import Matcher

EXPRESSIONS = 20
SUBSCRIPTIONS = 400


def event(data: bytes = b"<a><b>7</b></a>") -> Event:
    return Event("1", "/s", "t", topic="x/y", datacontenttype="application/xml", data=data)


def subscription(key: int) -> Filter:
    """The same few expressions, with topics, predicates and other residuals beside them."""
    leaf = XPath(f"/a/b > {key % EXPRESSIONS}")
    others: list[tuple[Filter, ...]] = [
        (),
        (TopicIs(TopicPattern.parse("x/*")),),
        (TopicIs(TopicPattern.parse("**/y")), Predicate("type", Operator.EQ, "t")),
        (Sql(f"type = 't' AND {key} > 3"),),
        (Predicate("type", Operator.CONTAINS, "t"), Predicate("id", Operator.NE, str(key))),
    ]
    return All((*others[key % 5], leaf))


@pytest.fixture
def inquiries(monkeypatch: pytest.MonkeyPatch) -> list[Inquiry]:
    """All that were made, to read their counts."""
    made: list[Inquiry] = []

    class Counted(Inquiry):
        def __init__(self, event: Event, stopwatch: Callable[[], int]) -> None:
            super().__init__(event, stopwatch)
            made.append(self)

    monkeypatch.setattr("tocsin.event.xpath.Inquiry", Counted)
    return made


def test_each_expression_is_evaluated_once_for_an_event(inquiries: list[Inquiry]) -> None:
    matcher = Matcher(use_numba=False)
    stored = {key: subscription(key) for key in range(SUBSCRIPTIONS)}
    for key, filter in stored.items():
        matcher.add(key, filter)

    found = matcher.match(event())

    [asked] = inquiries
    assert asked.evaluations == EXPRESSIONS
    assert found == [key for key, filter in stored.items() if matches(filter, event())]
    assert found


def test_nobody_parses_what_no_xpath_filter_of_the_topic_asks_for(inquiries: list[Inquiry]) -> None:
    matcher = Matcher(use_numba=False)
    matcher.add(1, All((TopicIs(TopicPattern.parse("other")), XPath("//a"))))

    assert matcher.match(event()) == []
    assert inquiries == []


def test_the_matcher_tells_what_it_gave_up_on_for_the_last_event() -> None:
    dear = XPath("//b[count(../b) > 0]")
    matcher = Matcher(use_numba=False)
    matcher.add(1, dear)
    matcher.add(2, XPath("//b"))

    assert matcher.match(event(b"<a>" + b"<b/>" * 50_000 + b"</a>")) == [2]
    assert matcher.gave_up == [dear]
    assert matcher.match(event()) == [1, 2]
    assert matcher.gave_up == []


def test_expressions_that_come_when_the_time_is_over_are_not_asked() -> None:
    ticks = iter(range(0, 10**12, 300_000_000))  # each look at the stopwatch costs 0.3 s
    matcher = Matcher(stopwatch=lambda: next(ticks))
    for key in range(5):
        matcher.add(key, XPath(f"/a/b[. > {key}]"))

    found = matcher.match(event())

    assert len(found) < 5
    assert len(matcher.gave_up) == 5 - len(found)
