"""Sound: whether files of an archive are what their names say, looked at once each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.archive.catalog import Piece
from tocsin.archive.parquet import MERGES_SEEN_MAX, must_be_sound
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile
from tocsin.pipeline.source.directory import PASSED_OVER

FILES_AT_ONCE: Final = 8  # whose ends are looked at, at a time


@dataclass(frozen=True, slots=True)
class File:
    """A file as Spark is to find it, and the events that it covers."""

    first: int
    last: int
    uri: str
    bytes: int
    changed_ms: int


class Sound:
    """Files never change, so what was looked at is remembered for as long as it is listed."""

    def __init__(self) -> None:
        self._seen: dict[Piece, File] = {}

    def files(self, listed: Callable[[], Sequence[Piece]]) -> list[File]:
        """What is listed, each found to be sound by what its end says.

        Spark names a file that it cannot read, but takes any Parquet for ours. `listed` is asked
        again if a file was merged meanwhile. Raises BadArchiveFile, ArchiveFileNotRead.
        """
        merges = 0
        while True:
            pieces = listed()
            try:
                return self._looked_at(pieces)
            except ArchiveFileGone:
                merges += 1
                if merges > MERGES_SEEN_MAX:
                    raise

    def _looked_at(self, pieces: Sequence[Piece]) -> list[File]:
        new = [piece for piece in pieces if piece not in self._seen]
        if len(new) > 1:
            with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
                found = list(pool.map(_look, new))
        else:
            found = [_look(piece) for piece in new]
        self._seen.update(zip(new, found, strict=True))
        if len(self._seen) > 2 * len(pieces) + FILES_AT_ONCE:
            self._seen = {piece: self._seen[piece] for piece in pieces}
        return [self._seen[piece] for piece in pieces]


def _look(piece: Piece) -> File:
    try:
        must_be_sound(piece)
        changed_ms = os.stat(piece.path).st_mtime_ns // 1_000_000
    except FileNotFoundError as error:
        raise ArchiveFileGone(piece.path, "it is no longer there") from error
    except ArchiveFileGone:
        raise
    except BadArchiveFile as error:
        error.add_note(PASSED_OVER)
        raise
    uri = Path(os.path.abspath(piece.path)).as_uri()
    return File(piece.first, piece.last, uri, piece.bytes, changed_ms)
