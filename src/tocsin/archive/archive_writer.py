"""Filling: events become fresh files, fresh files become sealed ones.

Each step is one rename. Where the next one begins is read from the names of the files, so that a
crash between any two of them neither loses an event nor has it twice: a fresh file whose events a
sealed one holds as well counts for nothing, and goes later.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from tocsin.archive.catalog import GRACE_S, Catalog, Piece
from tocsin.archive.file_names import DAMAGED, FRESH, date_of, format_date, format_range
from tocsin.archive.parquet_reader import (
    COUNT_KEY,
    DATE_KEY,
    FIRST_KEY,
    LAST_KEY,
    Footer,
    read_footer,
    read_piece,
)
from tocsin.archive.parquet_writer import make_folder, sweep_unfinished, write_file
from tocsin.archive.record import SCHEMA
from tocsin.errors.archive import ArchiveFileNotRead, BadArchiveFile


@dataclass(frozen=True, slots=True)
class SealLimits:
    """When fresh files make up a sealed one."""

    seal_bytes: int = 128 << 20
    seal_age_s: float = 3_600.0


class Waiting(NamedTuple):
    """Fresh files that cannot be sealed."""

    damaged: list[Piece]
    unread: list[Piece]
    """What the machine does not read. They may be undamaged, and are tried again."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Events that go into one fresh file: `first` through `last`, all of one date."""

    first: int
    last: int
    date: str
    batches: tuple[pa.RecordBatch, ...]

    @property
    def count(self) -> int:
        return sum(each.num_rows for each in self.batches)


def segments(batches: Sequence[pa.RecordBatch], first: int, last: int) -> Iterator[Segment]:
    """The events of `first` through `last`, cut where the date changes.

    Numbers that no row has belong to the segment before them.
    """
    runs = [run for batch in batches for run in _runs_of_one_date(batch)]
    grouped = [
        (date, [part for _, part in parts]) for date, parts in groupby(runs, key=lambda run: run[0])
    ]
    for place, (date, parts) in enumerate(grouped):
        following = grouped[place + 1][1][0] if place + 1 < len(grouped) else None
        end = last if following is None else following.column("seq")[0].as_py() - 1
        yield Segment(first, end, date, tuple(parts))
        first = end + 1


