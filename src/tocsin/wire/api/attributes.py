"""Attributes from JSON: names, and values that a filter can compare."""

from __future__ import annotations

import re
from typing import Final, cast

from tocsin.event.event import Value
from tocsin.event.value import Quantity
from tocsin.wire.api import members

TEXT_CHARS_MAX: Final = 1_024
WHOLE_MAX: Final = 2**63 - 1

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def read_attributes(
    value: object, *, count_max: int, name_chars_max: int, example: str
) -> dict[str, Value]:
    """The object as attributes; none is the empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        members.refuse("attributes", f"is {members.quoted(value)}", f"Give an object: {example}.")
    if len(value) > count_max:
        members.refuse("attributes", f"has {len(value)} members", f"Give up to {count_max}.")
    for name in value:
        if len(name) > name_chars_max or not _NAME.fullmatch(name):
            members.refuse(
                f"attributes.{name[:60]}",
                "is not a valid attribute name",
                "Begin with a letter; go on with letters, digits, underscores, dots and dashes.",
            )
    return {name: _attribute(f"attributes.{name}", each) for name, each in value.items()}


def _attribute(where: str, value: object) -> Value:
    found = Quantity.from_mapping(value) if isinstance(value, dict) else value
    inside = found.value if isinstance(found, Quantity) else found
    if not isinstance(inside, bool | int | float | str):
        members.refuse(
            where,
            f"is {members.quoted(value)}",
            'Give a text, a number, true or false, or {"value": 2, "unit": "GB"}.',
        )
    texts: list[object] = [inside]
    if isinstance(found, Quantity):
        texts += [found.unit, found.accuracy]
    if any(isinstance(text, str) and len(text) > TEXT_CHARS_MAX for text in texts):
        members.refuse(where, "is too long", f"Give up to {TEXT_CHARS_MAX} characters.")
    if isinstance(inside, int) and abs(inside) > WHOLE_MAX:
        members.refuse(where, "is too large a number", f"Stay within +/-{WHOLE_MAX}.")
    return cast(Value, found)
