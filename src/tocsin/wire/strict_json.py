"""JSON that every reader understands in the same way.

Names that come twice in one object, and numbers that no double can hold, are well-formed JSON. But
readers differ in which of the names counts, and a page of events with an integer of 5,000 digits,
or with 1e999, cannot be read by Python, Java or a browser at all. So both are refused where they
come in. What is clearly in order is found to be so by two quick checks; the rest is read exactly.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, Final

DIGITS_MAX: Final = 308  # of an integer: a double holds no more

_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")
_MANY: Final = b"0" * 20
_TOO_MANY: Final = b"0" * (DIGITS_MAX + 1)
# A number may be too large only if it is long or has a large exponent.
_LARGE: Final = re.compile(rb"[0-9]{20}|[0-9][eE][+]?[0-9]{3}").search


class Ambiguous(ValueError):
    """The JSON is well-formed, and not everybody reads the same in it."""


def check(text: bytes) -> None:
    """Raise Ambiguous if readers could disagree. What is no JSON at all is for others to report."""
    is_escaped = b"\\" in text
    # Without escaped quotes every second part is a string. Looking for strings with a regular
    # expression takes hours where one has no end.
    plain = text.replace(b"\\\\", b"\\.").replace(b'\\"', b"\\.") if is_escaped else text
    parts = plain.split(b'"')
    strings, between = parts[1::2], parts[::2]
    if is_escaped:
        names = _names(strings, between)
        is_doubtful = len(set(names)) < len(names) or any(b"\\" in name for name in names)
    else:
        is_doubtful = len(set(strings)) < len(strings) and _has_name_twice(strings, between)
    outside = b'"'.join(between)
    digits = outside.translate(_DIGITS_ALIKE)
    is_large = (b"0e" in digits or _MANY in digits) and _LARGE(outside) is not None
    if not (is_doubtful or is_large):
        return
    try:
        json.loads(
            text,
            object_pairs_hook=_members,
            parse_int=_integer if is_large else None,
            parse_float=_float if is_large else None,
        )
    except Ambiguous:
        raise
    except (ValueError, RecursionError):
        return


def has_number_too_large(json_text: bytes) -> bool:
    """True if a number in this well-formed JSON is one that `check` refuses.

    This is asked of every event that is written, so that a log from before the rule has pages that
    can be read; nearly always one look at the digits is enough.
    """
    digits = json_text.translate(_DIGITS_ALIKE)
    if b"0e" not in digits and _TOO_MANY not in digits:
        return False
    try:
        json.loads(json_text, parse_int=_integer, parse_float=_float)
    except Ambiguous:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _has_name_twice(strings: list[bytes], between: list[bytes]) -> bool:
    """Perhaps in two objects, which is fine."""
    names = _names(strings, between)
    return len(set(names)) < len(names)


def _names(strings: list[bytes], between: list[bytes]) -> list[bytes]:
    return [each for each, after in zip(strings, between[1:], strict=False) if b":" in after]


def _members(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise Ambiguous(f"the name {name[:60]!r} comes twice in one JSON object")
        seen.add(name)


def _integer(digits: str) -> None:
    if len(digits.lstrip("-")) > DIGITS_MAX:
        raise Ambiguous(f"an integer has {len(digits)} digits")


def _float(digits: str) -> None:
    if isinf(float(digits)):
        raise Ambiguous(f"the number {digits[:60]} is too large")
