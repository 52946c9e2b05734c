"""FileChecks: whether files of an archive are what their names say, each checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.archive.catalog import Piece
from tocsin.archive.parquet_reader import MERGES_SEEN_MAX, check_records
from tocsin.errors.archive import ArchiveFileGone, ArchiveFileNotRead, BadArchiveFile
from tocsin.pipeline.source.directory import PASSED_OVER

FILES_AT_ONCE: Final = 8  # whose ends are looked at, at a time


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is now, and the events that it covers."""

    first: int
    last: int
    path: str
    bytes: int
    changed_ns: int
    inode: int

    @property
    def uri(self) -> str:
        return Path(os.path.abspath(self.path)).as_uri()


class FileChecks:
    """What was found to be undamaged is not looked at again, unless it was written again."""

    def __init__(self) -> None:
        self._seen: dict[str, File] = {}

    def files(self, listed: Callable[[], Sequence[Piece]]) -> list[File]:
        """What is listed, each found to be undamaged by what its end says.

        Spark names a file that it cannot read, but takes any Parquet for ours. `listed` is asked
        again if a file was merged meanwhile. Raises BadArchiveFile, ArchiveFileNotRead.
        """
        merges = 0
        while True:
            # As they are, and not as they were when they were first listed: Spark reads no more of
            # a file than it was given as its length.
            try:
                return self._looked_at([_as_it_is(piece) for piece in listed()])
            except ArchiveFileGone:
                merges += 1
                if merges > MERGES_SEEN_MAX:
                    raise

    def forget_all_but(self, pieces: Sequence[Piece]) -> None:
        """When most of what was seen is no longer there."""
        if len(self._seen) > 2 * len(pieces):
            held = {piece.path for piece in pieces}
            self._seen = {path: file for path, file in self._seen.items() if path in held}

    def _looked_at(self, found: list[File]) -> list[File]:
        new = [file for file in found if self._seen.get(file.path) != file]
        if new:
            with ThreadPoolExecutor(min(FILES_AT_ONCE, len(new))) as pool:
                list(pool.map(_look, new))
            self._seen.update((file.path, file) for file in new)
        return found


def _as_it_is(piece: Piece) -> File:
    try:
        now = os.stat(piece.path)
    except FileNotFoundError as error:
        raise ArchiveFileGone(piece.path, "it is no longer there") from error
    except OSError as error:
        raise ArchiveFileNotRead(piece.path, os.strerror(error.errno or 0)) from error
    return File(piece.first, piece.last, piece.path, now.st_size, now.st_mtime_ns, now.st_ino)


def _look(file: File) -> None:
    try:
        check_records(Piece(file.first, file.last, file.path, is_fresh=False, bytes=file.bytes))
    except ArchiveFileGone:
        raise
    except BadArchiveFile as error:
        error.add_note(PASSED_OVER)
        raise
