"""Forgetting: runs go when they are too old or too many, a bounded number of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import apsw

from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.monitor.times import NS_PER_S

ROWS_AT_ONCE: Final = 20_000  # so that what is heard meanwhile waits for less than a second
VERSIONS_MAX: Final = 1_000  # of one workflow

_TOO_OLD = "SELECT no FROM runs WHERE heard_ns < ? ORDER BY heard_ns LIMIT 1"
_TOO_MANY = "SELECT no FROM runs WHERE (SELECT count(*) FROM runs) > ? ORDER BY heard_ns LIMIT 1"
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
    found = connection.execute(_TOO_OLD, (before_ns,)).fetchall()
    found = found or connection.execute(_TOO_MANY, (options.runs_max,)).fetchall()
    for (run_no,) in found:
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
    for table in ("tally", "used", "attempts", "events"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run_no,))
    connection.execute("DELETE FROM runs WHERE no = ?", (run_no,))
    return gone + 1
