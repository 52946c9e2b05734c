"""Typed attribute values, with a unit and an accuracy where the publisher gave them (paper 002)."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
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


# unit: (dimension, how many of the dimension's base units one of it is)
UNITS: Mapping[str, tuple[str, float]] = {
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "KB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "TB": ("bytes", 1e12),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "TiB": ("bytes", 2.0**40),
    "byte": ("bytes", 1.0),
    "bytes": ("bytes", 1.0),
    "ns": ("seconds", 1e-9),
    "us": ("seconds", 1e-6),
    "ms": ("seconds", 1e-3),
    "s": ("seconds", 1.0),
    "min": ("seconds", 60.0),
    "h": ("seconds", 3600.0),
    "d": ("seconds", 86400.0),
    "nsec": ("seconds", 1e-9),
    "usec": ("seconds", 1e-6),
    "msec": ("seconds", 1e-3),
    "sec": ("seconds", 1.0),  # as paper 002 writes it
    "hour": ("seconds", 3600.0),
    "day": ("seconds", 86400.0),
    "nanoseconds": ("seconds", 1e-9),
    "microseconds": ("seconds", 1e-6),
    "millisecond": ("seconds", 1e-3),
    "milliseconds": ("seconds", 1e-3),
    "second": ("seconds", 1.0),
    "seconds": ("seconds", 1.0),
    "secs": ("seconds", 1.0),
    "minute": ("seconds", 60.0),
    "minutes": ("seconds", 60.0),
    "mins": ("seconds", 60.0),
    "hr": ("seconds", 3600.0),
    "hours": ("seconds", 3600.0),
    "days": ("seconds", 86400.0),
    "Hz": ("hertz", 1.0),
    "kHz": ("hertz", 1e3),
    "MHz": ("hertz", 1e6),
    "GHz": ("hertz", 1e9),
    "1": ("ratio", 1.0),
    "%": ("ratio", 0.01),
    "percent": ("ratio", 0.01),
    "bit/s": ("bits per second", 1.0),
    "kbit/s": ("bits per second", 1e3),
    "Mbit/s": ("bits per second", 1e6),
    "Gbit/s": ("bits per second", 1e9),
    "B/s": ("bits per second", 8.0),
    "J": ("joules", 1.0),
    "W": ("watts", 1.0),
    "degC": ("degrees Celsius", 1.0),
}


def in_base_units(value: float, unit: str) -> tuple[str, float] | None:
    """The dimension, and the value in its base unit; None if unknown or not finite."""
    known = UNITS.get(unit)
    if known is None:
        return None
    dimension, factor = known
    in_base = value * factor
    return (dimension, in_base) if isfinite(in_base) else None
