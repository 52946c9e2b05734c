"""Files beside the database, read through SQLite's layer: so that a simulated disk has them too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

AS_WAL = apsw.SQLITE_OPEN_WAL
# Not as a write-ahead log, which SQLite does not open without its database.
_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_SUPER_JOURNAL

Read = Callable[[int, int], bytes]  # so many bytes, from an offset on


@contextmanager
def reading(path: str, vfs: str | None) -> Iterator[tuple[Read, int]]:
    """How to read a file that is no database, and its size; empty if there is none."""
    try:
        file = apsw.VFSFile(vfs or "", path, [_READ, 0])
    except apsw.CantOpenError:
        yield (lambda _count, _offset: b""), 0
        return
    size_bytes = file.xFileSize()

    def read(count: int, offset: int) -> bytes:
        left = max(0, min(count, size_bytes - offset))  # SQLite's layer refuses to read less
        return file.xRead(left, offset) if left else b""

    try:
        yield read, size_bytes
    finally:
        file.xClose()


def database_bytes(path: str, vfs: str | None) -> int:
    """The size of a database file; 0 if there is none.

    Not by opening it: to close a file lets go of every lock that this process has on it.
    """
    if vfs is None:
        try:
            return Path(path).stat().st_size
        except OSError:
            return 0
    with reading(path, vfs) as (_, size_bytes):
        return size_bytes
