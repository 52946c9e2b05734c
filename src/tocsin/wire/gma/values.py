"""Typed values as text. The protocol has no place for a type, so a text says what it is by itself:
a whole number, a number with a fraction or an exponent, `true` or `false`, or else a string. Where
that would say something wrong, `xsi:type` is written, and read."""

from __future__ import annotations

import re
from math import isfinite

from tocsin.errors import BadEvent
from tocsin.event.value import Scalar

INT64_MAX = 2**63 - 1
XML_SPACE = " \t\r\n"

_NUMBER = re.compile(
    r"(?P<whole>-?(?:0|[1-9][0-9]{0,18}))"
    r"|-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,40}(?:[eE][+-]?[0-9]{1,3})?|[eE][+-]?[0-9]{1,3})"
)
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]{0,30})\.[0-9]{1,40}")  # no such number is too large
_ANY_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_ANY_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?"
)
_TRUTHS = {"true": True, "false": False}
_DECLARED_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_WHOLE_TYPES = frozenset(
    {
        "byte",
        "int",
        "integer",
        "long",
        "negativeInteger",
        "nonNegativeInteger",
        "nonPositiveInteger",
        "positiveInteger",
        "short",
        "unsignedByte",
        "unsignedInt",
        "unsignedLong",
        "unsignedShort",
    }
)
_NUMBER_TYPES = frozenset({"float", "double", "decimal"})
_NUMBER_BEGINS = frozenset("-0123456789")
_VALUE_BEGINS = _NUMBER_BEGINS | frozenset("tf" + XML_SPACE)


def typed(text: str) -> Scalar:
    """What a text without a declared type is."""
    if _FRACTION.fullmatch(text):  # as most are
        return float(text)
    if text[:1] not in _VALUE_BEGINS:
        return text
    bare = text.strip(XML_SPACE)
    if bare in _TRUTHS:
        return _TRUTHS[bare]
    found = _NUMBER.fullmatch(bare) if bare[:1] in _NUMBER_BEGINS else None
    if found is None:
        return text
    if found.lastgroup:
        number = int(bare)
        return number if -INT64_MAX - 1 <= number <= INT64_MAX else text
    fraction = float(bare)
    return fraction if isfinite(fraction) else text


def typed_as(text: str, declared: str) -> Scalar:
    """What a text is of which `xsi:type` says the type; the text, if it is no finite such value."""
    kind = declared.strip(XML_SPACE).rpartition(":")[2]
    bare = text.strip(XML_SPACE)
    if kind in _WHOLE_TYPES and _ANY_WHOLE.fullmatch(bare):
        number = int(bare)
        return number if -INT64_MAX - 1 <= number <= INT64_MAX else text
    if kind in _NUMBER_TYPES and _ANY_NUMBER.fullmatch(bare):
        fraction = float(bare)
        return fraction if isfinite(fraction) else text
    return _DECLARED_TRUTHS.get(bare, text) if kind == "boolean" else text


def text_of(value: Scalar) -> str:
    """The text that a value is written as; BadEvent if there is none."""
    if isinstance(value, float):
        if isfinite(value):
            return repr(value)
        raise BadEvent(f"{value} cannot be sent", remedy="Send finite numbers.")
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if -INT64_MAX - 1 <= value <= INT64_MAX:
        return repr(value)
    raise BadEvent("a number does not fit into 64 bits", remedy="Send it as a string.")


def needs_type(text: str) -> bool:
    """True if this string, as it stands, would be taken for something else."""
    return not isinstance(typed(text), str)
