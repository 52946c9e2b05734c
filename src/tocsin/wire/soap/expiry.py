"""When a subscription ends, as the Web-services specifications write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from tocsin.event.instant import (
    LATEST_NS,
    NS_PER_MS,
    rfc3339,
    xs_date_time_ns,
    xs_duration,
    xs_duration_ns,
)

ExpiryKind = Literal["duration", "dateTime", "milliseconds"]

TEXT_CHARS_MAX: Final = 64
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expiry:
    """When something shall end, and how the peer wrote it: it is answered in the same form."""

    expires_ns: int
    kind: ExpiryKind


def read_expiry(text: str, now_ns: int, *, milliseconds: bool = False) -> Expiry | None:
    """The moment that a duration from now, a dateTime or (the original's clients) a number of
    milliseconds from now names; None if the text is none of these. May lie in the past."""
    text = text.strip()
    if len(text) > TEXT_CHARS_MAX:
        return None
    if (length_ns := xs_duration_ns(text)) is not None:
        return Expiry(min(now_ns + length_ns, LATEST_NS), "duration")
    if (moment_ns := xs_date_time_ns(text)) is not None:
        return Expiry(min(moment_ns, LATEST_NS), "dateTime")
    if milliseconds and _DIGITS.fullmatch(text):
        return Expiry(min(now_ns + int(text) * NS_PER_MS, LATEST_NS), "milliseconds")
    return None


def write_expiry(expires_ns: int, now_ns: int, kind: str) -> str:
    """The moment in the form that the peer used. The original answers its milliseconds with a
    dateTime, and so do we."""
    if kind == "duration":
        return xs_duration(expires_ns - now_ns)
    return rfc3339(expires_ns)
