"""The Grid Forum's time stamp: ISO 8601, and after it how fine and how right the clock was.

    2000-11-09T21:51:45Z                the paper's examples
    2000-10-26T08:34:26.125Zp.001a.5    a clock that ticks every millisecond, right to half a second

`p` (the later draft: `r`, for resolution) and `a` are seconds. Of ISO 8601 the extended and the
basic form are read, a comma for the point, any offset, and none at all, which means UTC.
"""

from __future__ import annotations

import re

import msgspec

from tocsin.errors import BadEvent
from tocsin.event.instant import is_date
from tocsin.wire.gma.values import XML_SPACE

TEXT_CHARS_MAX = 200

# The usual stamp: RFC 3339 as it stands, on a day that there is in every year.
PLAIN_STAMP = (
    r"(?!0000)[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,18})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
# What the Grid Forum may add to it, as usually written.
CLOCK = (
    r"(?:[pr](?:[0-9]{1,9}(?:\.[0-9]{1,18})?|\.[0-9]{1,18}))?"
    r"(?:a(?:[0-9]{1,9}(?:\.[0-9]{1,18})?|\.[0-9]{1,18}))?"
)
_STAMP = re.compile(
    r"(?P<year>[0-9]{4})-?(?P<month>[0-9]{2})-?(?P<day>[0-9]{2})[Tt ]"
    r"(?P<hour>[0-9]{2}):?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,64}))?)?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?"
    r"(?:[pr](?P<precision>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,2})?))?"
    r"(?:a(?P<accuracy>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,2})?))?"
)
_PLAIN = re.compile(PLAIN_STAMP)
_REMEDY = "Send it as in 2000-11-09T21:51:45Z."


class Stamp(msgspec.Struct, frozen=True):
    """When something happened: RFC 3339, and in seconds what is known of the clock."""

    time: str
    precision_s: float | None = None
    accuracy_s: float | None = None


def is_plain(text: str) -> bool:
    """True for a stamp of the usual form."""
    return _PLAIN.fullmatch(text) is not None


def read_stamp(text: str) -> Stamp:
    """The time that a stamp says; BadEvent if it is none."""
    if is_plain(text):
        return Stamp(text)
    found = _STAMP.fullmatch(text.strip(XML_SPACE)) if len(text) <= TEXT_CHARS_MAX else None
    if found is None:
        raise BadEvent(f"{text[:40]!r} is not a time stamp", remedy=_REMEDY)
    year, month, day = int(found["year"]), int(found["month"]), int(found["day"])
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if not is_date(year, month, day):
        raise BadEvent(f"{text[:40]!r} is not a valid date", remedy=_REMEDY)
    if hour > 23 or minute > 59 or second > 60:
        raise BadEvent(f"{text[:40]!r} is not a valid time of day", remedy=_REMEDY)
    part = f".{found['part']}" if found["part"] else ""
    written = f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{part}"
    return Stamp(
        written + _zone(found["zone"], text),
        _seconds(found["precision"]),
        _seconds(found["accuracy"]),
    )


def _zone(written: str | None, text: str) -> str:
    if written is None or written in "Zz":
        return "Z"
    digits = written[1:].replace(":", "").ljust(4, "0")
    if int(digits[:2]) > 23 or int(digits[2:]) > 59:
        raise BadEvent(f"{text[:40]!r} has an offset from UTC that is not valid", remedy=_REMEDY)
    return f"{written[0]}{digits[:2]}:{digits[2:]}"


def _seconds(text: str | None) -> float | None:
    return None if text is None else float(text)
