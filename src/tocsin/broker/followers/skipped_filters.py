"""Filters that were not evaluated for an event, because that could take too long, and their report.

Such a filter does not match. The operator finds it in the log and the metrics, the subscriber in
its subscription.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tocsin.broker.state.state import State
from tocsin.event.filter import All, AnyOf, Filter, Not, XPath
from tocsin.event.stored import Stored

LOGGED_MAX: Final = 1_000  # expressions logged one by one
SHOWN_MAX: Final = 200


class SkippedFilters:
    """Reports each expression once, and counts every time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._logged: set[XPath] = set()

    def report(self, expressions: list[XPath], stored: Stored) -> None:
        state = self._state
        state.counters.filters_skipped += len(expressions)
        new = [each for each in dict.fromkeys(expressions) if each not in self._logged]
        problems: dict[XPath, str] = {}
        for expression in new[: LOGGED_MAX - len(self._logged)]:
            self._logged.add(expression)
            shown = expression.expression[:SHOWN_MAX]
            state.note(
                "warning", "an XPath filter was not evaluated", expression=shown, seq=stored.seq
            )
            problems[expression] = (
                f"event {stored.seq} was not matched: {shown!r} could take too long for it"
            )
        for subscriber in state.by_id.values() if problems else ():
            for expression in _expressions(subscriber.filter):
                if expression in problems:
                    subscriber.last_error = problems[expression]


def _expressions(filter: Filter) -> Iterator[XPath]:
    match filter:
        case XPath():
            yield filter
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _expressions(part)
        case Not(part):
            yield from _expressions(part)
