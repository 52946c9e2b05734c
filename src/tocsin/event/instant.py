"""Times and durations: every text form that is read or written, with nanoseconds inside.

Readers return None for what they do not take; which error that is, their callers know.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
NS_PER_US: Final = 1_000
LATEST_NS: Final = 2**63 - 1  # in the year 2262; the last that the store can keep
CALENDAR_END_NS: Final = 253_402_300_800 * NS_PER_S  # after the year 9999
ISO8601_CHARS_MAX: Final = 64
DURATION_S_MAX: Final = 100 * 365 * 86_400  # of those that people write

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_XS_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d{1,12}))?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_ISO_DURATION = re.compile(
    r"P(?:(?P<W>\d{1,6})W|(?:(?P<D>\d{1,6})D)?(?:T(?=\d)(?:(?P<h>\d{1,6})H)?(?:(?P<m>\d{1,6})M)?"
    r"(?:(?P<s>\d{1,9})(?:\.(?P<f>\d{1,9}))?S)?)?)",
    re.ASCII,
)
_XS_DURATION = re.compile(
    r"-?P(?:(?P<Y>\d{1,9})Y)?(?:(?P<M>\d{1,9})M)?(?:(?P<D>\d{1,9})D)?(?:T(?=\d)"
    r"(?:(?P<h>\d{1,9})H)?(?:(?P<m>\d{1,9})M)?(?:(?P<s>\d{1,12})(?:\.(?P<f>\d{1,12}))?S)?)?",
    re.ASCII,
)
# A year and a month have no fixed length; these are the Gregorian means, rounded to the second.
_UNITS_S = {"Y": 31_556_952, "M": 2_629_746, "W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}

_SHORT = re.compile(
    r"(?:(\d+)d(?:ays?)?)?(?:(\d+)h(?:ours?)?)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s(?:ec)?)?"
)
_ISO_OF_PEOPLE = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_MILLISECONDS = re.compile(r"(\d+(?:\.\d+)?)ms")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_GAP = re.compile(r"(?<=\d)\s+(?=[A-Za-z])|(?<=[A-Za-z])\s+(?=\d)")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)


def rfc3339_ns(text: str) -> int | None:
    """An RFC 3339 time from 1970 on that the store can keep."""
    moment_ns = _calendar_ns(_RFC3339.fullmatch(text))
    return moment_ns if moment_ns is not None and 0 <= moment_ns <= LATEST_NS else None


def xs_date_time_ns(text: str) -> int | None:
    """An xs:dateTime, in UTC if it names no zone. May be negative, or later than `LATEST_NS`."""
    return _calendar_ns(_XS_DATE_TIME.fullmatch(text))


def _calendar_ns(found: re.Match[str] | None) -> int | None:
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        since = datetime.fromisoformat(f"{day}T{clock}{(zone or 'Z').upper()}") - _EPOCH
    except ValueError:
        return None
    return since // _SECOND * NS_PER_S + _fraction_ns(fraction)


def _fraction_ns(digits: str | None) -> int:
    return int(digits[:9].ljust(9, "0")) if digits else 0


def iso8601(text: str) -> datetime | None:
    """The time in UTC that any form of ISO 8601 names; in UTC if it names no zone."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def iso8601_ns(text: str | None) -> int | None:
    """A time as workflow engines write it, from 1970 on: wider than RFC 3339, but with a clock."""
    if not text or len(text) > ISO8601_CHARS_MAX or ":" not in text:
        return None
    moment = iso8601(text)
    moment_ns = -1 if moment is None else datetime_ns(moment)
    return moment_ns if 0 <= moment_ns <= LATEST_NS else None


def datetime_ns(moment: datetime) -> int:
    """Nanoseconds since 1970 of a time that has a zone."""
    return (moment - _EPOCH) // _MICROSECOND * NS_PER_US


def rfc3339(moment_ns: int, digits: int = 3) -> str:
    """RFC 3339 in UTC, with that many digits of the second; at most the end of the year 9999."""
    second, rest_ns = divmod(min(moment_ns, CALENDAR_END_NS - 1), NS_PER_S)
    return f"{_to_the_second(second)}.{f'{rest_ns:09}'[:digits]}Z"


@lru_cache(maxsize=64)
def _to_the_second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()[:19]


def rfc3339_or_none(moment_ns: int | None) -> str | None:
    return None if moment_ns is None else rfc3339(moment_ns)


def is_date(year: int, month: int, day: int) -> bool:
    """True for a day of the Gregorian calendar."""
    try:
        datetime(year, month, day)
    except ValueError:
        return False
    return True


def seconds_between(first_ns: int, second_ns: int) -> float:
    """Rounded to the microsecond: clocks are no finer."""
    return round((second_ns - first_ns) / NS_PER_S, 6)


def iso_duration_ns(text: str) -> int | None:
    """An ISO 8601 duration in weeks, days, hours, minutes and seconds."""
    length_ns = _length_ns(_ISO_DURATION.fullmatch(text))
    return length_ns if length_ns is not None and length_ns <= LATEST_NS else None


def xs_duration_ns(text: str) -> int | None:
    """An xs:duration. May be negative, or longer than `LATEST_NS`."""
    length_ns = _length_ns(_XS_DURATION.fullmatch(text))
    return -length_ns if length_ns and text.startswith("-") else length_ns


def _length_ns(found: re.Match[str] | None) -> int | None:
    if found is None:
        return None
    parts = found.groupdict()
    fraction_ns = _fraction_ns(parts.pop("f"))
    given = {unit: int(part) for unit, part in parts.items() if part}
    if not given:
        return None
    return sum(count * _UNITS_S[unit] for unit, count in given.items()) * NS_PER_S + fraction_ns


def iso_duration(length_ns: int) -> str:
    """A duration in seconds, as ISO 8601 writes it: PT600S, PT0.5S."""
    whole_s, rest_ns = divmod(length_ns, NS_PER_S)
    fraction = f".{rest_ns:09}".rstrip("0").rstrip(".")
    return f"PT{whole_s}{fraction}S"


def xs_duration(length_ns: int) -> str:
    """An xs:duration, to the millisecond; never negative."""
    return iso_duration(max(0, length_ns + NS_PER_MS // 2) // NS_PER_MS * NS_PER_MS)


def duration_s(text: str) -> float | None:
    """A duration as people write it: 500ms, 90, 90s, 10m, 5min, 1h30m, PT1H30M."""
    stripped = _GAP.sub("", text.strip())
    if _NUMBER.fullmatch(stripped):
        length_s = float(stripped)
    elif (found := _MILLISECONDS.fullmatch(stripped.lower())) is not None:
        length_s = float(found[1]) / 1_000
    else:
        found = _SHORT.fullmatch(stripped.lower()) or _ISO_OF_PEOPLE.fullmatch(stripped.upper())
        if found is None or not any(found.groups()):
            return None
        sizes_s = (86_400, 3_600, 60, 1)
        parts = zip(found.groups(), sizes_s, strict=True)
        length_s = sum(float(part) * size_s for part, size_s in parts if part)
    return length_s if length_s <= DURATION_S_MAX else None
