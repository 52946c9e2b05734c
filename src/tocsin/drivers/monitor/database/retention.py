"""Retention: runs that are too old or too many are removed, a bounded number of rows at a time.

The age of a run is counted from its last event. One that is under way stays, however old; of
those there are at most twice as many as runs may be kept. Versions of a workflow go when there are
too many, and when they are old and no run of theirs is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import apsw

from tocsin.drivers.monitor.database.file_index import remove_files
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.event.instant import NS_PER_S

ROWS_AT_ONCE: Final = 5_000  # so that events that come meanwhile wait for some 0.1 s
RUNS_AT_ONCE: Final = 500
UNDER_WAY_FACTOR: Final = 2  # so many times the limit; then the most silent of them go as well
VERSIONS_MAX: Final = 1_000  # of one workflow
VERSIONS_IN_ALL_MAX: Final = 10_000  # each may be as large as an event
CHANGES_IN_ALL_MAX: Final = 100_000
VERSIONS_AT_ONCE: Final = 100

_OVER = "(ended_ns IS NOT NULL OR lost_at_ns < ?)"
_TOO_OLD = f"SELECT no FROM runs WHERE heard_ns < ? AND {_OVER} ORDER BY heard_ns LIMIT ?"
_OVER_FIRST = f"SELECT no FROM runs WHERE {_OVER} ORDER BY heard_ns LIMIT ?"
_FIRST = "SELECT no FROM runs ORDER BY heard_ns LIMIT ?"
_HAS_RUNS = "EXISTS (SELECT 1 FROM runs WHERE runs.workflow = v.workflow)"
_OLD_VERSIONS = (
    f"SELECT workflow, version FROM versions AS v WHERE at_ns < ? AND NOT {_HAS_RUNS} LIMIT ?"
)
_MANY_OF_ONE = (
    "SELECT workflow, version FROM (SELECT workflow, version, row_number() OVER "
    "(PARTITION BY workflow ORDER BY seq DESC) AS place FROM versions) WHERE place > ? LIMIT ?"
)
# Names that nothing ever ran under go first.
_MANY_IN_ALL = f"SELECT workflow, version FROM versions AS v ORDER BY {_HAS_RUNS}, seq LIMIT ?"
_OLD_CHANGES = (
    "DELETE FROM changes WHERE (workflow, version, seq) IN "
    "(SELECT workflow, version, seq FROM changes ORDER BY seq LIMIT ?)"
)
# Of an id that was used again the last use is remembered, so that the next one has its number.
_REMOVE_GENERATION = (
    "DELETE FROM generations WHERE run = (SELECT id FROM runs WHERE no = ?) AND NOT (number > 1 "
    "AND number = (SELECT max(number) FROM generations AS g WHERE g.id = generations.id))"
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


def prune(
    connection: apsw.Connection,
    options: MonitorOptions,
    now_ns: int,
    is_enough: Callable[[], bool] = lambda: False,
) -> int:
    """Remove some of what may go, until it is enough or many rows are gone.

    Returns how many rows went: 0 when there is no more to do.
    """
    before_ns = now_ns - int(options.retain_age_s * NS_PER_S)
    gone = 0
    with in_one(connection):
        for run_no in _superfluous(connection, options.runs_max, before_ns, now_ns):
            gone += _remove_run(connection, run_no, ROWS_AT_ONCE - gone)
            if gone >= ROWS_AT_ONCE or is_enough():
                break
        return gone or _remove_versions(connection, before_ns)


def _superfluous(
    connection: apsw.Connection, runs_max: int, before_ns: int, now_ns: int
) -> list[int]:
    """Some of the runs that are too old or, if there are none, too many."""

    def ask(statement: str, *values: int) -> list[int]:
        return [no for (no,) in connection.execute(statement, values)]

    found = ask(_TOO_OLD, before_ns, now_ns, RUNS_AT_ONCE)
    if found:
        return found
    runs = _count(connection, "runs")
    if runs > runs_max:
        found = ask(_OVER_FIRST, now_ns, min(runs - runs_max, RUNS_AT_ONCE))
    most = runs_max * UNDER_WAY_FACTOR
    if not found and runs > most:
        found = ask(_FIRST, min(runs - most, RUNS_AT_ONCE))
    return found


def _remove_run(connection: apsw.Connection, run_no: int, rows_max: int) -> int:
    """Remove so many rows of a run; the run itself when no others are left."""
    gone = 0
    for table, key in (("attempts", "no"), ("events", "seq")):
        connection.execute(
            f"DELETE FROM {table} WHERE run = ?1 AND {key} IN "
            f"(SELECT {key} FROM {table} WHERE run = ?1 LIMIT ?2)",
            (run_no, rows_max - gone),
        )
        gone += connection.changes()
    gone += remove_files(connection, run_no, max(0, rows_max - gone))
    if gone >= rows_max:
        return gone
    for table in ("tally", "used", "alerts", "run_topics"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run_no,))
    connection.execute(_REMOVE_GENERATION, (run_no,))
    connection.execute("DELETE FROM runs WHERE no = ?", (run_no,))
    return gone + 1


def _remove_versions(connection: apsw.Connection, before_ns: int) -> int:
    def ask(statement: str, *values: int) -> list[Any]:
        return connection.execute(statement, values).fetchall()

    too_many = min(_count(connection, "versions") - VERSIONS_IN_ALL_MAX, VERSIONS_AT_ONCE)
    found = (
        ask(_OLD_VERSIONS, before_ns, VERSIONS_AT_ONCE)
        or ask(_MANY_OF_ONE, VERSIONS_MAX, VERSIONS_AT_ONCE)
        or ask(_MANY_IN_ALL, max(0, too_many))
    )
    for table in ("versions", "changes"):
        connection.executemany(f"DELETE FROM {table} WHERE workflow = ? AND version = ?", found)
    too_many = min(_count(connection, "changes") - CHANGES_IN_ALL_MAX, ROWS_AT_ONCE)
    connection.execute(_OLD_CHANGES, (max(0, too_many),))
    return len(found) + max(0, too_many)


def _count(connection: apsw.Connection, table: str) -> int:
    counted: list[Any] = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(counted[0][0])
