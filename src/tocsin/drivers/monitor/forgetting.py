"""Forgetting: runs go when they are too old or too many, a bounded number of rows at a time.

How old a run is goes by when it was last heard of. One that is under way stays, however old; of
those there are at most twice as many as runs may be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import apsw

from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.monitor.times import NS_PER_S

ROWS_AT_ONCE: Final = 20_000  # so that what is heard meanwhile waits for less than a second
VERSIONS_MAX: Final = 1_000  # of one workflow

_OVER = "(ended_ns IS NOT NULL OR lost_at_ns < ?)"
_TOO_OLD = f"SELECT no FROM runs WHERE heard_ns < ? AND {_OVER} ORDER BY heard_ns LIMIT 1"
_OVER_FIRST = f"SELECT no FROM runs WHERE {_OVER} ORDER BY heard_ns LIMIT 1"
_FIRST = "SELECT no FROM runs ORDER BY heard_ns LIMIT 1"
UNDER_WAY_FACTOR: Final = 2  # so many times the limit; then the most silent of them go as well
_OLD_VERSIONS = (
    "SELECT workflow, version FROM versions AS v WHERE "
    "(SELECT count(*) FROM versions WHERE workflow = v.workflow AND seq > v.seq) >= ? LIMIT 100"
)


@contextmanager
def in_one(connection: apsw.Connection) -> Iterator[None]:
    """One transaction: all that is done in it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def forget(connection: apsw.Connection, options: MonitorOptions, now_ns: int) -> int:
    """Remove some of what may go. Returns how many rows went: 0 when there is no more to do."""
    before_ns = now_ns - int(options.retain_age_s * NS_PER_S)
    found = connection.execute(_TOO_OLD, (before_ns, now_ns)).fetchall()
    for (run_no,) in found or _one_too_many(connection, options.runs_max, now_ns):
        with in_one(connection):
            return _forget_run(connection, run_no)
    versions = connection.execute(_OLD_VERSIONS, (VERSIONS_MAX,)).fetchall()
    if versions:
        with in_one(connection):
            for table in ("versions", "changes"):
                connection.executemany(
                    f"DELETE FROM {table} WHERE workflow = ? AND version = ?", versions
                )
    return len(versions)


def _one_too_many(connection: apsw.Connection, runs_max: int, now_ns: int) -> list[Any]:
    counted: list[Any] = connection.execute("SELECT count(*) FROM runs").fetchall()
    runs: int = counted[0][0]
    if runs <= runs_max:
        return []
    found = connection.execute(_OVER_FIRST, (now_ns,)).fetchall()
    if not found and runs > runs_max * UNDER_WAY_FACTOR:
        found = connection.execute(_FIRST).fetchall()
    return found


def _forget_run(connection: apsw.Connection, run_no: object) -> int:
    gone = 0
    for table, key in (("attempts", "no"), ("events", "seq")):
        connection.execute(
            f"DELETE FROM {table} WHERE run = ?1 AND {key} IN "
            f"(SELECT {key} FROM {table} WHERE run = ?1 LIMIT ?2)",
            (run_no, ROWS_AT_ONCE),
        )
        gone += connection.changes()
    if gone >= ROWS_AT_ONCE:
        return gone
    for table in ("tally", "used", "alerts", "attempts", "events"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run_no,))
    connection.execute("DELETE FROM runs WHERE no = ?", (run_no,))
    return gone + 1
