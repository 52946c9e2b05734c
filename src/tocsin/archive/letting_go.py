"""Letting go: which sealed files an archive need not keep, by age and by size."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.naming import DEADLETTERS, DELIVERIES, DISCOVERIES, parse_date

# By age goes one date at a time, and the caller lets an hour pass before the next: a clock that is
# years ahead for a moment costs the oldest day, and not everything.
SAMPLES: Final = (DELIVERIES, DEADLETTERS, DISCOVERIES)


@dataclass(frozen=True, slots=True)
class KeepLimits:
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
    """Those of the oldest date, if that ended longer ago than `age_s`; never the last."""
    today = datetime.fromtimestamp(now_s, UTC).date()
    oldest = min((day for each in pieces[:-1] if (day := day_of(each))), default=None)
    if oldest is None or not is_past(oldest, today, age_s):
        return []
    return [each for each in pieces[:-1] if day_of(each) == oldest]


def is_past(day: date, today: date, age_s: float) -> bool:
    return today - day > timedelta(seconds=min(age_s, timedelta.max.total_seconds() / 2))


def day_of(piece: Piece) -> date | None:
    """The date of a sealed file, from its directory; None of a fresh one."""
    text = parse_date(os.path.basename(os.path.dirname(piece.path)))
    with suppress(ValueError):
        return date.fromisoformat(text) if text else None
    return None


def let_go(catalog: Catalog, now_s: float, limits: KeepLimits, *, by_age: bool) -> int:
    """Remove what need not be kept, oldest first. Returns the bytes that became free."""
    pieces = catalog.pieces()
    going = too_much(pieces, limits.retain_bytes)
    if by_age:
        going += [each for each in too_old(pieces, now_s, limits.retain_age_s) if each not in going]
        for folder in _old_samples(catalog.directory, now_s, limits.retain_age_s):
            shutil.rmtree(folder, ignore_errors=True)
    for piece in going:
        with suppress(FileNotFoundError):
            os.unlink(piece.path)
        with suppress(OSError):
            os.rmdir(os.path.dirname(piece.path))  # once it is empty
    return sum(each.bytes for each in going)


def _old_samples(directory: str, now_s: float, age_s: float) -> Iterator[str]:
    """Of each kind of sample the oldest date, if that is too old."""
    today = datetime.fromtimestamp(now_s, UTC).date()
    for kind in SAMPLES:
        folder = os.path.join(directory, kind)
        with suppress(FileNotFoundError, ValueError):
            oldest = min(filter(parse_date, os.listdir(folder)), default=None)
            text = parse_date(oldest) if oldest else None
            if oldest and text and is_past(date.fromisoformat(text), today, age_s):
                yield os.path.join(folder, oldest)
