"""Times as the Web-services specifications write them: moments, durations, and milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

ExpiryKind = Literal["duration", "dateTime", "milliseconds"]

NS_PER_S: Final = 1_000_000_000
EXPIRES_NS_MAX: Final = 2**63 - 1
TEXT_MAX: Final = 64

_DURATION = re.compile(
    r"(?P<minus>-)?P(?:(?P<Y>\d{1,9})Y)?(?:(?P<M>\d{1,9})M)?(?:(?P<D>\d{1,9})D)?"
    r"(?:T(?:(?P<h>\d{1,9})H)?(?:(?P<m>\d{1,9})M)?(?:(?P<s>\d{1,12})(?P<f>\.\d{1,12})?S)?)?"
)
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,12})?(Z|[+-]\d\d:\d\d)?")
_DIGITS = re.compile(r"\d{1,18}")
# A year and a month have no fixed length; these are the Gregorian means, rounded to the second.
_SECONDS = {"Y": 31_556_952, "M": 2_629_746, "D": 86_400, "h": 3_600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True)
class Expiry:
    """When something shall end, and how the peer wrote it: it is answered in the same form."""

    expires_ns: int
    kind: ExpiryKind


def read_expiry(text: str, now_ns: int, *, milliseconds: bool = False) -> Expiry | None:
    """The moment that a duration from now, a dateTime or (the original's clients) a number of
    milliseconds from now names; None if the text is none of these. May lie in the past."""
    text = text.strip()
    if len(text) > TEXT_MAX:
        return None
    lease_ns = duration_ns(text)
    if lease_ns is not None:
        return Expiry(_bounded(now_ns + lease_ns), "duration")
    moment = moment_ns(text)
    if moment is not None:
        return Expiry(_bounded(moment), "dateTime")
    if milliseconds and _DIGITS.fullmatch(text):
        return Expiry(_bounded(now_ns + int(text) * 1_000_000), "milliseconds")
    return None


def _bounded(moment: int) -> int:
    return min(moment, EXPIRES_NS_MAX)


def duration_ns(text: str) -> int | None:
    """The length of an xs:duration; None if it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or text.endswith(("P", "T")):
        return None
    seconds = sum(int(found[unit] or 0) * size for unit, size in _SECONDS.items())
    fraction = found["f"] or ""
    nanoseconds = int(fraction[1:10].ljust(9, "0")) if fraction else 0
    total = seconds * NS_PER_S + nanoseconds
    return -total if found["minus"] else total


def moment_ns(text: str) -> int | None:
    """The moment of an xs:dateTime, in UTC if it names no zone; None if it is none."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    zone, fraction = found[8], found[7] or ""
    try:
        year, month, day, hour, minute, second = (int(found[index]) for index in range(1, 7))
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        if zone and zone != "Z":
            away = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            whole -= away if zone[0] == "+" else -away
    except (ValueError, OverflowError):
        return None
    nanoseconds = int(fraction[1:10].ljust(9, "0")) if fraction else 0
    return int((whole - _EPOCH).total_seconds()) * NS_PER_S + nanoseconds


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS: Final = 253_402_300_799 * NS_PER_S  # the end of the year 9999, the last that has a name


def date_time(moment: int) -> str:
    """The moment as an xs:dateTime in UTC, to the millisecond."""
    moment = min(moment, _LAST_NS)
    whole = _EPOCH + timedelta(seconds=moment // NS_PER_S)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{moment % NS_PER_S // 1_000_000:03d}Z"


def duration(length_ns: int) -> str:
    """The length as an xs:duration, to the millisecond; never negative."""
    milliseconds = max(0, length_ns + 500_000) // 1_000_000
    seconds, rest = divmod(milliseconds, 1000)
    fraction = f".{rest:03d}".rstrip("0") if rest else ""
    return f"PT{seconds}{fraction}S"


def write_expiry(expires_ns: int, now_ns: int, kind: str) -> str:
    """The moment in the form that the peer used. The original answers its milliseconds with a
    dateTime, and so do we."""
    if kind == "duration":
        return duration(expires_ns - now_ns)
    return date_time(expires_ns)
