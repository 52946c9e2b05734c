"""The tables, and a connection that is set up to read or write them."""

from __future__ import annotations

import apsw

from tocsin.errors import CorruptLog, DataDirectoryUnusable
from tocsin.store.record import LogMarks

APPLICATION_ID = 0x546F6373  # "Tocs"
SCHEMA_VERSION = 2
KEPT_SINCE = 2  # the version that has the table of what services keep
BUSY_WAIT_MS_MAX = 10_000  # somebody looks at the log with another program
PAGE_BYTES = 8192
WAL_BYTES_KEPT_MAX = 64 << 20  # a write-ahead log that grew beyond it is cut back

# WITHOUT ROWID, so that each table is one tree: nothing to disagree with an index.
TABLES = {
    "events": (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, received_ns INTEGER NOT NULL, "
        "end_bytes INTEGER NOT NULL, crc INTEGER NOT NULL, record BLOB NOT NULL) STRICT"
    ),
    "marks": (
        "CREATE TABLE marks (only INTEGER PRIMARY KEY CHECK (only = 1), "
        "trimmed_to INTEGER NOT NULL, trimmed_bytes INTEGER NOT NULL, "
        "last_seq INTEGER NOT NULL, last_bytes INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT"
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
TABLES_OF = {
    1: {name: text for name, text in TABLES.items() if name != "kept"},
    SCHEMA_VERSION: TABLES,
}
# Small, and a row hidden here by a damaged page would go unnoticed: looked through at every start.
TABLES_CHECKED_AT_START = ("marks", "subscriptions", "cursors", "kept")

SELECT_MARKS = "SELECT trimmed_to, trimmed_bytes, last_seq, last_bytes, crc FROM marks"
REPLACE_MARKS = "REPLACE INTO marks VALUES (1, ?, ?, ?, ?, ?)"


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


def connect_reader(path: str) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_WAIT_MS_MAX)
    settings = "PRAGMA mmap_size=0; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF"
    connection.execute(settings).fetchall()
    return connection


def create_tables(connection: apsw.Connection) -> None:
    """Make the tables if the database is new; whole or not at all."""
    if connection.pragma("user_version") or _tables(connection):
        return
    run = connection.execute
    run("BEGIN IMMEDIATE")
    for statement in TABLES.values():
        run(statement)
    run(REPLACE_MARKS, LogMarks().row())
    run(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}")
    run("COMMIT")


def upgrade_tables(connection: apsw.Connection) -> None:
    """Bring tables that `check_tables` knows to our version; whole or not at all."""
    version = connection.pragma("user_version")
    if version == SCHEMA_VERSION:
        return
    run = connection.execute
    run("BEGIN IMMEDIATE")
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
    marks = LogMarks.from_row(rows[0]) if len(rows) == 1 else None
    if marks is None:
        raise corrupt(path, "the record of where the log begins and ends is damaged")
    return marks


def corrupt(path: str, problem: str) -> CorruptLog:
    return CorruptLog(
        f"{path}: {problem}",
        remedy="`tocsin doctor` lists what can still be read; else restore a copy.",
    )


def _tables(connection: apsw.Connection) -> dict[object, tuple[object, object]]:
    rows = connection.execute("SELECT name, sql, rootpage FROM sqlite_schema").fetchall()
    return {name: (text, root) for name, text, root in rows}
