"""The ranges of a region in words, for people: `>= 100`, `0 to 2`, `06:00 to 22:00 UTC`."""

from __future__ import annotations

from math import inf, isfinite, nextafter

from tocsin.event.facets import BASE_UNITS, FLAG
from tocsin.event.value import UNITS
from tocsin.overlay.region import TIME, Region
from tocsin.overlay.time_of_day import DAY_S

UNIT_OF = {
    dimension: unit for unit, (dimension, factor) in reversed(list(UNITS.items())) if factor == 1.0
}
"""The unit of each dimension that bounds are kept in."""


def range_texts(region: Region) -> dict[str, str]:
    """The range of each attribute that can have more than one value."""
    return {
        name: _time_text(*bound) if kind == TIME else _range_text(kind, *bound)
        for (name, kind), bound in region.bounds.items()
        if not isinstance(bound, str) and (kind == TIME or bound[0] != bound[1])
    }


def _range_text(kind: str, low: float, high: float) -> str:
    if kind == FLAG:
        return "true or false"
    unit = f" {UNIT_OF[kind.removeprefix(BASE_UNITS)]}" if kind.startswith(BASE_UNITS) else ""
    lower, upper = _end_text(">", low, -inf), _end_text("<", high, inf)
    written = [f"{end}{unit}" for end in (lower, upper) if end]
    return " and ".join(written) or "any"


def _end_text(operator: str, end: float, outward: float) -> str:
    """`< 5` was made to end at the double before 5, which takes more digits to write."""
    if not isfinite(end):
        return ""
    beyond = nextafter(end, outward)
    if len(_number(beyond)) < len(_number(end)):
        return f"{operator} {_number(beyond)}"
    return f"{operator}= {_number(end)}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _time_text(low: float, high: float) -> str:
    if low == high:
        return f"{_clock(low)} UTC"
    return f"{_clock(low)} to {_clock(high)} UTC"


def _clock(second: float) -> str:
    minutes, seconds = divmod(round(second) % DAY_S, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text
