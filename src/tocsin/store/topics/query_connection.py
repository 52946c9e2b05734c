"""A connection that queries are run on, which can do nothing else.

The statements are our own (`statements.py`). This is the second wall, for the day on which one of
them is not what it should be: the connection reads the tables of a search, calls a few functions,
and is stopped when a statement takes too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import apsw

from tocsin.event.cesql.like import compile_like
from tocsin.store.faults import open_failed
from tocsin.store.schema import connect_reader
from tocsin.store.topics.tables import SEARCHED
from tocsin.topics.queries.predicate_sql import LIKE

STATEMENT_NS_MAX: Final = 1_000_000_000  # a slice of a search takes some 10 ms
CLOCK_LOOKED_AT: Final = 2_000  # instructions of SQLite between two looks: some 20 us

_FUNCTIONS: Final = frozenset({LIKE, "coalesce", "count", "match"})
_LIMITS: Final = {
    apsw.SQLITE_LIMIT_LENGTH: 1 << 20,  # of a value: no advertisement has a larger one
    apsw.SQLITE_LIMIT_SQL_LENGTH: 32 << 10,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 2,
    apsw.SQLITE_LIMIT_VDBE_OP: 25_000,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 8,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 64,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
}

_compiled: Final = lru_cache(maxsize=256)(compile_like)


def connect_for_queries(path: str, stopwatch_ns: Callable[[], int]) -> QueryConnection:
    """To the catalog at this path, read-only."""
    try:
        connection = connect_reader(path)
        connection.execute("PRAGMA query_only=ON").fetchall()
    except apsw.Error as error:
        raise open_failed(path, error) from error
    return QueryConnection(connection, stopwatch_ns)


class QueryConnection:
    """Statements for a search, each of which takes a second at most."""

    def __init__(
        self,
        connection: apsw.Connection,
        stopwatch_ns: Callable[[], int],
        *,
        is_shared: bool = False,
    ) -> None:
        """`is_shared`: the writer's own, as on a simulated disk; it keeps its freedom."""
        self._connection = connection
        self._stopwatch_ns = stopwatch_ns
        self._until_ns = 0
        connection.create_scalar_function(LIKE, _is_like, 2, deterministic=True)
        if is_shared:
            return
        for limit, value in _LIMITS.items():
            connection.limit(limit, value)
        connection.set_progress_handler(self._is_over, CLOCK_LOOKED_AT)
        connection.set_authorizer(_authorize)

    def rows(
        self, statement: str, parameters: Sequence[str | float | int | bytes]
    ) -> list[tuple[object, ...]]:
        """apsw.InterruptError if it takes too long."""
        self._until_ns = self._stopwatch_ns() + STATEMENT_NS_MAX
        return self._connection.execute(statement, parameters).fetchall()

    def close(self) -> None:
        self._connection.close()

    def _is_over(self) -> bool:
        return self._stopwatch_ns() > self._until_ns


def _authorize(
    operation: int, first: str | None, second: str | None, _database: str | None, _by: str | None
) -> int:
    match operation:
        case apsw.SQLITE_SELECT:
            return apsw.SQLITE_OK
        case apsw.SQLITE_READ if first in SEARCHED:
            return apsw.SQLITE_OK
        case apsw.SQLITE_FUNCTION if second in _FUNCTIONS:
            return apsw.SQLITE_OK
        case apsw.SQLITE_PRAGMA if first == "data_version" and second is None:
            return apsw.SQLITE_OK  # FTS5 asks whether somebody has written
    return apsw.SQLITE_DENY


def _is_like(*given: object) -> int | None:
    pattern, text = given
    if not isinstance(pattern, str) or not isinstance(text, str):
        return None
    return int(_compiled(pattern)(text))
