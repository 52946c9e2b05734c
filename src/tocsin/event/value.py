"""Typed attribute values, with a unit and an accuracy where the publisher gave them (paper 002)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

Scalar = bool | int | float | str

_QUANTITY_KEYS = frozenset({"value", "unit", "accuracy"})


class Quantity(msgspec.Struct, frozen=True):
    """A value with its unit and how exact it is, both as the publisher wrote them."""

    value: Scalar
    unit: str | None = None
    accuracy: str | None = None

    @classmethod
    def from_mapping(cls, members: Mapping[str, object]) -> Self | None:
        """The quantity that a JSON object writes down, or None if it is another kind of object."""
        if "value" not in members or not _QUANTITY_KEYS.issuperset(members):
            return None
        value, unit, accuracy = (members.get(key) for key in ("value", "unit", "accuracy"))
        if not isinstance(value, (bool, int, float, str)):
            return None
        if not isinstance(unit, str | None) or not isinstance(accuracy, str | None):
            return None
        return cls(value, unit, accuracy)
