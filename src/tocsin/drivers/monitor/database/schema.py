"""The monitor's tables, and connections to them.

The truth is the log: a row here is what some of its messages add up to, and `place` says up to
which one. Both are written in one transaction, so that none is counted twice and none is missed,
and a commit that a power cut takes away is folded again. That is why `synchronous` is NORMAL.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from tocsin.drivers.monitor.database.file_index import index_all
from tocsin.errors import DataDirectoryUnusable
from tocsin.store.directory import make_private

FILE_NAME: Final = "monitor.db"
APPLICATION_ID: Final = 0x546F634D  # "TocM"
SCHEMA_VERSION: Final = 5
BUSY_WAIT_MS_MAX: Final = 10_000
CACHE_KIB: Final = 65_536  # for the writer; a run of a million activities is far larger
WAL_BYTES_KEPT_MAX: Final = 64 << 20

TABLES: Final = (
    # `row` is the fold of everything; the other columns are read off it, to be searched by.
    "CREATE TABLE runs (no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workflow TEXT NOT NULL, "
    "version TEXT NOT NULL, engine TEXT NOT NULL, state TEXT NOT NULL, sort_ns INTEGER NOT NULL, "
    "started_ns INTEGER, ended_ns INTEGER, lost_at_ns INTEGER, heard_ns INTEGER NOT NULL, "
    "events INTEGER NOT NULL, pins INTEGER NOT NULL, odd INTEGER NOT NULL, cycle TEXT NOT NULL, "
    "row BLOB NOT NULL)",
    "CREATE INDEX runs_by_time ON runs (sort_ns, id)",
    "CREATE INDEX runs_by_workflow ON runs (workflow, sort_ns)",
    "CREATE INDEX runs_by_silence ON runs (heard_ns)",
    "CREATE TABLE attempts (no INTEGER PRIMARY KEY, run INTEGER NOT NULL, activity TEXT NOT NULL, "
    "attempt INTEGER NOT NULL, last INTEGER NOT NULL, state TEXT NOT NULL, type TEXT NOT NULL, "
    "version TEXT NOT NULL, ended_ns INTEGER, duration_s REAL, fault INTEGER, "
    "odd INTEGER NOT NULL, row BLOB NOT NULL)",
    "CREATE UNIQUE INDEX attempts_by_name ON attempts (run, activity, attempt)",
    "CREATE INDEX attempts_by_state ON attempts (run, state, activity) WHERE last",
    "CREATE INDEX attempts_by_type ON attempts (run, type, activity) WHERE last",
    "CREATE INDEX attempts_over_time ON attempts (type, ended_ns) WHERE ended_ns IS NOT NULL",
    "CREATE INDEX attempts_by_fault ON attempts (fault, ended_ns) WHERE fault IS NOT NULL",
    "CREATE INDEX attempts_failed ON attempts (run, ended_ns) WHERE fault IS NOT NULL",
    "CREATE INDEX attempts_odd ON attempts (run, activity) WHERE odd",
    # How many activities are in a state, by their last attempt; and what all attempts have used.
    "CREATE TABLE tally (run INTEGER, type TEXT, state TEXT, count INTEGER NOT NULL, "
    "PRIMARY KEY (run, type, state)) WITHOUT ROWID",
    "CREATE TABLE used (run INTEGER, name TEXT, amount REAL NOT NULL, "
    "PRIMARY KEY (run, name)) WITHOUT ROWID",
    "CREATE TABLE events (run INTEGER, seq INTEGER, at_ns INTEGER NOT NULL, "
    "received_ns INTEGER NOT NULL, activity TEXT NOT NULL, pinned INTEGER NOT NULL, "
    "message BLOB NOT NULL, PRIMARY KEY (run, seq)) WITHOUT ROWID",
    "CREATE INDEX events_in_order ON events (run, at_ns, seq)",
    "CREATE TABLE versions (workflow TEXT, version TEXT, seq INTEGER NOT NULL, "
    "at_ns INTEGER NOT NULL, previous TEXT NOT NULL, message BLOB NOT NULL, "
    "PRIMARY KEY (workflow, version)) WITHOUT ROWID",
    "CREATE TABLE changes (workflow TEXT, version TEXT, seq INTEGER, at_ns INTEGER NOT NULL, "
    "message BLOB NOT NULL, PRIMARY KEY (workflow, version, seq)) WITHOUT ROWID",
    "CREATE TABLE place (only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL, "
    "missed INTEGER NOT NULL)",
    "INSERT INTO place VALUES (1, 0, 0)",
)
# What came with versions 2 to 5: nothing that the log would have to be read again for.
_SECOND: Final = (
    "CREATE INDEX runs_under_way ON runs (state, lost_at_ns) WHERE ended_ns IS NULL",
    "CREATE INDEX runs_completed ON runs (workflow, ended_ns) WHERE state = 'completed'",
    # Alerts that were published; without an activity, the run as a whole.
    "CREATE TABLE alerts (run INTEGER, activity TEXT, attempt INTEGER, "
    "PRIMARY KEY (run, activity, attempt)) WITHOUT ROWID",
    "ALTER TABLE versions ADD COLUMN fork_of TEXT NOT NULL DEFAULT ''",
)
_THIRD: Final = (
    "CREATE INDEX IF NOT EXISTS versions_in_order ON versions (workflow, seq, at_ns)",
    "CREATE INDEX IF NOT EXISTS changes_in_order ON changes (seq)",
)
_FOURTH: Final = (
    # How often an id was used for a run, and when each of those began and ended.
    "CREATE TABLE IF NOT EXISTS generations (id TEXT, number INTEGER, run TEXT NOT NULL, "
    "opened_ns INTEGER, opened_last_ns INTEGER, created_ns INTEGER, started_ns INTEGER, "
    "ended_ns INTEGER, heard_ns INTEGER NOT NULL, PRIMARY KEY (id, number)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS generations_by_run ON generations (run)",
    # `tail` is `base` from its end, so that `*.bam` is found as quickly as `sample*`.
    "CREATE TABLE IF NOT EXISTS paths (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
    "base TEXT NOT NULL, tail TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS paths_by_base ON paths (base)",
    "CREATE INDEX IF NOT EXISTS paths_by_tail ON paths (tail)",
    "CREATE TABLE IF NOT EXISTS files (path INTEGER, wrote INTEGER, run INTEGER, activity TEXT, "
    "PRIMARY KEY (path, wrote, run, activity)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS files_by_run ON files (run)",
)
_FIFTH: Final = (
    # The topics of a run's events. A run without any is from before, and for who may read all.
    "CREATE TABLE IF NOT EXISTS run_topics (run INTEGER, topic TEXT, PRIMARY KEY (run, topic)) "
    "WITHOUT ROWID",
)
# By the version that a database has: what makes it one of this version.
_STEPS: Final = {
    1: (*_SECOND, *_THIRD, *_FOURTH, *_FIFTH),
    2: (*_THIRD, *_FOURTH, *_FIFTH),
    3: (*_FOURTH, *_FIFTH),
    4: _FIFTH,
}
_INDEXED_SINCE: Final = 4  # files are


def connect_writer(directory: Path) -> apsw.Connection:
    """The one connection that writes; the tables are made if there are none."""
    path = str(directory / FILE_NAME)
    make_private(path)
    connection = apsw.Connection(path)
    try:
        _prepare(connection, path)
    except BaseException:
        with suppress(apsw.Error):
            connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: str) -> None:
    connection.set_busy_timeout(BUSY_WAIT_MS_MAX)
    run = connection.execute
    run("PRAGMA page_size=8192; PRAGMA journal_mode=WAL").fetchall()
    run(f"PRAGMA synchronous=NORMAL; PRAGMA cache_size=-{CACHE_KIB}").fetchall()
    run(f"PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit={WAL_BYTES_KEPT_MAX}").fetchall()
    version, application = connection.pragma("user_version"), connection.pragma("application_id")
    if version == 0 and not run("SELECT 1 FROM sqlite_schema").fetchall():
        _make(connection, (*TABLES, *_SECOND, *_THIRD, *_FOURTH, *_FIFTH))
    elif version in _STEPS and application == APPLICATION_ID:
        _make(connection, _STEPS[version], index_all if version < _INDEXED_SINCE else None)
    elif version != SCHEMA_VERSION or application != APPLICATION_ID:
        raise DataDirectoryUnusable(
            f"{path} is not a monitor's database of this version",
            remedy="Move it away: it is rebuilt from what the log still has.",
        )


def _make(
    connection: apsw.Connection,
    statements: tuple[str, ...],
    then: Callable[[apsw.Connection], None] | None = None,
) -> None:
    run = connection.execute
    run("BEGIN IMMEDIATE")
    for statement in statements:
        run(statement)
    if then is not None:
        then(connection)
    run(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}")
    run("COMMIT")


def connect_reader(directory: Path) -> apsw.Connection:
    connection = apsw.Connection(str(directory / FILE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_WAIT_MS_MAX)
    return connection
