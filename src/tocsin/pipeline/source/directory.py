"""Directory: the source over an archive's files."""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa

from tocsin.archive.catalog import Catalog, Piece, overlapping
from tocsin.archive.file_names import parse_date
from tocsin.archive.parquet_reader import in_turn, read_selected
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile, NoArchive
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import Extent, Share, gone, holes, share_out

# A file up to this size is decoded into memory to see whether it is whole; a larger one twice.
HELD_BYTES_MAX: Final = 8 << 20
NAME_IT: Final = "Name the archive of a broker, DATA/archive, or the broker's address."
PASSED_OVER: Final = "Or read the other files only: option bad_files=skip."

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedCatalog:
    """What is remembered of an archive from one question to the next."""

    catalog: Catalog
    warned: set[str] = field(default_factory=set)


def directory_of(options: Options) -> str:
    return options.path.removeprefix("file://").removeprefix("file:")


class Directory:
    """An archive on a file system that every executor sees."""

    def __init__(self, options: Options, known: CachedCatalog | None = None) -> None:
        self._options = options
        self._where = directory_of(options)
        self._known = known or CachedCatalog(Catalog(self._where))

    def __getstate__(self) -> Options:
        """What executors get: no list of files, which may be long and is soon out of date."""
        return self._options

    def __setstate__(self, options: Options) -> None:
        Directory.__init__(self, options)

    def extent(self) -> Extent:
        pieces = self.pieces()
        return Extent(pieces[0].first, pieces[-1].last) if pieces else Extent(1, 0)

    def shares(self, after: int, through: int) -> list[Share]:
        within = self.pieces_within(after, through)
        return list(share_out(within, after, through, self._options.rows_per_partition))

    def whole_until(self, after: int, through: int) -> int:
        pieces = self.pieces()
        last = bisect_right(pieces, through, key=lambda piece: piece.last) - 1
        return pieces[last].last if last >= 0 and pieces[last].last > after else through

    def pieces_within(self, after: int, through: int) -> list[Piece]:
        """The files that hold any of (after, through]; a hole in it is raised or logged."""
        pieces = self.pieces()
        start = bisect_right(pieces, after, key=lambda piece: piece.last)
        end = bisect_right(pieces, through, key=lambda piece: piece.first)
        within = pieces[start:end]
        missing = holes(within, after, through)
        if missing and not self._options.skips_holes:
            raise gone(self._where, missing)
        for first, last in missing:
            self._warn_once(f"events {first} to {last} are not in {self._where}: passed over")
        return within

    def batches(self, share: Share, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        def read(piece: Piece, after: int) -> Iterator[pa.RecordBatch]:
            return self._read(piece, wanted, after, share.through)

        def list_again(after: int) -> list[Piece]:
            return self._again(after, share.through)

        return in_turn(share.pieces, share.after, read, list_again)

    def _read(
        self, piece: Piece, wanted: pa.Schema, after: int, through: int
    ) -> Iterator[pa.RecordBatch]:
        """What a file has of it, or nothing if it is bad and that is to be passed over."""
        try:
            yield from self._whole(piece, wanted, after, through)
        except ArchiveFileGone:
            raise
        except BadArchiveFile as error:
            if not self._options.skips_bad_files:
                error.add_note(PASSED_OVER)
                raise
            self._warn_once(f"a file was passed over: {error.path}: {error.reason}")

    def _whole(
        self, piece: Piece, wanted: pa.Schema, after: int, through: int
    ) -> Iterator[pa.RecordBatch]:
        read = partial(
            read_selected,
            piece,
            wanted,
            after=after,
            through=through,
            rows=self._options.rows_per_batch,
            keeps_nulls=self._options.keeps_nulls,
            use_threads=False,  # a task has a core of its own: more threads only cost
        )
        if not self._options.skips_bad_files:
            yield from read()
        # Whole or not at all: half of a damaged file would be taken for all of it.
        elif piece.bytes <= HELD_BYTES_MAX:
            yield from list(read())
        else:
            for _ in read():
                pass
            yield from read()

    def _again(self, after: int, through: int) -> list[Piece]:
        """The files of what is left, after some were merged."""
        pieces = list(overlapping(Catalog(self._where).pieces(), after, through))
        missing = holes(pieces, after, through)
        if missing and not self._options.skips_holes:
            raise gone(self._where, missing)
        return pieces

    def pieces(self) -> list[Piece]:
        # Each time: what was unmounted is no archive that became empty.
        if not os.path.isdir(self._where):
            raise NoArchive(f"there is no directory {self._where}", remedy=NAME_IT)
        pieces = self._known.catalog.pieces()
        if not pieces:
            self._must_be_an_archive()
        for foreign in self._known.catalog.foreign():
            self._warn_once(f"a file was left out: {foreign.path}: {foreign.reason}")
        return pieces

    def _must_be_an_archive(self) -> None:
        """One without events is one. What lies around one, or within, is not."""
        below = os.path.join(self._where, "archive")
        if os.path.isdir(below):
            raise NoArchive(f"{self._where} has no events", remedy=f"Name its archive: {below}.")
        above, name = os.path.split(os.path.abspath(self._where))
        if parse_date(name) is not None:
            raise NoArchive(f"{self._where} is a part of an archive", remedy=f"Name {above}.")

    def _warn_once(self, words: str) -> None:
        """To the log, once."""
        if words not in self._known.warned:
            self._known.warned.add(words)
            _log.warning(words)
