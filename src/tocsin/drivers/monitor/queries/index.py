"""RunIndex: the monitor's tables as its queries read them.

Threads that ask at the same time share one connection and take turns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from tocsin.access.decision import Readable
from tocsin.drivers.monitor.database.attempt_rows import decode_message, decode_row
from tocsin.drivers.monitor.database.run_topics import NO_TOPIC
from tocsin.drivers.monitor.database.schema import connect_reader
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.errors import BadRequest, NoSuchRun
from tocsin.event.instant import rfc3339
from tocsin.monitor.fold import Row
from tocsin.monitor.views import RunFacts
from tocsin.wire.api.run_views import MessageInfo

if TYPE_CHECKING:  # with numpy: imported by whoever is first asked for an estimate
    from tocsin.monitor.estimate.inputs import Task

T = TypeVar("T")
Page = tuple[list[T], str | None]
"""Some records, and what to pass as `after` to go on; None at the end."""

NAMES_AT_ONCE: Final = 256
TASKS_MAX: Final = 20_000  # of a run whose time left is worked out task by task

MAY_READ: Final = (
    "may_read(runs.id, (SELECT json_group_array(topic) FROM run_topics WHERE run = runs.no))"
)
_RUN = "SELECT no, id, row, odd, cycle FROM runs"


class RunIndex:
    """A reader of the tables of runs."""

    def __init__(self, directory: Path, options: MonitorOptions) -> None:
        self.options = options
        self._connection = connect_reader(directory)
        self._connection.create_scalar_function("may_read", self._may_read, 2)
        self._lock = threading.RLock()
        self._readable: Readable | None = None  # of whoever asks just now
        self._readable_topics: dict[tuple[str, str], bool] = {}

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def locked(self) -> threading.RLock:
        """Held by a query of several statements, so that others do not come between them."""
        return self._lock

    def rows(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def reading(self, readable: Readable | None) -> Iterator[None]:
        """Meanwhile only what may be read is there: MAY_READ holds for the runs of which every
        event may be read, and the others are not found. None for everything."""
        with self._lock:
            self._readable = readable
            self._readable_topics.clear()
            try:
                yield
            finally:
                self._readable = None

    @property
    def is_whole(self) -> bool:
        """False while somebody reads who may not read every run."""
        return self._readable is None

    def _may_read(self, *asked: Any) -> bool:
        """Called by SQLite."""
        readable, known = self._readable, self._readable_topics
        if readable is None:
            return True
        run_id, topics = key = asked
        if key not in known:
            on = frozenset(msgspec.json.decode(topics, type=list[str]))
            known[key] = readable.has_all_on(f"run/{run_id}", on - {NO_TOPIC})
            if NO_TOPIC in on:  # it is on more than were kept
                known[key] = readable.has_all_on(f"run/{run_id}", frozenset())
        return known[key]

    def facts(self, run_id: str) -> tuple[int, RunFacts]:
        """The row number of a run and what is known of it; NoSuchRun."""
        with self._lock:
            found = self.rows(f"{_RUN} WHERE id = ? AND {MAY_READ}", run_id)
            if not found:
                raise no_such_run(run_id)
            (facts,) = self.facts_of(found)
            return found[0][0], facts

    def facts_of(self, rows: Sequence[Any]) -> list[RunFacts]:
        facts: list[RunFacts] = []
        for no, run_id, row, odd, cycle in rows:
            counts = self.rows(
                "SELECT state, sum(count) FROM tally WHERE run = ? GROUP BY state", no
            )
            used = self.rows("SELECT name, amount FROM used WHERE run = ?", no)
            facts.append(
                RunFacts(
                    run_id,
                    decode_row(row),
                    {state: count for state, count in counts if count},
                    {name: round(amount, 6) for name, amount in used},
                    odd,
                    tuple(msgspec.json.decode(cycle)) if cycle else (),
                )
            )
        return facts

    def attempts(self, run_no: int, names: list[str]) -> dict[str, dict[int, Row]]:
        found: dict[str, dict[int, Row]] = {}
        for start in range(0, len(names), NAMES_AT_ONCE):
            some = names[start : start + NAMES_AT_ONCE]
            for name, number, row in self.rows(
                "SELECT activity, attempt, row FROM attempts WHERE run = ? AND activity IN "
                f"({','.join('?' * len(some))})",
                run_no,
                *some,
            ):
                found.setdefault(name, {})[number] = decode_row(row)
        return found

    def tasks(
        self, run_no: int, run_is: str, most: int = TASKS_MAX, *, state: str | None = None
    ) -> list[Task]:
        """The activities of a run in the order in which they came, or those in a state."""
        from tocsin.monitor.estimate.inputs import task_of

        where, values = ("", ()) if state is None else (" AND state = ?", (state,))
        found = self.rows(
            "SELECT activity, type, version, row, attempt FROM attempts "
            f"WHERE run = ? AND last{where} ORDER BY no LIMIT ?",
            run_no,
            *values,
            most,
        )
        # What a task waits for is reported once, by its plan or its first attempt.
        before = self.attempts(run_no, [name for name, *_, number in found if number > 1])
        return [
            task_of(name, kind, version, decode_row(row), run_is, before.get(name, {}))
            for name, kind, version, row, _ in found
        ]


def event_record(seq: int, at_ns: int, received_ns: int, message: bytes) -> MessageInfo:
    time, pairs = decode_message(message)
    return MessageInfo(
        seq=seq, time=time or rfc3339(at_ns), received=rfc3339(received_ns), pairs=pairs
    )


def no_such_run(run_id: str) -> NoSuchRun:
    return NoSuchRun(
        f"there was no message about a run {run_id[:80]!r}",
        remedy="GET /runs lists those that are known; a new one is known with its first message.",
    )


def bad_page_token(token: str) -> BadRequest:
    return BadRequest(
        f"the query has after={token[:60]}, which is not a page token",
        remedy="Pass `next` of the last response unchanged.",
    )
