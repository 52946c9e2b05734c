"""Times in the API: RFC 3339 for moments, ISO 8601 for durations, nanoseconds inside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

NS_PER_S = 1_000_000_000

_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DURATION = re.compile(
    r"P(?:(\d{1,6})W|(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_NS = 2**63 - 1


def moment_ns(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 time; None if it is none, or out of range."""
    parts = _MOMENT.fullmatch(text)
    if parts is None:
        return None
    day, clock, fraction, zone = parts.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone.upper()}")
        since = moment - _EPOCH
    except (ValueError, OverflowError):
        return None
    nanoseconds = int((fraction or "0").ljust(9, "0"))
    total_ns = (since // timedelta(seconds=1)) * NS_PER_S + nanoseconds
    return total_ns if 0 <= total_ns <= _LATEST_NS else None


def duration_ns(text: str) -> int | None:
    """Nanoseconds of an ISO 8601 duration in weeks, days, hours, minutes and seconds."""
    parts = _DURATION.fullmatch(text)
    if parts is None or not any(parts.groups()):
        return None
    weeks, days, hours, minutes = (int(part or 0) for part in parts.groups()[:4])
    whole_s = ((weeks * 7 + days) * 24 + hours) * 3600 + minutes * 60
    seconds, _, fraction = (parts.group(5) or "0").partition(".")
    total_ns = (whole_s + int(seconds)) * NS_PER_S + int(fraction.ljust(9, "0") or 0)
    return total_ns if total_ns <= _LATEST_NS else None


def rfc3339(moment: int) -> str:
    """Nanoseconds since 1970 as RFC 3339, to the millisecond, which is what a person reads."""
    seconds, rest_ns = divmod(moment, NS_PER_S)
    try:
        text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"
    return f"{text}.{rest_ns // 1_000_000:03}Z"


def rfc3339_or_none(moment: int | None) -> str | None:
    return None if moment is None else rfc3339(moment)