def _runs_of_one_date(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    received_us = batch.column("received").cast(pa.int64()).to_numpy()
    if not len(received_us):
        return
    if date_of(int(received_us.min())) == date_of(int(received_us.max())):
        yield date_of(int(received_us[0])), batch
        return
    start = 0
    for date, places in groupby(range(len(received_us)), lambda i: date_of(int(received_us[i]))):
        count = sum(1 for _ in places)
        yield date, batch.slice(start, count)
        start += count


class ArchiveWriter:
    """Writes one archive. Whoever has one holds the archive's lock."""

    def __init__(self, directory: str, limits: SealLimits) -> None:
        self.directory = directory
        self.catalog = Catalog(directory)
        self._limits = limits
        self._footers: dict[str, Footer] = {}

    def tidy(self) -> None:
        """Remove what a former writer left unfinished."""
        make_folder(os.path.join(self.directory, FRESH))
        self.catalog.pieces()
        for name in (FRESH, *map(format_date, self.catalog.dates())):
            sweep_unfinished(os.path.join(self.directory, name))

    def write_fresh(self, segment: Segment) -> None:
        """Add a fresh file. OSError if the disk does not take it."""
        write_file(
            os.path.join(self.directory, FRESH),
            format_range(segment.first, segment.last),
            SCHEMA,
            segment.batches,
            _described(segment.first, segment.last, segment.count, segment.date),
        )

    def replaced(self, damaged: Piece, written: Sequence[tuple[int, int]]) -> None:
        """A damaged fresh file gives way to those that were written for its events.

        One that covers the same events took its place as it was written. Else, and not before
        they are on disk, it is set aside: until then it says by its name what is to be written.
        """
        if (damaged.first, damaged.last) not in written:
            folder = os.path.join(self.directory, DAMAGED)
            make_folder(folder)
            with suppress(FileNotFoundError):
                os.replace(damaged.path, os.path.join(folder, os.path.basename(damaged.path)))
        self._footers.pop(damaged.path, None)
        self.catalog.look_again()

    # Sealing

    def seal_due(self, now_s: float) -> Waiting:
        """Seal what is due. For a file that is damaged the others wait; around one that the machine
        does not read, they are sealed."""
        fresh, waiting = self._readable_fresh()
        if waiting.damaged:
            return waiting
        groups = list(self._groups(fresh))
        for place, group in enumerate(groups):
            is_closed = place + 1 < len(groups)
            if is_closed or self._is_due(group, now_s):
                self._seal(group, waiting)
        return waiting

    def _readable_fresh(self) -> tuple[list[tuple[Piece, Footer]], Waiting]:
        readable: list[tuple[Piece, Footer]] = []
        waiting = Waiting([], [])
        fresh = [each for each in self.catalog.pieces() if each.is_fresh]
        self._footers = {
            each.path: self._footers[each.path] for each in fresh if each.path in self._footers
        }
        for piece in fresh:
            try:
                if piece.path not in self._footers:
                    self._footers[piece.path] = read_footer(piece)
                readable.append((piece, self._footers[piece.path]))
            except BadArchiveFile:
                waiting.damaged.append(piece)
            except ArchiveFileNotRead:
                waiting.unread.append(piece)
        return readable, waiting

    def _groups(self, fresh: list[tuple[Piece, Footer]]) -> Iterator[list[tuple[Piece, Footer]]]:
        """What goes into one sealed file each: of one date, without a gap, and large enough."""
        group: list[tuple[Piece, Footer]] = []
        size = 0
        for piece, footer in fresh:
            goes_on = group and footer.date == group[-1][1].date
            if group and not (goes_on and size < self._limits.seal_bytes and _adjoin(group, piece)):
                yield group
                group, size = [], 0
            group.append((piece, footer))
            size += piece.bytes
        if group:
            yield group

    def _is_due(self, group: list[tuple[Piece, Footer]], now_s: float) -> bool:
        if sum(piece.bytes for piece, _ in group) >= self._limits.seal_bytes:
            return True
        try:
            age_s = now_s - os.stat(group[0][0].path).st_mtime
        except FileNotFoundError:
            return False
        # From the future, too: then the clock was set back, and its word is worth nothing.
        return abs(age_s) >= self._limits.seal_age_s

    def _seal(self, group: list[tuple[Piece, Footer]], waiting: Waiting) -> None:
        """Merge them. If one turns out not to be readable, it is added to those that wait, and none
        is merged."""
        first, last = group[0][0].first, group[-1][0].last
        date, count = group[0][1].date, sum(footer.count for _, footer in group)
        reading: list[Piece] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for piece, _ in group:
                reading.append(piece)
                yield from read_piece(piece)

        try:
            write_file(
                os.path.join(self.directory, format_date(date)),
                format_range(first, last),
                SCHEMA,
                batches(),
                _described(first, last, count, date),
            )
        except BadArchiveFile:
            waiting.damaged.append(reading[-1])
        except ArchiveFileNotRead:
            waiting.unread.append(reading[-1])

    def remove_superseded(self, now_s: float) -> None:
        """Remove fresh files that were merged long enough ago."""
        pieces = self.catalog.pieces()
        for piece in self.catalog.superseded():
            holder = pieces[bisect_right(pieces, piece.first, key=lambda each: each.first) - 1]
            if holder.is_fresh:
                continue  # it may turn out to be damaged when it is merged
            with suppress(FileNotFoundError):
                if abs(now_s - os.stat(holder.path).st_mtime) >= GRACE_S:
                    os.unlink(piece.path)


def _adjoin(group: list[tuple[Piece, Footer]], piece: Piece) -> bool:
    return group[-1][0].last + 1 == piece.first


def _described(first: int, last: int, count: int, date: str) -> dict[bytes, bytes]:
    return {
        FIRST_KEY: b"%d" % first,
        LAST_KEY: b"%d" % last,
        COUNT_KEY: b"%d" % count,
        DATE_KEY: date.encode(),
    }
