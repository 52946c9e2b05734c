"""The values of CloudEvents SQL, the casts between them (specification, 3.7) and what can go wrong.

The specification knows strings, booleans and integers of 32 bits. Events here also carry fractions
and integers of 64 bits: those compare as numbers and turn into text; arithmetic stays with 32 bits.
"""

from __future__ import annotations

import re
from enum import Enum

from tocsin.event.value import Scalar

SqlValue = Scalar

INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_SHOWN_MAX = 40


class ErrorKind(Enum):
    """The errors of an evaluation, as the specification's test kit spells them."""

    CAST = "cast"
    MATH = "math"
    MISSING_ATTRIBUTE = "missingAttribute"
    FUNCTION = "functionEvaluation"


class EvaluationError(Exception):
    """An expression has no proper value for this event. A filter then does not let it pass.

    `value` is what a function gives all the same, and `origin` the call that failed.
    """

    def __init__(self, kind: ErrorKind, problem: str, value: SqlValue | None = None) -> None:
        super().__init__(problem)
        self.kind = kind
        self.value = value
        self.origin: object = None


def to_boolean(value: SqlValue) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return value != 0
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise _no_cast(value, "a boolean")
    return lowered == "true"


def to_integer(value: SqlValue) -> int:
    number = to_number(value)
    if number != number // 1 or not INT32_MIN <= number <= INT32_MAX:
        raise _no_cast(value, "an integer of 32 bits")
    return int(number)


def to_number(value: SqlValue) -> int | float:
    """For comparing: what the event holds as a number, whatever its size; a text as an integer."""
    if not isinstance(value, str):
        return int(value) if isinstance(value, bool) else value
    if not _INTEGER.fullmatch(value) or not INT32_MIN <= int(value) <= INT32_MAX:
        raise _no_cast(value, "an integer of 32 bits")
    return int(value)


def to_string(value: SqlValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def to_type_of(example: SqlValue, value: SqlValue) -> SqlValue:
    """The value in the type of the example."""
    if isinstance(example, bool):
        return to_boolean(value)
    if isinstance(example, str):
        return to_string(value)
    return to_number(value)


def _no_cast(value: SqlValue, wanted: str) -> EvaluationError:
    return EvaluationError(ErrorKind.CAST, f"{str(value)[:_SHOWN_MAX]!r} is not {wanted}")
