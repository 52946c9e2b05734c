"""Typed values as text. The protocol has no place for a type, so a text says what it is by itself:
a whole number, a number with a fraction or an exponent, `true` or `false`, or else a string. Where
that would say something wrong, `xsi:type` is written, and read."""

from __future__ import annotations

import re
from math import isfinite

from tocsin.errors import BadEvent
from tocsin.event.value import Scalar

INT64_MAX = 2**63 - 1

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_FRACTION = re.compile(
    r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,40}(?:[eE][+-]?[0-9]{1,3})?|[eE][+-]?[0-9]{1,3})"
)
_TRUTHS = {"true": True, "false": False}
_WHOLE_TYPES = frozenset({"byte", "int", "integer", "long", "short"}) | {
    f"{sign}{kind}"
    for sign, kinds in (
        ("unsigned", ("Byte", "Int", "Long", "Short")),
        ("negative", ("Integer",)),
        ("nonNegative", ("Integer",)),
        ("nonPositive", ("Integer",)),
        ("positive", ("Integer",)),
    )
    for kind in kinds
}
_FRACTION_TYPES = frozenset({"float", "double", "decimal"})
_NUMBER_BEGINS = frozenset("-0123456789")


def typed(text: str) -> Scalar:
    """What a text without a declared type is."""
    bare = text.strip() if text[:1].isspace() or text[-1:].isspace() else text
    if bare[:1] in _NUMBER_BEGINS:
        if _WHOLE.fullmatch(bare):
            number = int(bare)
            return number if -INT64_MAX - 1 <= number <= INT64_MAX else text
        if _FRACTION.fullmatch(bare):
            fraction = float(bare)
            return fraction if isfinite(fraction) else text
        return text
    return _TRUTHS.get(bare, text) if bare in _TRUTHS else text


def typed_as(text: str, declared: str) -> Scalar:
    """What a text is of which `xsi:type` says the type; BadEvent if it is none of those."""
    kind = declared.strip().rpartition(":")[2]
    bare = text.strip()
    try:
        if kind in _WHOLE_TYPES:
            number = int(bare)
            if -INT64_MAX - 1 <= number <= INT64_MAX:
                return number
        elif kind in _FRACTION_TYPES:
            fraction = float(bare)
            if isfinite(fraction):
                return fraction
        elif kind == "boolean":
            return {"true": True, "1": True, "false": False, "0": False}[bare]
        else:
            return text
    except (ValueError, KeyError):
        pass
    raise BadEvent(
        f"{text[:40]!r} is no {kind[:40]}", remedy="Send a finite value of the type that it says."
    )


def text_of(value: Scalar) -> str:
    """The text that a value is written as; BadEvent if there is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not isfinite(value):
        raise BadEvent(f"{value} cannot be sent", remedy="Send finite numbers.")
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise BadEvent("a number does not fit into 64 bits", remedy="Send it as a string.")
    return repr(value)


def needs_type(text: str) -> bool:
    """True if this string, as it stands, would be taken for something else."""
    return not isinstance(typed(text), str)
