"""Readings of hosts from CSV files: a header, then a time and a value a line."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from tocsin.errors import BadRunsFile
from tocsin.sim.discovery.hosts import READINGS_A_DAY

READINGS_MAX = 1_000_000


def read_series(paths: Sequence[Path]) -> dict[str, list[float]]:
    """Each file's values, by its name without the suffix."""
    return {path.stem: _values(path) for path in paths}


def _values(path: Path) -> list[float]:
    found: list[float] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                found.append(_value(row.get("value"), f"line {number} of {path}"))
                if len(found) > READINGS_MAX:
                    break
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadRunsFile(
            f"{path} cannot be read: {error}", remedy="Give a CSV file with a column named value."
        ) from None
    if not READINGS_A_DAY <= len(found) <= READINGS_MAX:
        raise BadRunsFile(
            f"{path} has {len(found):,} readings",
            remedy=f"Give {READINGS_A_DAY} (a day of one every five minutes) to {READINGS_MAX:,}.",
        )
    return found


def _value(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise BadRunsFile(
            f"{where} has no number as its value", remedy="Give a column named value, of numbers."
        )
    return value
