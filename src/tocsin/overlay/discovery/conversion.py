"""Between regions and messages, and what a result's values are compared as."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

from msgspec.structs import replace

from tocsin.event.event import Value
from tocsin.event.facets import BASE_UNITS, FLAG, NUMBER, TEXT
from tocsin.event.value import Quantity
from tocsin.overlay.discovery.effects import Resource
from tocsin.overlay.range_text import UNIT_OF, range_texts
from tocsin.overlay.region import (
    TIME,
    Bound,
    Region,
    RegionKey,
    day_rows,
    is_bound,
    overlaps,
    point,
)
from tocsin.wire.link import discovery_messages as wire

_KINDS = {NUMBER, TEXT, FLAG, TIME, *(BASE_UNITS + dimension for dimension in UNIT_OF)}


def to_row(region: Region) -> wire.Row:
    """The region as a message carries it."""
    return tuple(
        wire.Bound(name, kind, text=bound)
        if isinstance(bound, str)
        else wire.Bound(name, kind, _finite(bound[0]), _finite(bound[1]))
        for (name, kind), bound in region.bounds.items()
    )


def _finite(end: float) -> float | None:
    return end if isfinite(end) else None


def from_row(row: wire.Row) -> Region | None:
    """The region of a message; None if it is not a valid one."""
    bounds: dict[RegionKey, Bound] = {}
    for each in row:
        key = (each.name, each.kind)
        low = -inf if each.low is None else each.low
        high = inf if each.high is None else each.high
        bound: Bound = (low, high) if each.text is None else each.text
        if key in bounds or each.kind not in _KINDS or not is_bound(each.kind, bound):
            return None
        bounds[key] = bound
    return Region(bounds)


def fixed_values(region: Region) -> dict[str, Value]:
    """The attributes that can have one value only."""
    return {
        name: _value(kind, bound)
        for (name, kind), bound in region.bounds.items()
        if kind != TIME and (isinstance(bound, str) or bound[0] == bound[1])
    }


def described_values(region: Region) -> dict[str, Value]:
    """What a static description says: what is fixed, and of ranges the most that there is."""
    most: dict[str, Value] = {
        name: _value(kind, bound)
        for (name, kind), bound in region.bounds.items()
        if kind != TIME and not isinstance(bound, str) and isfinite(bound[1])
    }
    return most | fixed_values(region)


def _value(kind: str, bound: Bound) -> Value:
    if isinstance(bound, str):
        return bound
    number = bound[1]
    if kind == FLAG:
        return bool(number)
    whole = int(number) if number.is_integer() else number
    if kind.startswith(BASE_UNITS):
        return Quantity(whole, UNIT_OF[kind.removeprefix(BASE_UNITS)])
    return whole


def windows(region: Region) -> tuple[wire.Window, ...]:
    """When a resource with this advertisement is available."""
    return tuple(
        wire.Window(name, *bound)
        for (name, kind), bound in region.bounds.items()
        if kind == TIME and not isinstance(bound, str)
    )


def rows_of(result: wire.Result) -> tuple[Region, ...]:
    """A result as rows that a request is compared with: its values, and when it is available."""
    here = point(result.attributes)
    times = {
        (window.name, TIME): (window.low, window.high)
        for window in result.windows
        if window.name not in result.attributes
    }
    return day_rows(Region({**here.bounds, **times}))


def matches(request: Region, result: wire.Result) -> bool:
    """True if the request asks for a resource that is as the result says."""
    return any(overlaps(request, row) for row in rows_of(result))


def value_outside(advertised: Region, values: Mapping[str, Value]) -> str | None:
    """The first attribute whose value is not in what was advertised, if there is one."""
    rows = day_rows(advertised)
    for name in values:
        here = point({name: values[name]})
        if not any(
            overlaps(Region({key: bound}), row)
            for key, bound in here.bounds.items()
            for row in rows
        ):
            return name
    return None


def unsendable(region: Region, values: Mapping[str, Value]) -> str | None:
    """The first attribute whose name or value does not fit in a message, if there is one."""
    for (name, _), bound in region.bounds.items():
        if len(name) > wire.NAME_CHARS_MAX or (isinstance(bound, str) and not _fits(bound)):
            return name[: wire.NAME_CHARS_MAX]
    for name, value in values.items():
        parts = (
            (value.value, value.unit or "", value.accuracy or "")
            if isinstance(value, Quantity)
            else (value,)
        )
        if len(name) > wire.NAME_CHARS_MAX or not all(map(_fits, parts)):
            return name[: wire.NAME_CHARS_MAX]
    return None


def _fits(part: object) -> bool:
    if isinstance(part, str):
        return len(part) <= wire.TEXT_CHARS_MAX
    return not isinstance(part, int) or -(2**63) <= part < 2**63


def static_resource(advertised: wire.Advertise) -> Resource:
    """A static resource as its advertisement describes it."""
    region = from_row(advertised.rows[0])  # others are of the next day, and the one before
    return Resource(
        advertised.resource_id,
        advertised.broker,
        advertised.attributes,
        advertised.as_of_ns,
        advertised.adv_id,
        advertised.kind,
        advertised.address,
        advertised.hops,
        {} if region is None else range_texts(region),
    )


def resource_of(result: wire.Result, hops: int) -> Resource:
    """A result as an answer shows it."""
    return Resource(
        result.resource_id,
        result.broker,
        result.attributes,
        result.as_of_ns,
        result.adv_id,
        result.kind,
        result.address,
        hops,
    )


def is_same_answer(previous: wire.Result | None, result: wire.Result | None) -> bool:
    """True if nobody has to hear of the newer one."""
    if previous is None or result is None:
        return previous is result
    return replace(previous, as_of_ns=result.as_of_ns) == result
