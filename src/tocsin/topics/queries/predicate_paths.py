"""Where a predicate on properties can be looked up: choices, each of alternatives that together
have everything for which the predicate is true."""

from __future__ import annotations

from typing import Final

from tocsin.topics.queries.access_paths import ByProperty, Range, beginning_with
from tocsin.topics.queries.predicate_tree import (
    And,
    Comparison,
    Constant,
    Flag,
    Likeness,
    Membership,
    Or,
    Predicate,
    Property,
)

ALTERNATIVES_MAX: Final = 8

_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def predicate_paths(wanted: Predicate) -> list[tuple[ByProperty, ...]]:
    """None of them if only a scan finds all."""
    match wanted:
        case And(operands):
            return [choice for each in operands for choice in predicate_paths(each)]
        case Or(operands):
            firsts = [next(iter(predicate_paths(each)), None) for each in operands]
            if None in firsts:
                return []
            return _few(tuple(path for first in firsts if first for path in first))
        case Comparison(operator, Property(name), Constant(value)) if operator != "<>":
            return [(_compared(name, operator, value),)]
        case Comparison(operator, Constant(value), Property(name)) if operator != "<>":
            return [(_compared(name, _MIRRORED[operator], value),)]
        case Membership(Property(name), constants):
            return _few(tuple(_compared(name, "=", each.value) for each in constants))
        case Likeness(Property(name), pattern):
            return _beginning(name, pattern)
        case Flag(name):
            return [(_compared(name, "=", True),)]
    return []


def _few(alternatives: tuple[ByProperty, ...]) -> list[tuple[ByProperty, ...]]:
    distinct = tuple(dict.fromkeys(alternatives))
    return [distinct] if len(distinct) <= ALTERNATIVES_MAX else []


def _compared(name: str, operator: str, value: str | float | bool) -> ByProperty:
    key = int(value) if isinstance(value, bool) else value
    match operator:
        case "=":
            found = Range.exactly(key)
        case "<" | "<=":
            found = Range(high=key, is_high_open=operator == "<")
        case _:
            found = Range(low=key, is_low_open=operator == ">")
    if isinstance(value, bool):
        return ByProperty(name, "flag", found)
    return ByProperty(name, "text" if isinstance(value, str) else "number", found)


def _beginning(name: str, pattern: str) -> list[tuple[ByProperty, ...]]:
    prefix = ""
    for at, char in enumerate(pattern):
        if char in "%_":
            break
        if char == "\\" and pattern[at + 1 : at + 2] in ("%", "_"):
            break  # what follows means itself: as far as here is enough
        prefix += char
    else:
        return [(ByProperty(name, "text", Range.exactly(pattern)),)]
    return [(ByProperty(name, "text", beginning_with(prefix)),)] if prefix else []
