"""The index of files: which activity of which run reads or writes which, by name."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

import apsw
import msgspec

from tocsin.monitor.file_names import base_of
from tocsin.monitor.fold import Row

_ROLES: Final = (("inputs", 0), ("outputs", 1))
_PUT_PATH: Final = "INSERT OR IGNORE INTO paths VALUES (NULL, ?, ?, ?)"
_PUT_FILE: Final = "INSERT OR IGNORE INTO files SELECT no, ?, ?, ? FROM paths WHERE name = ?"

_decode: Final = msgspec.msgpack.Decoder(dict[str, Any]).decode

FileUse = tuple[str, int, str]
"""A file, whether it is written, and by which activity."""


def new_files(activity: str, before: Row, after: Row) -> Iterable[FileUse]:
    """The files that an attempt names now and did not before."""
    for field, wrote in _ROLES:
        names = after.get(field)
        if names and names != (had := before.get(field)):
            known = set(had or ())
            yield from ((name, wrote, activity) for name in names if name not in known)


def put_files(connection: apsw.Connection, run_no: int, uses: list[FileUse]) -> None:
    """Add them to the index."""
    if not uses:
        return
    bases = ((name, base_of(name)) for name, _, _ in uses)
    connection.executemany(_PUT_PATH, ((name, base, base[::-1]) for name, base in bases))
    rows = ((wrote, run_no, activity, name) for name, wrote, activity in uses)
    connection.executemany(_PUT_FILE, rows)


def index_all(connection: apsw.Connection) -> None:
    """Make the index of what is there: of a database that had none."""
    rows: Any = connection.execute("SELECT run, activity, row FROM attempts").fetchall()
    for run_no, activity, packed in rows:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # a query for it reports that
            put_files(connection, run_no, list(new_files(activity, {}, _decode(packed))))


def remove_files(connection: apsw.Connection, run_no: int, rows_max: int) -> int:
    """Remove so many of a run's; and the names that nobody else has. Returns how many."""
    rows: Any = connection.execute(
        "SELECT path, wrote, activity FROM files WHERE run = ? LIMIT ?", (run_no, rows_max)
    ).fetchall()
    connection.executemany(
        "DELETE FROM files WHERE path = ? AND wrote = ? AND run = ? AND activity = ?",
        [(path, wrote, run_no, activity) for path, wrote, activity in rows],
    )
    connection.executemany(
        "DELETE FROM paths WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM files WHERE path = ?1)",
        [(path,) for path in {row[0] for row in rows}],
    )
    return len(rows)
