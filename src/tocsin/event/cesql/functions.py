"""The built-in functions (specification, 3.5), and IS_INT and IS_BOOL of its earlier drafts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tocsin.event.cesql.values import (
    INT32_MAX,
    INT32_MIN,
    ErrorKind,
    EvaluationError,
    SqlValue,
    to_boolean,
    to_integer,
    to_string,
)

TEXT_CHARS_MAX = 1 << 20  # of what CONCAT makes; an event has no longer text to compare it with

# White_Space of Unicode; str.strip would also take the control characters U+001C to U+001F.
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def _any(value: SqlValue) -> SqlValue:
    return value


Cast = Callable[[SqlValue], SqlValue]


@dataclass(frozen=True, slots=True)
class Function:
    """One overload: casts of the parameters, of those that may follow, and what it computes."""

    name: str
    casts: tuple[Cast, ...]
    apply: Callable[..., SqlValue]
    zero: SqlValue
    rest: Cast | None = None

    def takes(self, count: int) -> bool:
        return count == len(self.casts) or (self.rest is not None and count > len(self.casts))

    def cast_at(self, index: int) -> Cast:
        if index < len(self.casts):
            return self.casts[index]
        assert self.rest is not None
        return self.rest


def _joined(delimiter: str, *texts: str) -> str:
    size = sum(map(len, texts)) + len(delimiter) * len(texts)
    if size > TEXT_CHARS_MAX:
        raise EvaluationError(
            ErrorKind.FUNCTION, f"the text would have {size} characters, over {TEXT_CHARS_MAX}"
        )
    return delimiter.join(texts)


def _concat(*texts: str) -> str:
    return _joined("", *texts)


def _trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def _left(text: str, count: int) -> str:
    return text[: _not_negative(count, text)]


def _right(text: str, count: int) -> str:
    return text[max(0, len(text) - _not_negative(count, text)) :]


def _not_negative(count: int, value: str) -> int:
    if count < 0:
        raise EvaluationError(ErrorKind.FUNCTION, f"the length {count} is negative", value)
    return count


def _substring(text: str, position: int, length: int = INT32_MAX) -> str:
    _not_negative(length, "")
    if not -len(text) <= position <= len(text):
        raise EvaluationError(ErrorKind.FUNCTION, f"there is no character {position}", "")
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


def _absolute(number: int) -> int:
    if number == INT32_MIN:
        raise EvaluationError(ErrorKind.MATH, f"{number} has no absolute value", INT32_MAX)
    return abs(number)


def _is_castable(cast: Cast) -> Callable[[SqlValue], bool]:
    def is_castable(value: SqlValue) -> bool:
        try:
            cast(value)
        except EvaluationError:
            return False
        return True

    return is_castable


_FUNCTIONS = (
    Function("LENGTH", (to_string,), len, 0),
    Function("CONCAT", (), _concat, "", rest=to_string),
    Function("CONCAT_WS", (to_string,), _joined, "", rest=to_string),
    Function("LOWER", (to_string,), str.lower, ""),
    Function("UPPER", (to_string,), str.upper, ""),
    Function("TRIM", (to_string,), _trim, ""),
    Function("LEFT", (to_string, to_integer), _left, ""),
    Function("RIGHT", (to_string, to_integer), _right, ""),
    Function("SUBSTRING", (to_string, to_integer), _substring, ""),
    Function("SUBSTRING", (to_string, to_integer, to_integer), _substring, ""),
    Function("ABS", (to_integer,), _absolute, 0),
    Function("INT", (_any,), to_integer, 0),
    Function("BOOL", (_any,), to_boolean, False),
    Function("STRING", (_any,), to_string, ""),
    Function("IS_INT", (_any,), _is_castable(to_integer), False),
    Function("IS_BOOL", (_any,), _is_castable(to_boolean), False),
)
NAMES = tuple(dict.fromkeys(function.name for function in _FUNCTIONS))


def find(name: str, argument_count: int) -> Function | None:
    """The overload of that name, in any case, for so many arguments."""
    wanted = name.upper()
    for function in _FUNCTIONS:
        if function.name == wanted and function.takes(argument_count):
            return function
    return None
