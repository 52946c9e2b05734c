"""What filters mean: `matches`, the slow and obvious definition; docs/filters.md has the words."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from tocsin.event.event import Event, Value, visible
from tocsin.event.facets import Facet, FacetKey, facets, number_of, predicate_kind
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
from tocsin.event.value import Quantity, Scalar, in_base_units

if TYPE_CHECKING:
    from tocsin.event.xpath import Inquiry

_ORDER: Mapping[Operator, Callable[[Facet, Facet], bool]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}

_TEXT_TESTS: Mapping[Operator, Callable[[str, str], bool]] = {
    **_ORDER,
    Operator.PREFIX: str.startswith,
    Operator.SUFFIX: str.endswith,
    Operator.CONTAINS: str.__contains__,
}

_FLAG_OPERATORS = frozenset({Operator.EQ, Operator.NE})


@dataclass(slots=True)
class Seen:
    """One event as filters see it, worked out once for however many filters ask."""

    event: Event
    values: Mapping[str, Value]
    facets: Mapping[FacetKey, Facet]
    stopwatch: Callable[[], int] = lambda: 0  # nanoseconds, to end what takes too long
    _inquiry: Inquiry | None = field(default=None, init=False)

    @property
    def topic(self) -> str:
        return self.event.topic

    @property
    def inquiry(self) -> Inquiry:
        """What XPath filters ask; its parts are imported and made when the first one comes."""
        if self._inquiry is None:
            from tocsin.event.xpath import Inquiry

            self._inquiry = Inquiry(self.event, self.stopwatch)
        return self._inquiry

    @property
    def gave_up(self) -> list[XPath]:
        """Those that were not evaluated, because it could take too long, and so do not match."""
        return self._inquiry.gave_up if self._inquiry else []


def seen(event: Event) -> Seen:
    """The event as filters see it."""
    values = visible(event)
    return Seen(event, values, facets(values))


def matches(wanted: Filter, event: Event) -> bool:
    """True if the event passes the filter."""
    return passes(wanted, seen(event))


def passes(wanted: Filter, event: Seen) -> bool:
    """As `matches`, for an event that is already opened."""
    match wanted:
        case Predicate():
            return _predicate_holds(wanted, event)
        case TopicIs(pattern):
            return pattern.matches(event.topic)
        case TopicMatches(expression):
            return _regex_compiler()(expression)(event.topic)
        case TextIs(name, how, text):
            found = canonical_text(event.values[name]) if name in event.values else None
            return found is not None and text_holds(found, how, text)
        case Sql(expression):
            return _sql_compiler()(expression)(event.values)
        case XPath():
            return event.inquiry.holds(wanted)
        case All(parts):
            return all(passes(part, event) for part in parts)
        case AnyOf(parts):
            return any(passes(part, event) for part in parts)
        case Not(part):
            return not passes(part, event)


def _predicate_holds(predicate: Predicate, event: Seen) -> bool:
    if predicate.operator is Operator.EXISTS:
        return predicate.name in event.values
    kind = predicate_kind(predicate.value, predicate.unit)
    wanted = comparand(predicate)
    if kind is None or wanted is None:
        return False
    found = event.facets.get((predicate.name, kind))
    return found is not None and facet_holds(found, predicate.operator, wanted)


def comparand(predicate: Predicate) -> Facet | None:
    """What the predicate compares a facet with; None if the predicate can never be true."""
    value = predicate.value
    if isinstance(value, bool):
        return value if predicate.operator in _FLAG_OPERATORS else None
    if isinstance(value, str):
        return value
    number = number_of(value)
    if number is None or predicate.operator not in _ORDER:
        return None
    if predicate.unit is None:
        return number
    base = in_base_units(number, predicate.unit)
    return None if base is None else base[1]


def facet_holds(found: Facet, how: Operator, wanted: Facet) -> bool:
    """One comparison between a facet and a comparand of the same kind."""
    if isinstance(found, str) and isinstance(wanted, str):
        return text_holds(found, how, wanted)
    return _ORDER[how](found, wanted)


def text_holds(found: str, how: Operator, wanted: str) -> bool:
    """One comparison between two texts, ordered by code point."""
    return _TEXT_TESTS[how](found, wanted)


def canonical_text(value: Value) -> str | None:
    """The string form of a value, as CloudEvents writes it; None if there is no sensible one."""
    scalar: Scalar = value.value if isinstance(value, Quantity) else value
    if isinstance(scalar, bool):
        return "true" if scalar else "false"
    try:
        return scalar if isinstance(scalar, str) else repr(scalar)
    except ValueError:  # Python writes no integer of more than some thousand digits.
        return None


@cache
def _sql_compiler() -> Callable[[str], Callable[[Mapping[str, Value]], bool]]:
    """Imported when the first expression comes; it keeps what it compiled."""
    from tocsin.event.cesql import compile_sql

    return compile_sql


@cache
def _regex_compiler() -> Callable[[str], Callable[[str], bool]]:
    from tocsin.event.topic_regex import compile_topic_regex

    return compile_topic_regex
