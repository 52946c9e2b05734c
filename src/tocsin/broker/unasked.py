"""Filters that were not asked of an event, because that could take too long: who is told, and how.

Such a filter does not match. The operator finds it in the log and the metrics, the subscriber in
its subscription.
"""

from __future__ import annotations

from typing import Final

from tocsin.broker.state import State
from tocsin.event.filter import All, AnyOf, Filter, Not, XPath
from tocsin.event.stored import Stored

TOLD_MAX: Final = 1_000  # expressions told one by one
SHOWN_MAX: Final = 200


class Unasked:
    """Tells of each expression once, and counts every time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._told: set[XPath] = set()

    def tell(self, expressions: list[XPath], stored: Stored) -> None:
        state = self._state
        state.counters.unasked += len(expressions)
        for expression in expressions:
            if expression in self._told or len(self._told) >= TOLD_MAX:
                continue
            self._told.add(expression)
            shown = expression.expression[:SHOWN_MAX]
            problem = f"event {stored.seq} was not matched: {shown!r} could take too long for it"
            state.note("warning", "an XPath filter was not asked", expression=shown, seq=stored.seq)
            for subscriber in state.by_id.values():
                if _has(subscriber.filter, expression):
                    subscriber.last_error = problem


def _has(filter: Filter, expression: XPath) -> bool:
    match filter:
        case XPath():
            return filter == expression
        case All(parts) | AnyOf(parts):
            return any(_has(part, expression) for part in parts)
        case Not(part):
            return _has(part, expression)
    return False
