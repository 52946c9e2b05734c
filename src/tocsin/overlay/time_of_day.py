"""Times of the day as numbers: `8 a.m.`, `15:30`, `3 p.m. Europe/Berlin`, `08:00+02:00`.

A time of day is so many seconds after midnight in UTC, from 0 to before 86,400; without a zone it
is meant in UTC. A window is a closed interval of such seconds that begins on the first day and, if
it passes midnight in UTC, ends on the second: `> 10 p.m.` and `< 6 a.m.` is from 79,200 to 108,000.
A lower bound alone lasts until midnight of its own zone, an upper bound alone begins there. A
request is one such window. What a resource offers is kept on both days, so that two windows meet
exactly if they share a time of day.

The offset of a named zone changes during the year, and to know it takes files: whoever parses hands
in `zones`. The offset is the one of that moment; a registration is renewed with its lease.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nextafter
from typing import Final

DAY_S: Final = 86_400
TIME_CHARS_MAX: Final = 64

Zones = Callable[[str], int | None]
"""The offset from UTC in seconds of a zone of this name; None if there is none."""

_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d(?:\.\d{1,9})?))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?(?![A-Za-z]))?"
    r"(?:\s*(?P<zone>Z|UTC|[+-]\d\d:?\d\d|[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)+))?",
    re.IGNORECASE | re.ASCII,
)
_LIKE_A_TIME = re.compile(r"\s*\d+\s*(?::\s*\d|[ap]\.?\s*m\b)", re.IGNORECASE | re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def NO_ZONES(name: str) -> int | None:
    """Knows UTC and offsets alone."""
    return None


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """Seconds after midnight where it was written, and how far that place is ahead of UTC."""

    local_s: float
    offset_s: int

    @property
    def utc_s(self) -> float:
        return (self.local_s - self.offset_s) % DAY_S


def read_time_of_day(text: str, zones: Zones) -> TimeOfDay | None:
    """The time that the whole text writes; None if it writes none or its zone is not known."""
    if len(text) > TIME_CHARS_MAX or not text.lstrip()[:1].isdigit():
        return None
    found = _TIME.fullmatch(text.strip())
    if found is None or (found["minute"] is None and found["half"] is None):
        return None  # a bare number
    local_s = _local_s(int(found["hour"]), found)
    offset_s = 0 if found["zone"] is None else _offset_s(found["zone"], zones)
    return None if local_s is None or offset_s is None else TimeOfDay(local_s, offset_s)


def looks_like_time(text: str) -> bool:
    """True for what was probably meant as one, as `25:00` and `13 p.m.`, if it is one or not."""
    return _LIKE_A_TIME.match(text) is not None


def unknown_zone(text: str, zones: Zones) -> str | None:
    """The zone of what would be a time of day, if that were known."""
    found = _TIME.fullmatch(text.strip()) if len(text) <= TIME_CHARS_MAX else None
    if found is None or found["zone"] is None:
        return None
    if found["minute"] is None and found["half"] is None:
        return None
    zone: str = found["zone"]
    return zone if _offset_s(zone, zones) is None else None


def _local_s(hour: int, found: re.Match[str]) -> float | None:
    if found["half"] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    minute, second = int(found["minute"] or 0), float(found["second"] or 0)
    if hour > 23 or minute > 59 or second >= 60:
        return None
    return hour * 3_600 + minute * 60 + second


def _offset_s(zone: str, zones: Zones) -> int | None:
    if zone.upper() in ("Z", "UTC"):
        return 0
    written = _OFFSET.fullmatch(zone)
    if written is None:
        return zones(zone)
    sign, hours, minutes = written.groups()
    if int(hours) > 15 or int(minutes) > 59:
        return None
    return (int(hours) * 3_600 + int(minutes) * 60) * (1 if sign == "+" else -1)


@dataclass(frozen=True, slots=True)
class TimeBound:
    """One end of a window."""

    time: TimeOfDay
    is_strict: bool


def window(low: TimeBound | None, high: TimeBound | None) -> tuple[float, float]:
    """The closed interval between two bounds, of which at least one is given."""
    if low is None:
        assert high is not None
        low = TimeBound(TimeOfDay(0.0, high.time.offset_s), is_strict=False)
    begin = low.time.utc_s
    if high is None:
        end = begin + (DAY_S - low.time.local_s)
        return _after(begin, low.is_strict), nextafter(end, -inf)
    end = high.time.utc_s
    # The end comes after the beginning: on the next day if its number is smaller.
    if end < begin or (end == begin and (low.is_strict or high.is_strict)):
        end += DAY_S
    return _after(begin, low.is_strict), nextafter(end, -inf) if high.is_strict else end


def _after(begin: float, is_strict: bool) -> float:
    return nextafter(begin, inf) if is_strict else begin
