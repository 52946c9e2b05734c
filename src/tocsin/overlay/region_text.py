"""From a filter, or the text of one, to the region that it describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nextafter

from tocsin.errors import BadDiscovery
from tocsin.event.facets import FLAG, NUMBER, TEXT, predicate_kind
from tocsin.event.filter import All, Filter, Operator, Predicate
from tocsin.event.filter_eval import comparand
from tocsin.event.filter_format import format_filter
from tocsin.event.filter_text import parse_filter
from tocsin.overlay.region import TIME, UNBOUNDED, Bound, Region, RegionKey
from tocsin.overlay.time_of_day import (
    NO_ZONES,
    TimeBound,
    Zones,
    looks_like_time,
    read_time_of_day,
    unknown_zone,
    window,
)

_KIND_WORDS: Mapping[str, str] = {
    NUMBER: "a number",
    TEXT: "a text",
    FLAG: "true or false",
    TIME: "a time of day",
}
_LOWER = (Operator.GT, Operator.GE)
_UPPER = (Operator.LT, Operator.LE)
_STRICT = (Operator.GT, Operator.LT)
_OPERATORS = (*_LOWER, *_UPPER, Operator.EQ)

_REMEDY = "Join conditions by and, as in: system = Linux and disk > 120."


def parse_region(text: str, zones: Zones = NO_ZONES) -> Region:
    """The region that the text describes, in words or in brackets.

    BadFilter or BadDiscovery if it describes none. Conditions that contradict each other describe
    an empty one.
    """
    return region_of(parse_filter(text), zones)


def region_of(wanted: Filter, zones: Zones = NO_ZONES) -> Region:
    """The region of a filter that is a conjunction; BadDiscovery if it is none."""
    by_name: dict[str, list[Predicate]] = {}
    for predicate in _predicates(wanted):
        by_name.setdefault(predicate.name, []).append(predicate)
    bounds: dict[RegionKey, Bound] = {}
    for name, predicates in by_name.items():
        kinds = sorted({_kind(predicate, zones) for predicate in predicates})
        if len(kinds) > 1:
            words = " and as ".join(_KIND_WORDS.get(kind, "a quantity") for kind in kinds)
            return Region(empty_because=f"{name} is compared as {words}, and no value is both")
        kind = kinds[0]
        try:
            bounds[name, kind] = _bound(kind, predicates, zones)
        except _ContradictionError as found:
            return Region(empty_because=str(found))
    return Region(bounds)


class _ContradictionError(Exception):
    """No value fulfils the conditions on one attribute."""


def _predicates(wanted: Filter) -> Iterator[Predicate]:
    match wanted:
        case Predicate() if wanted.operator in _OPERATORS:
            yield wanted
        case All(parts):
            for part in parts:
                yield from _predicates(part)
        case _:
            raise BadDiscovery(
                f"resources are not described by: {format_filter(wanted)[:200]}",
                remedy=f"Only =, <, <=, > and >= are compared. {_REMEDY}",
            )


def _kind(predicate: Predicate, zones: Zones) -> str:
    value = predicate.value
    if isinstance(value, str) and read_time_of_day(value, zones) is not None:
        return TIME
    is_order = predicate.operator not in (Operator.EQ, Operator.NE)
    zone = unknown_zone(value, zones) if isinstance(value, str) and is_order else None
    if zone is not None:
        raise BadDiscovery(
            f"{format_filter(predicate)[:200]}: this broker knows no time zone {zone!r}",
            remedy="Write UTC, an offset as in +05:30, or a name as in Europe/Berlin.",
        )
    if is_order and isinstance(value, str) and looks_like_time(value):
        raise BadDiscovery(
            f"{_written(predicate)}: that looks like a time of day, but is not a valid one",
            remedy="Write it as in 8 a.m., 3:30 p.m., 15:30 or 15:30:00, up to 23:59:59, with a "
            "zone after it if it is not UTC: 08:00+02:00, 8 a.m. Europe/Berlin.",
        )
    kind = predicate_kind(value, predicate.unit)
    if kind is None or comparand(predicate) is None:
        raise BadDiscovery(
            f"nothing can be compared with: {format_filter(predicate)[:200]}",
            remedy="Compare with a finite number, a text, true or false.",
        )
    return kind


def _bound(kind: str, predicates: list[Predicate], zones: Zones) -> Bound:
    if kind == TEXT:
        return _text(predicates)
    if kind == TIME:
        return _times(predicates, zones)
    low, high = UNBOUNDED
    for predicate in predicates:
        value = comparand(predicate)
        assert not isinstance(value, str | None)
        lower, upper = _interval(predicate.operator, float(value))
        low, high = max(low, lower), min(high, upper)
    if low > high:
        raise _ContradictionError(_never(predicates))
    return low, high


def _interval(how: Operator, value: float) -> tuple[float, float]:
    match how:
        case Operator.LT:
            return -inf, nextafter(value, -inf)
        case Operator.LE:
            return -inf, value
        case Operator.GT:
            return nextafter(value, inf), inf
        case Operator.GE:
            return value, inf
        case _:
            return value, value


def _text(predicates: list[Predicate]) -> str:
    for predicate in predicates:
        if predicate.operator is not Operator.EQ:
            raise _ContradictionError(
                f"{_written(predicate)} compares a text by order, and texts have only ="
            )
    texts = {str(predicate.value) for predicate in predicates}
    if len(texts) > 1:
        raise _ContradictionError(_never(predicates))
    return texts.pop()


def _times(predicates: list[Predicate], zones: Zones) -> Bound:
    lows, highs = [], []
    for predicate in predicates:
        time = read_time_of_day(str(predicate.value), zones)
        assert time is not None
        if predicate.operator is Operator.EQ and len(predicates) == 1:
            return time.utc_s, time.utc_s
        bound = TimeBound(time, predicate.operator in _STRICT)
        if predicate.operator in (*_LOWER, Operator.EQ):
            lows.append(bound)
        if predicate.operator in (*_UPPER, Operator.EQ):
            highs.append(bound)
    if len(lows) > 1 or len(highs) > 1:
        raise BadDiscovery(
            f"{predicates[0].name} has more than one beginning or end",
            remedy="Give one window, as in: [available,>,7 a.m.],[available,<,3 p.m.].",
        )
    return window(lows[0] if lows else None, highs[0] if highs else None)


def _never(predicates: list[Predicate]) -> str:
    return f"no value fulfils {' and '.join(map(_written, predicates))}"


def _written(predicate: Predicate) -> str:
    return format_filter(predicate)[:100]
