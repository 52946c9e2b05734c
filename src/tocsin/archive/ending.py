"""Ending: which event an archive ends with, by which one knows the log that it was filled from."""

from __future__ import annotations

from typing import Final, NamedTuple

from tocsin.archive.catalog import Piece
from tocsin.archive.parquet import read_piece
from tocsin.errors.archive import BadArchiveFile

LOOKED_AT: Final = 10_000  # numbers at the end of a file; the others of it need not be read
COLUMNS: Final = ("seq", "source", "id")


class Ending(NamedTuple):
    """An event, by its number and by what its publisher calls it."""

    seq: int
    source: str
    id: str


def last_event(piece: Piece) -> Ending | None:
    """The last event of a file; None if it cannot be read."""
    return _last_of(piece, max(0, piece.last - LOOKED_AT), piece.last)


def event_at(piece: Piece, seq: int) -> Ending | None:
    """The event with that number; None if it is not there or cannot be read."""
    return _last_of(piece, seq - 1, seq)


def _last_of(piece: Piece, after: int, through: int) -> Ending | None:
    found = None
    try:
        for batch in read_piece(piece, COLUMNS, after=after, through=through):
            found = Ending(*(batch.column(name)[-1].as_py() for name in COLUMNS))
    except BadArchiveFile:
        return None
    return found
