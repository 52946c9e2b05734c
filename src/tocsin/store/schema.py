"""The tables, and a connection that is set up to read or write them."""

from __future__ import annotations

import apsw
import msgspec

from tocsin.errors import CorruptLog, DataDirectoryUnusable
from tocsin.store.record import LogMarks, seal

APPLICATION_ID = 0x546F6373  # "Tocs"
SCHEMA_VERSION = 4
KEPT_SINCE = 2  # the version that has the table of what services keep
BUSY_WAIT_MS_MAX = 10_000  # somebody looks at the log with another program
PAGE_BYTES = 8192
WAL_BYTES_KEPT_MAX = 64 << 20  # a write-ahead log that grew beyond it is cut back

LOST_KEY = "log/lost"  # among the kept values: events whose loss was accepted

Range = tuple[int, int]  # the first and the last event of it

# WITHOUT ROWID, so that each table is one tree: nothing to disagree with an index.
TABLES = {
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, received_ns INTEGER NOT NULL, "
        "end_bytes INTEGER NOT NULL, crc INTEGER NOT NULL, record BLOB NOT NULL) STRICT"
    ),
    "marks": (
        "CREATE TABLE marks (only INTEGER PRIMARY KEY CHECK (only = 1), "
        "trimmed_to INTEGER NOT NULL, trimmed_bytes INTEGER NOT NULL, "
        "last_seq INTEGER NOT NULL, last_bytes INTEGER NOT NULL, commits INTEGER NOT NULL, "
        "crc INTEGER NOT NULL) STRICT"
    ),
    "subscriptions": (
        "CREATE TABLE subscriptions (id TEXT PRIMARY KEY NOT NULL, definition BLOB NOT NULL, "
        "crc INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    ),
    "cursors": (
        "CREATE TABLE cursors (id TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL, "
        "crc INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    ),
    "dead": (
        "CREATE TABLE dead (id TEXT PRIMARY KEY NOT NULL, record BLOB NOT NULL, "
        "crc INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    ),
    "kept": (
        "CREATE TABLE kept (id TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL, "
        "crc INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    ),
}
# Of the second version: commits were not counted. The first had no table of kept values either.
_TABLES_OF_2 = TABLES | {"marks": TABLES["marks"].replace("commits INTEGER NOT NULL, ", "")}
TABLES_OF = {
    1: {name: text for name, text in _TABLES_OF_2.items() if name != "kept"},
    2: _TABLES_OF_2,
    3: TABLES,  # no record said by which broker its event came
    SCHEMA_VERSION: TABLES,
}
# Small, and a row hidden here by a damaged page would go unnoticed: looked through at every start.
TABLES_CHECKED_AT_START = ("marks", "subscriptions", "cursors", "kept")

SELECT_MARKS = "SELECT * FROM marks"  # fewer columns in an older version
REPLACE_MARKS = "REPLACE INTO marks VALUES (1, ?, ?, ?, ?, ?, ?)"
REPLACE_KEPT = "REPLACE INTO kept VALUES (?, ?, ?)"


def set_up_writer(connection: apsw.Connection, *, alone: bool, synchronous: str) -> None:
    """Make this the one connection that writes, in write-ahead mode.

    `alone`: nobody else will open the file, not even to read.
    """
    connection.set_busy_timeout(BUSY_WAIT_MS_MAX)
    # A failed disk must not be written to on the way out; Store.close does it when all is well.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    run = connection.execute
    if alone:  # then SQLite needs no shared memory, which a VFS in Python does not have
        run("PRAGMA locking_mode=EXCLUSIVE")
    # No memory map: a failing disk would end the process with a signal, not with an error.
    # Fetched, because a statement that gives a row holds up those after it.
    run(f"PRAGMA mmap_size=0; PRAGMA page_size={PAGE_BYTES}; PRAGMA auto_vacuum=NONE").fetchall()
    run("PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY")
    (mode,) = run("PRAGMA journal_mode=WAL").fetchall()[0]
    if mode != "wal":
        raise DataDirectoryUnusable(
            f"{connection.filename} cannot use a write-ahead log (SQLite says {mode!r})",
            remedy="Put the data directory on a local disk.",
        )
    run(f"PRAGMA synchronous={synchronous}; PRAGMA journal_size_limit={WAL_BYTES_KEPT_MAX}")


def connect_reader(path: str, vfs: str | None = None) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
    connection.set_busy_timeout(BUSY_WAIT_MS_MAX)
    settings = "PRAGMA mmap_size=0; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF"
    connection.execute(settings).fetchall()
    return connection


def create_tables(connection: apsw.Connection) -> None:
    """Make the tables if the database is new; whole or not at all."""
    if has_tables(connection):
        return
    run = connection.execute
    run("BEGIN IMMEDIATE")
    for statement in TABLES.values():
        run(statement)
    run(REPLACE_MARKS, LogMarks().row())
    run(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}")
    run("COMMIT")


def has_tables(connection: apsw.Connection) -> bool:
    return bool(connection.pragma("user_version") or _tables(connection))


def upgrade_tables(connection: apsw.Connection, path: str) -> None:
    """Bring tables that `check_tables` knows to our version; whole or not at all."""
    version = connection.pragma("user_version")
    if version == SCHEMA_VERSION:
        return
    run = connection.execute
    marks = read_marks(connection, path)
    run("BEGIN IMMEDIATE")
    run(f"DROP TABLE marks; {TABLES['marks']}")
    run(REPLACE_MARKS, marks.row())
    for name, statement in TABLES.items():
        if name not in TABLES_OF[version]:
            run(statement)
    run(f"PRAGMA user_version={SCHEMA_VERSION}")
    run("COMMIT")


def check_tables(connection: apsw.Connection, path: str) -> None:
    """Raise unless these are our tables, in a version that we know, and as we made them."""
    version = connection.pragma("user_version")
    tables = _tables(connection)
    if connection.pragma("application_id") != APPLICATION_ID:
        raise DataDirectoryUnusable(
            f"{path} is a database that Tocsin did not make",
            remedy="Name another data directory.",
        )
    if version > SCHEMA_VERSION:
        raise DataDirectoryUnusable(
            f"{path} was written by a newer Tocsin (its schema is {version}, ours is "
            f"{SCHEMA_VERSION})",
            remedy="Start that version, or name another data directory.",
        )
    roots = {root for _, root in tables.values()}
    ours = TABLES_OF.get(version, {})
    if not ours or len(roots) != len(ours):
        raise corrupt(path, "the list of its tables is damaged")
    if {name: text for name, (text, _) in tables.items()} != ours:
        raise corrupt(path, "its tables are not as Tocsin made them")


def check_small_tables(connection: apsw.Connection, path: str) -> None:
    for table in TABLES_CHECKED_AT_START:
        ((verdict,), *_) = connection.execute(f"PRAGMA quick_check({table})").fetchall()
        if verdict != "ok":
            raise corrupt(path, f"the table of {table} is damaged ({verdict})")


def read_marks(connection: apsw.Connection, path: str) -> LogMarks:
    rows = connection.execute(SELECT_MARKS).fetchall()
    marks = LogMarks.from_row(rows[0][1:]) if len(rows) == 1 else None
    if marks is None:
        raise corrupt(path, "the record of where the log begins and ends is damaged")
    return marks


def lost_ranges(connection: apsw.Connection) -> list[Range]:
    """The events whose loss was accepted."""
    if connection.pragma("user_version") < KEPT_SINCE:
        return []
    query = "SELECT value, crc FROM kept WHERE id = ?"
    for value, crc in connection.execute(query, (LOST_KEY,)).fetchall():
        if type(value) is bytes and crc == seal(LOST_KEY, value):
            return msgspec.json.decode(value, type=list[Range])
    return []


def corrupt(path: str, problem: str) -> CorruptLog:
    return CorruptLog(
        f"{path}: {problem}",
        remedy="`tocsin doctor` lists what can still be read; else restore a copy.",
    )


def _tables(connection: apsw.Connection) -> dict[object, tuple[object, object]]:
    rows = connection.execute("SELECT name, sql, rootpage FROM sqlite_schema").fetchall()
    return {name: (text, root) for name, text, root in rows}
