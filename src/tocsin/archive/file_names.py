"""Naming: a file of the archive is named by the first and the last sequence number it covers.

    ARCHIVE/date=2026-11-16/00000000000000000001-00000000000000050000.parquet    sealed
    ARCHIVE/_fresh/00000000000000050001-00000000000000050020.parquet             fresh

Readers that know nothing of Tocsin skip names that begin with `_` or `.`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

FRESH: Final = "_fresh"
DAMAGED: Final = "_damaged"  # fresh files that cannot be read, nor all be taken from the log again
DELIVERIES: Final = "_deliveries"
DEADLETTERS: Final = "_deadletters"
DISCOVERIES: Final = "_discoveries"
SUFFIX: Final = ".parquet"
UNFINISHED: Final = "."  # how the name of a file begins that is being written
LOCK_NAME: Final = ".lock"

SEQ_DIGITS: Final = 20  # of any 64-bit number: the order of names is the order of numbers
US_PER_S: Final = 1_000_000

_RANGE: Final = re.compile(r"(\d{20})-(\d{20})\.parquet", re.ASCII)
_DATE: Final = re.compile(r"date=(\d{4}-\d{2}-\d{2})", re.ASCII)


def format_range(first: int, last: int) -> str:
    """The file name of events `first` through `last`."""
    assert 0 < first <= last
    return f"{first:0{SEQ_DIGITS}d}-{last:0{SEQ_DIGITS}d}{SUFFIX}"


def parse_range(name: str) -> tuple[int, int] | None:
    """The first and the last sequence number of a file name; None if it is none of ours."""
    found = _RANGE.fullmatch(name)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2])
    return (first, last) if 0 < first <= last else None


def date_of(received_us: int) -> str:
    """The date, in UTC, of a moment in microseconds since 1970."""
    return datetime.fromtimestamp(received_us // US_PER_S, UTC).strftime("%Y-%m-%d")


def format_date(date: str) -> str:
    """The directory of a date."""
    return f"date={date}"


def parse_date(name: str) -> str | None:
    """The date of a directory's name; None if it is none of ours."""
    found = _DATE.fullmatch(name)
    return found[1] if found else None
