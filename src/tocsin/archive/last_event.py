"""LastEvent: which event an archive ends with: it shows from which log the archive was written."""

from __future__ import annotations

from typing import Final, NamedTuple

from tocsin.archive.catalog import Piece
from tocsin.archive.parquet_reader import read_piece
from tocsin.errors.archive import ArchiveFileNotRead, BadArchiveFile

LOOKED_AT: Final = 10_000  # numbers at the end of a file; the others of it need not be read
COLUMNS: Final = ("seq", "source", "id")


class LastEvent(NamedTuple):
    """An event, by its number and by what its publisher calls it."""

    seq: int
    source: str
    id: str


def last_event(piece: Piece) -> LastEvent | None:
    """The last event of a file; None if it cannot be read."""
    found = None
    try:
        for batch in read_piece(piece, COLUMNS, after=max(0, piece.last - LOOKED_AT)):
            found = LastEvent(*(batch.column(name)[-1].as_py() for name in COLUMNS))
    except (BadArchiveFile, ArchiveFileNotRead):
        return None
    return found


def events_at(piece: Piece, seq: int) -> list[LastEvent]:
    """What has that number in a file, which should be one; nothing if it cannot be read."""
    try:
        batches = read_piece(piece, COLUMNS, after=seq - 1, through=seq)
        return [LastEvent(**row) for batch in batches for row in batch.to_pylist()]
    except (BadArchiveFile, ArchiveFileNotRead):
        return []
