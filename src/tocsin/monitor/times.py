"""Times as engines write them, and as the monitor shows them: nanoseconds since 1970 inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

NS_PER_S: Final = 1_000_000_000
NS_PER_US: Final = 1_000
LATEST_NS: Final = 2**63 - 1
TEXT_CHARS_MAX: Final = 64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def read_ns(text: str | None) -> int | None:
    """The moment that the text names; None if it is none. A time without a zone is taken as UTC.

    Engines are not to be refused for how they write a time, so this is wider than RFC 3339: any
    form of ISO 8601 that Python reads, but no bare numbers.
    """
    if not text or len(text) > TEXT_CHARS_MAX or ":" not in text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    except (ValueError, OverflowError):
        return None
    moment_ns = since // _MICROSECOND * NS_PER_US
    return moment_ns if 0 <= moment_ns <= LATEST_NS else None


def format_ns(moment_ns: int) -> str:
    """The moment as RFC 3339 in UTC, to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=moment_ns // NS_PER_US)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z"


def format_ns_or_none(moment_ns: int | None) -> str | None:
    return None if moment_ns is None else format_ns(moment_ns)


def seconds_between(first_ns: int, second_ns: int) -> float:
    """Rounded to the microsecond, as nobody's clock says more."""
    return round((second_ns - first_ns) / NS_PER_S, 6)
