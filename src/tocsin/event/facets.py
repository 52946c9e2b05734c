"""Facets: in which ways a published value may be compared. Shared by `matches` and every index.

`facets(values)` maps `(name, kind)` to what a predicate of that kind compares with:

    kind "n"            number: a finite float
    kind "s"            string: a str
    kind "b"            truth: a bool
    kind "u:DIMENSION"  number in the base unit of the dimension, as in ("memory", "u:bytes")

A name may have several. CloudEvents headers carry only text, so a text that is wholly a plain
decimal number also answers number predicates, and `true` and `false` also answer truth predicates;
a number never answers a string predicate. A Quantity answers as its bare value does, and, if its
value is (or reads as) a number and its unit is known, also in base units. Numbers are compared as
doubles: integers past 2**53 may be equal to a neighbour. What is not finite has no facet, so it
never matches.

A predicate has exactly one kind (`predicate_kind`). EXISTS is not asked here but of the name alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite

from tocsin.event.event import Value
from tocsin.event.value import Quantity, Scalar, in_base_units

NUMBER = "n"
TEXT = "s"
FLAG = "b"
BASE_UNITS = "u:"

NUMBER_TEXT_CHARS_MAX = 64

Facet = float | str | bool
FacetKey = tuple[str, str]

_PLAIN_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_FLAGS = {"true": True, "false": False}


def facets(values: Mapping[str, Value]) -> dict[FacetKey, Facet]:
    """Every way in which the named values may be compared."""
    found: dict[FacetKey, Facet] = {}
    for name, value in values.items():
        if isinstance(value, Quantity):
            _add(found, name, value.value, value.unit)
        else:
            _add(found, name, value, None)
    return found


def _add(found: dict[FacetKey, Facet], name: str, value: Scalar, unit: str | None) -> None:
    if isinstance(value, bool):
        found[name, FLAG] = value
        return
    if isinstance(value, str):
        found[name, TEXT] = value
        if value in _FLAGS:
            found[name, FLAG] = _FLAGS[value]
            return
    number = number_of(value)
    if number is None:
        return
    found[name, NUMBER] = number
    if unit is not None and (base := in_base_units(number, unit)) is not None:
        dimension, in_base = base
        found[name, BASE_UNITS + dimension] = in_base


def number_of(value: Scalar) -> float | None:
    """The value as a finite double: a number, or a text that is wholly a plain decimal number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and not is_plain_number(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def is_plain_number(text: str) -> bool:
    """True for a decimal number such as -7, 2.50 or 1e-3, and nothing around it."""
    # The first character settles it for most texts, for a fraction of what the pattern costs.
    if not text or text[0] not in "-0123456789" or len(text) > NUMBER_TEXT_CHARS_MAX:
        return False
    return _PLAIN_NUMBER.fullmatch(text) is not None


def predicate_kind(value: Scalar, unit: str | None) -> str | None:
    """Which facet a predicate with this value and unit asks; None if it can never be true."""
    if isinstance(value, bool):
        return FLAG if unit is None else None
    if isinstance(value, str):
        return TEXT if unit is None else None
    if unit is None:
        return NUMBER
    base = in_base_units(float(0), unit)
    return None if base is None else BASE_UNITS + base[0]
