"""Retention: which sealed files an archive need not keep, by age and by size."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Final

from tocsin.archive.catalog import Catalog, Piece, overlapping
from tocsin.archive.file_names import (
    DAMAGED,
    DEADLETTERS,
    DELIVERIES,
    DISCOVERIES,
    parse_date,
    parse_range,
)

# By age goes one date at a time, and the caller lets an hour pass before the next: a clock that is
# years ahead for a moment costs the oldest day, and not everything.
SAMPLES: Final = (DELIVERIES, DEADLETTERS, DISCOVERIES)


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """How much an archive keeps."""

    retain_age_s: float
    retain_bytes: int


def too_much(pieces: list[Piece], bytes_max: int) -> list[Piece]:
    """The oldest ones, that must go for the rest to take `bytes_max`.

    Never the last: its name says where the archive goes on. And never a fresh one.
    """
    excess = sum(each.bytes for each in pieces) - bytes_max
    found: list[Piece] = []
    for piece in pieces[:-1]:
        if excess <= 0 or piece.is_fresh:
            break
        found.append(piece)
        excess -= piece.bytes
    return found


def too_old(pieces: list[Piece], now_s: float, age_s: float) -> list[Piece]:
    """Those of the oldest date that ended longer ago than `age_s`; never the last."""
    dated = [(day, each) for each in pieces[:-1] if (day := day_of(each))]
    past = [(day, each) for day, each in dated if is_past(day, each.path, now_s, age_s)]
    oldest = min((day for day, _ in past), default=None)
    return [each for day, each in past if day == oldest]


def is_past(day: date, path: str, now_s: float, age_s: float) -> bool:
    """Whether a file or directory of that date is old. One that was written lately is not, whatever
    its date: the broker's clock was far behind when the events came."""
    today = datetime.fromtimestamp(now_s, UTC).date()
    age = timedelta(seconds=min(age_s, timedelta.max.total_seconds() / 2))
    return today - day > age and today - _written_on(path) > age


def _written_on(path: str) -> date:
    """When it was last written; never, if it is gone."""
    try:
        return datetime.fromtimestamp(os.stat(path).st_mtime, UTC).date()
    except FileNotFoundError:
        return date.min


def day_of(piece: Piece) -> date | None:
    """The date of a sealed file, from its directory; None of a fresh one."""
    return _day(os.path.dirname(piece.path))


def _day(folder: str) -> date | None:
    text = parse_date(os.path.basename(folder))
    with suppress(ValueError):
        return date.fromisoformat(text) if text else None
    return None


def remove_expired(catalog: Catalog, now_s: float, limits: RetentionLimits, *, by_age: bool) -> int:
    """Remove what need not be kept, oldest first. Returns the bytes that became free."""
    pieces = catalog.pieces()
    going = too_much(pieces, limits.retain_bytes)
    if by_age:
        going += [each for each in too_old(pieces, now_s, limits.retain_age_s) if each not in going]
        for folder in _old_samples(catalog.directory, now_s, limits.retain_age_s):
            shutil.rmtree(folder, ignore_errors=True)
    parts = catalog.superseded()
    for piece in going:
        # What it was merged from goes first: else that would be back in its place.
        for part in overlapping(parts, piece.first - 1, piece.last):
            _remove(part.path)
        _remove(piece.path)
        with suppress(OSError):
            os.rmdir(os.path.dirname(piece.path))  # once it is empty
    if going:
        _forget_damaged(catalog)
    return sum(each.bytes for each in going)


def _forget_damaged(catalog: Catalog) -> None:
    """Remove what was set aside, and would have been let go by now."""
    first = catalog.pieces()[0].first
    folder = os.path.join(catalog.directory, DAMAGED)
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            covered = parse_range(name)
            if covered is not None and covered[1] < first:
                _remove(os.path.join(folder, name))


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _old_samples(directory: str, now_s: float, age_s: float) -> Iterator[str]:
    """Of each kind of sample the oldest date that is too old."""
    for kind in SAMPLES:
        folder = os.path.join(directory, kind)
        with suppress(FileNotFoundError):
            paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
            dated = ((path, day) for path in paths if (day := _day(path)))
            yield from islice((path for path, day in dated if is_past(day, path, now_s, age_s)), 1)
