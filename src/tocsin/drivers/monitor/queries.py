"""Questions about runs and activities, each answered from an index and within a limit."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from tocsin.drivers.monitor.attempt_rows import decode_message, decode_row
from tocsin.drivers.monitor.learned import Tables
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.schema import connect_reader
from tocsin.errors import BadRequest, NoSuchRun
from tocsin.monitor.anomalies import of_attempt
from tocsin.monitor.fold import Row
from tocsin.monitor.generations import named
from tocsin.monitor.history.tables import TablesStatus
from tocsin.monitor.records import (
    ENDED_RUN,
    ActivityRecord,
    Anomaly,
    EventRecord,
    FailureRecord,
    RunRecord,
)
from tocsin.monitor.states import attempt_times, in_run
from tocsin.monitor.times import shown
from tocsin.monitor.views import RunFacts, activity_record, run_record, state_at, whole_run

T = TypeVar("T")

ANOMALIES_MAX: Final = 1_000
FAILURES_MAX: Final = 100
TYPES_SHOWN_MAX: Final = 1_000  # of one run
NAMES_AT_ONCE: Final = 256
STORED_STATES: Final = (
    *("planned", "queued", "held", "running", "retrying"),
    *("succeeded", "failed", "cancelled", "skipped", "cached"),
)

_RUN = "SELECT no, id, row, odd, cycle FROM runs"
_RETRIED = (
    "SELECT count(DISTINCT activity) FROM attempts WHERE run = ? AND fault IS NOT NULL AND NOT last"
)
# That one try of an activity failed like the one before it is no news.
_SEEN = (
    "SELECT count(*) FROM attempts WHERE fault = ? AND ended_ns < ? "
    "AND NOT (run = ? AND activity = ?)"
)

_RECOVERED = (
    "EXISTS (SELECT 1 FROM attempts AS l WHERE l.run = a.run AND l.activity = a.activity "
    "AND l.last AND l.state IN ('succeeded', 'cached', 'skipped'))"
)

Page = tuple[list[T], str | None]


class Questions:
    """A reader of the monitor's tables; threads that ask at the same time take turns."""

    def __init__(
        self, directory: Path, options: MonitorOptions, tables: Tables | None = None
    ) -> None:
        self.options = options
        self._tables = tables
        self._connection = connect_reader(directory)
        self._turn = threading.RLock()

    def close(self) -> None:
        with self._turn:
            self._connection.close()

    def turn(self) -> threading.RLock:
        """Held while several questions are to be answered from the same moment."""
        return self._turn

    def attempts_of(self, run_no: int, names: list[str]) -> dict[str, dict[int, Row]]:
        """The attempts at some activities of a run, by number."""
        return self._attempts(run_no, names)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        with self._turn:
            return self._connection.execute(statement, values).fetchall()

    def standing(self) -> TablesStatus:
        """What there is of the pipeline's tables. May read them: not within a turn."""
        return TablesStatus() if self._tables is None else self._tables.standing()

    # Runs

    def runs(
        self,
        now_ns: int,
        *,
        state: str | None = None,
        workflow: str | None = None,
        engine: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[RunRecord]:
        """The latest first. The second is what to pass as `after` to go on; None at the end."""
        where: list[str] = []
        values: list[Any] = []
        for column, wanted in (("workflow", workflow), ("engine", engine)):
            if wanted is not None:
                where.append(f"{column} = ?")
                values.append(wanted)
        if state == "lost":
            where.append("lost_at_ns < ?")
            values.append(now_ns)
        elif state is not None:
            where.append("state = ? AND (lost_at_ns IS NULL OR lost_at_ns >= ?)")
            values += (state, now_ns)
        if after is not None:
            where.append("(sort_ns, id) < (?, ?)")
            values += _place_of_run(after)
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        with self._turn:
            found = self.rows(
                f"SELECT no, id, row, odd, cycle, sort_ns FROM runs{clause} "
                "ORDER BY sort_ns DESC, id DESC LIMIT ?",
                *values,
                limit + 1,
            )
            some = found[:limit]
            facts = self._facts([each[:5] for each in some])
        records = [run_record(each, now_ns, self.options.silence_s) for each in facts]
        is_end = len(found) <= limit
        return records, None if is_end else f"{some[-1][5]}.{some[-1][1]}"

    def run(self, run_id: str, now_ns: int) -> RunRecord:
        """A run with all that is known of it; NoSuchRun if there is none."""
        with self._turn:
            no, facts = self.facts(run_id)
            odd, types = self._odd_activities(no), self._types(no)
            ((retried,),) = self.rows(_RETRIED, no)
            reused = self._reused(run_id)
        record = run_record(facts, now_ns, self.options.silence_s)
        return replace(whole_run(record, facts, odd, types, retried=retried), reused=reused)

    def _reused(self, run_id: str) -> dict[str, Any] | None:
        """Which of the runs with the same id it is; None if it is the only one."""
        found = self.rows(
            "SELECT g.id, g.number, max(h.number) FROM generations AS g "
            "JOIN generations AS h ON h.id = g.id WHERE g.run = ? GROUP BY g.id, g.number",
            run_id,
        )
        for base, number, of in found:
            if of > 1:
                return {"id": base, "number": number, "of": of, "last": named(base, of)}
        return None

    def facts(self, run_id: str) -> tuple[int, RunFacts]:
        with self._turn:
            found = self.rows(f"{_RUN} WHERE id = ?", run_id)
            if not found:
                raise no_such_run(run_id)
            (facts,) = self._facts(found)
            return found[0][0], facts

    def _facts(self, rows: Sequence[Any]) -> list[RunFacts]:
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

    def _types(self, run_no: int) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for kind, state, count in self.rows(
            "SELECT type, state, count FROM tally WHERE run = ?1 AND count AND type IN "
            "(SELECT DISTINCT type FROM tally WHERE run = ?1 AND count ORDER BY type LIMIT ?2) "
            "ORDER BY type, state",
            run_no,
            TYPES_SHOWN_MAX,
        ):
            found.setdefault(kind, {})[state] = count
        return found

    def _odd_activities(self, run_no: int) -> list[Anomaly]:
        found: list[Anomaly] = []
        for name, row in self.rows(
            "SELECT activity, row FROM attempts WHERE run = ? AND odd ORDER BY activity LIMIT ?",
            run_no,
            ANOMALIES_MAX,
        ):
            decoded = decode_row(row)
            found += of_attempt(decoded, attempt_times(decoded), name)
        return found

    # Activities

    def activities(
        self,
        run_id: str,
        now_ns: int,
        *,
        state: str | None = None,
        kind: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[ActivityRecord]:
        """By name. The second is what to pass as `after` to go on; None at the end."""
        with self._turn:
            run_no, facts = self.facts(run_id)
            run_is = state_at(facts.row, now_ns, self.options.silence_s)
            where, values = ["run = ?", "last"], [run_no]
            if state is not None:
                stored = [each for each in STORED_STATES if in_run(each, run_is) == state]
                where.append(f"state IN ({','.join('?' * len(stored))})")
                values += stored  # type: ignore[arg-type]
            for clause, value in (("type = ?", kind), ("activity > ?", after)):
                if value is not None:
                    where.append(clause)
                    values.append(value)  # type: ignore[arg-type]
            found = self.rows(
                f"SELECT activity, type FROM attempts WHERE {' AND '.join(where)} "
                "ORDER BY activity LIMIT ?",
                *values,
                limit + 1,
            )
            kinds = dict(found[:limit])
            attempts = self._attempts(run_no, list(kinds))
        records = [
            activity_record(run_id, name, attempts[name], run_is, kind=kinds[name])
            for name in kinds
        ]
        return records, records[-1].id if len(found) > limit else None

    def activity(self, run_id: str, name: str, now_ns: int) -> ActivityRecord:
        with self._turn:
            run_no, facts = self.facts(run_id)
            attempts = self._attempts(run_no, [name])
        if not attempts:
            raise NoSuchRun(
                f"the run {run_id[:80]!r} has no activity {name[:80]!r}",
                remedy=f"GET /runs/{run_id[:80]}/activities lists them.",
            )
        run_is = state_at(facts.row, now_ns, self.options.silence_s)
        return activity_record(run_id, name, attempts[name], run_is)

    def _attempts(self, run_no: int, names: list[str]) -> dict[str, dict[int, Row]]:
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

    # Events and failures

    def events(
        self, run_id: str, *, last: int = 100, activity: str | None = None
    ) -> list[EventRecord]:
        """The last events of a run in the order in which they happened."""
        with self._turn:
            run_no, _ = self.facts(run_id)
            where = "run = ?" if activity is None else "run = ? AND activity = ?"
            values = [run_no] if activity is None else [run_no, activity]
            return self._events(where, *values, limit=last)

    def _events(self, where: str, *values: Any, limit: int) -> list[EventRecord]:
        found = self.rows(
            f"SELECT seq, at_ns, received_ns, message FROM events WHERE {where} "
            "ORDER BY at_ns DESC, seq DESC LIMIT ?",
            *values,
            limit,
        )
        return [event_record(*each) for each in reversed(found)]

    def before(self, run_no: int, order_ns: int, seq: int, limit: int) -> list[EventRecord]:
        """The last events before this one, in the order in which they happened."""
        return self._events("run = ? AND (at_ns, seq) < (?, ?)", run_no, order_ns, seq, limit=limit)

    def failures(self, run_id: str, now_ns: int, *, last: int = 10) -> list[FailureRecord]:
        """Attempts that failed, each with the last events before it.

        What failed for good comes first, by the time of its last try; then its tries before; and
        last what a later try recovered from.
        """
        with self._turn:
            run_no, facts = self.facts(run_id)
            run_is = state_at(facts.row, now_ns, self.options.silence_s)
            found = self.rows(
                f"SELECT activity, attempt, type, fault, ended_ns, row, {_RECOVERED} AS recovered "
                "FROM attempts AS a WHERE run = ? AND fault IS NOT NULL "
                "ORDER BY recovered, NOT last, ended_ns LIMIT ?",
                run_no,
                FAILURES_MAX,
            )
            return [self._failure(run_no, run_id, run_is, last, *each) for each in found]

    def _failure(
        self,
        run_no: int,
        run_id: str,
        run_is: str,
        last: int,
        name: str,
        number: int,
        kind: str,
        fault: int,
        ended_ns: int | None,
        row: bytes,
        recovered: int,
    ) -> FailureRecord:
        decoded = decode_row(row)
        record = activity_record(run_id, name, {number: decoded}, run_is, kind=kind)
        ((seen,),) = self.rows(_SEEN, fault, ended_ns or 0, run_no, name)
        _, order_ns, seq, _ = decoded["state"]
        before = tuple(self.before(run_no, order_ns, seq, last))
        return FailureRecord(record, seen, before, bool(recovered))

    def end_of(self, run_id: str, *, last: int) -> list[EventRecord]:
        """What came before a run's end; nothing while it has none."""
        with self._turn:
            run_no, facts = self.facts(run_id)
            cell = facts.row.get("state")
            if cell is None or cell[3] not in ENDED_RUN:
                return []
            return self.before(run_no, cell[1], cell[2], last)


def event_record(seq: int, at_ns: int, received_ns: int, message: bytes) -> EventRecord:
    time, pairs = decode_message(message)
    return EventRecord(seq, time or shown(at_ns), shown(received_ns), pairs)


def no_such_run(run_id: str) -> NoSuchRun:
    return NoSuchRun(
        f"there was no message about a run {run_id[:80]!r}",
        remedy="GET /runs lists those that are known; a new one is known with its first message.",
    )


def _place_of_run(token: str) -> tuple[int, str]:
    number, dot, run_id = token.partition(".")
    if not dot or not number.removeprefix("-").isdigit() or len(number) > 20:
        raise BadRequest(
            f"the query has after={token[:60]}, which is not a page token",
            remedy="Pass `next` of the last response unchanged.",
        )
    return int(number), run_id
