"""The papers' way to write a filter: `[system,=,Linux], [disk,>,120]`, and as PADRES wrote it.

Every bracket is one condition and all of them must hold. The word operators of PADRES (`eq`,
`str-prefix`, ...) compare texts, whatever the value looks like; the signs compare numbers with
numbers and texts with texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tocsin.event.filter import Filter, Operator, Predicate
from tocsin.event.filter_scan import (
    BACKQUOTE,
    NAME,
    QUOTE,
    Scanner,
    check_comparison,
    check_name,
    read_value,
    take_quoted,
)
from tocsin.event.value import Scalar

OPEN = re.compile(r"\[")
_CLOSE = re.compile(r"\]")
_COMMA = re.compile(",")
_SEPARATOR = re.compile("[,;]")
_FIELD = re.compile(r"[^\[\],]+")

_SIGNS: Mapping[str, Operator] = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}

_TEXT_WORDS: Mapping[str, Operator] = {
    "eq": Operator.EQ,
    "neq": Operator.NE,
    "prefix": Operator.PREFIX,
    "suffix": Operator.SUFFIX,
    "contains": Operator.CONTAINS,
    "str-prefix": Operator.PREFIX,
    "str-postfix": Operator.SUFFIX,
    "str-suffix": Operator.SUFFIX,
    "str-contains": Operator.CONTAINS,
    "str-lt": Operator.LT,
    "str-le": Operator.LE,
    "str-gt": Operator.GT,
    "str-ge": Operator.GE,
}

_PRESENCE = frozenset({"ispresent", "exists"})

TopicReader = Callable[[Scanner, str, int], Filter]


def take_brackets(scanner: Scanner, read_topic: TopicReader) -> list[Filter]:
    """Every bracket from here on, with commas or semicolons between them."""
    found = [_take_bracket(scanner, read_topic)]
    while scanner.take(_SEPARATOR):
        if not scanner.peek(OPEN):
            raise scanner.expected("another [name,operator,value]")
        found.append(_take_bracket(scanner, read_topic))
    return found


def _take_bracket(scanner: Scanner, read_topic: TopicReader) -> Filter:
    scanner.take(OPEN)
    scanner.count_predicate()
    name, quoted = _take_field_name(scanner)
    if not scanner.take(_COMMA):
        raise scanner.expected("a comma and an operator")
    word, operator_at = _take_field(scanner, "an operator")
    if word.lower() in _PRESENCE:
        if scanner.take(_COMMA):
            scanner.take(_FIELD)
        return _closed(scanner, Predicate(name, Operator.EXISTS))
    how = _SIGNS.get(word) or _TEXT_WORDS.get(word.lower())
    if how is None:
        known = ", ".join([*_SIGNS, *_TEXT_WORDS, "isPresent"])
        raise scanner.refused(
            f"there is no operator {word!r}", remedy=f"There are: {known}.", at=operator_at
        )
    if not scanner.take(_COMMA):
        raise scanner.expected("a comma and a value")
    if name.lower() == "topic" and how is Operator.EQ and not quoted:
        text, start = _take_text(scanner)
        return _closed(scanner, read_topic(scanner, text, start))
    return _closed(scanner, _comparison(scanner, name, how, is_text=word not in _SIGNS))


def _comparison(scanner: Scanner, name: str, how: Operator, *, is_text: bool) -> Predicate:
    quoted = scanner.peek(QUOTE)
    text, start = _take_text(scanner)
    value: Scalar = text
    unit = None
    if not is_text and not quoted:
        value, unit = read_value(scanner, text, start)
    check_comparison(scanner, how, value, start)
    return Predicate(name, how, value, unit)


def _take_field_name(scanner: Scanner) -> tuple[str, bool]:
    if scanner.peek(BACKQUOTE):
        start = scanner.position
        name, quoted = take_quoted(scanner), True
    else:
        (name, start), quoted = _take_field(scanner, "an attribute name"), False
        if not NAME.fullmatch(name):
            raise scanner.refused(
                f"{name!r} is not an attribute name",
                remedy="Names have letters, digits, _ - and . or stand between backquotes.",
                at=start,
            )
    check_name(scanner, name, start)
    return name, quoted


def _take_text(scanner: Scanner) -> tuple[str, int]:
    if scanner.peek(QUOTE):
        start = scanner.position
        return take_quoted(scanner), start
    return _take_field(scanner, "a value")


def _take_field(scanner: Scanner, what: str) -> tuple[str, int]:
    """What stands up to the next comma or bracket, and where it began."""
    field = scanner.peek(_FIELD)
    if not field:
        raise scanner.expected(what)
    start = scanner.position
    scanner.position += len(field)
    return field.rstrip(), start


def _closed(scanner: Scanner, found: Filter) -> Filter:
    if not scanner.take(_CLOSE):
        raise scanner.expected("]")
    return found
