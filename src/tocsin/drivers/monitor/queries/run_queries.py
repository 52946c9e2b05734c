"""Queries about runs, activities, events and failures, each from an index and within a limit."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict

from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.drivers.monitor.queries.alert_queries import AlertQueries
from tocsin.drivers.monitor.queries.index import (
    MAY_READ,
    Page,
    RunIndex,
    bad_page_token,
    event_record,
)
from tocsin.errors import NoSuchRun
from tocsin.monitor.anomalies import of_attempt
from tocsin.monitor.end_states import ENDED_RUN
from tocsin.monitor.generations import named
from tocsin.monitor.states import attempt_times, in_run
from tocsin.monitor.views import activity_record, run_record, state_at, whole_run
from tocsin.wire.api.run_views import (
    ActivityInfo,
    AnomalyInfo,
    FailureInfo,
    MessageInfo,
    ReusedInfo,
    RunDetails,
    RunInfo,
)

ANOMALIES_MAX: Final = 1_000
FAILURES_MAX: Final = 100
TYPES_SHOWN_MAX: Final = 1_000  # of one run
STORED_STATES: Final = (
    *("planned", "queued", "held", "running", "retrying"),
    *("succeeded", "failed", "cancelled", "skipped", "cached"),
)
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


class RunQueries:
    """What is known of runs, and of what happened in them."""

    def __init__(self, index: RunIndex, alerts: AlertQueries) -> None:
        self._index = index
        self._alerts = alerts

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
    ) -> Page[RunInfo]:
        """The latest first. The second is what to pass as `after` to go on; None at the end."""
        where: list[str] = [] if self._index.is_whole else [MAY_READ]
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
        with self._index.locked():
            found = self._index.rows(
                f"SELECT no, id, row, odd, cycle, sort_ns FROM runs{clause} "
                "ORDER BY sort_ns DESC, id DESC LIMIT ?",
                *values,
                limit + 1,
            )
            some = found[:limit]
            facts = self._index.facts_of([each[:5] for each in some])
        records = [run_record(each, now_ns, self._index.options.silence_s) for each in facts]
        is_end = len(found) <= limit
        return records, None if is_end else f"{some[-1][5]}.{some[-1][1]}"

    def run(self, run_id: str, now_ns: int) -> RunDetails:
        """A run with all that is known of it; under way, with what is slower than usual."""
        with self._index.locked():
            no, facts = self._index.facts(run_id)
            odd, types = self._odd_activities(no), self._types(no)
            ((retried,),) = self._index.rows(_RETRIED, no)
            # Of other runs only who may read all learns anything.
            reused = self._reused(run_id) if self._index.is_whole else None
        record = run_record(facts, now_ns, self._index.options.silence_s)
        is_over = record.state in ENDED_RUN or record.state == "lost" or not self._index.is_whole
        alerts = () if is_over else self._alerts.alerts(run_id, now_ns)
        return whole_run(record, facts, odd, types, retried=retried, reused=reused, alerts=alerts)

    def _reused(self, run_id: str) -> ReusedInfo | None:
        """Which of the runs with the same id it is; None if it is the only one."""
        found = self._index.rows(
            "SELECT g.id, g.number, max(h.number) FROM generations AS g "
            "JOIN generations AS h ON h.id = g.id WHERE g.run = ? GROUP BY g.id, g.number",
            run_id,
        )
        for base, number, of in found:
            if of > 1:
                return ReusedInfo(id=base, number=number, of=of, last=named(base, of))
        return None

    def _types(self, run_no: int) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for kind, state, count in self._index.rows(
            "SELECT type, state, count FROM tally WHERE run = ?1 AND count AND type IN "
            "(SELECT DISTINCT type FROM tally WHERE run = ?1 AND count ORDER BY type LIMIT ?2) "
            "ORDER BY type, state",
            run_no,
            TYPES_SHOWN_MAX,
        ):
            found.setdefault(kind, {})[state] = count
        return found

    def _odd_activities(self, run_no: int) -> list[AnomalyInfo]:
        found: list[AnomalyInfo] = []
        for name, row in self._index.rows(
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
    ) -> Page[ActivityInfo]:
        """By name. The second is what to pass as `after` to go on; None at the end."""
        with self._index.locked():
            run_no, facts = self._index.facts(run_id)
            run_is = state_at(facts.row, now_ns, self._index.options.silence_s)
            where, values = ["run = ?", "last"], [run_no]
            if state is not None:
                stored = [each for each in STORED_STATES if in_run(each, run_is) == state]
                where.append(f"state IN ({','.join('?' * len(stored))})")
                values += stored  # type: ignore[arg-type]
            for clause, value in (("type = ?", kind), ("activity > ?", after)):
                if value is not None:
                    where.append(clause)
                    values.append(value)  # type: ignore[arg-type]
            found = self._index.rows(
                f"SELECT activity, type FROM attempts WHERE {' AND '.join(where)} "
                "ORDER BY activity LIMIT ?",
                *values,
                limit + 1,
            )
            kinds = dict(found[:limit])
            attempts = self._index.attempts(run_no, list(kinds))
        records = [
            activity_record(run_id, name, attempts[name], run_is, kind=kinds[name])
            for name in kinds
        ]
        return records, records[-1].id if len(found) > limit else None

    def activity(self, run_id: str, name: str, now_ns: int) -> ActivityInfo:
        with self._index.locked():
            run_no, facts = self._index.facts(run_id)
            attempts = self._index.attempts(run_no, [name])
        if not attempts:
            raise NoSuchRun(
                f"the run {run_id[:80]!r} has no activity {name[:80]!r}",
                remedy=f"GET /runs/{run_id[:80]}/activities lists them.",
            )
        run_is = state_at(facts.row, now_ns, self._index.options.silence_s)
        return activity_record(run_id, name, attempts[name], run_is)

    # Events and failures

    def events(
        self, run_id: str, *, last: int = 100, activity: str | None = None
    ) -> list[MessageInfo]:
        """The last events of a run in the order in which they happened."""
        with self._index.locked():
            run_no, _ = self._index.facts(run_id)
            where = "run = ?" if activity is None else "run = ? AND activity = ?"
            values = [run_no] if activity is None else [run_no, activity]
            return self._events(where, *values, limit=last)

    def _events(self, where: str, *values: Any, limit: int) -> list[MessageInfo]:
        found = self._index.rows(
            f"SELECT seq, at_ns, received_ns, message FROM events WHERE {where} "
            "ORDER BY at_ns DESC, seq DESC LIMIT ?",
            *values,
            limit,
        )
        return [event_record(*each) for each in reversed(found)]

    def _before(self, run_no: int, order_ns: int, seq: int, limit: int) -> list[MessageInfo]:
        """The last events before this one, in the order in which they happened."""
        return self._events("run = ? AND (at_ns, seq) < (?, ?)", run_no, order_ns, seq, limit=limit)

    def failures(self, run_id: str, now_ns: int, *, last: int = 10) -> list[FailureInfo]:
        """Attempts that failed, each with the last events before it.

        What failed for good comes first, by the time of its last try; then its tries before; and
        last what a later try recovered from.
        """
        with self._index.locked():
            run_no, facts = self._index.facts(run_id)
            run_is = state_at(facts.row, now_ns, self._index.options.silence_s)
            found = self._index.rows(
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
    ) -> FailureInfo:
        decoded = decode_row(row)
        record = activity_record(run_id, name, {number: decoded}, run_is, kind=kind)
        seen = 0
        if self._index.is_whole:
            ((seen,),) = self._index.rows(_SEEN, fault, ended_ns or 0, run_no, name)
        _, order_ns, seq, _ = decoded["state"]
        before = self._before(run_no, order_ns, seq, last)
        return FailureInfo(
            **asdict(record), seen_before=seen, before=before, recovered=bool(recovered)
        )

    def end_of(self, run_id: str, *, last: int) -> list[MessageInfo]:
        """What came before a run's end; nothing while it has none."""
        with self._index.locked():
            run_no, facts = self._index.facts(run_id)
            cell = facts.row.get("state")
            if cell is None or cell[3] not in ENDED_RUN:
                return []
            return self._before(run_no, cell[1], cell[2], last)


def _place_of_run(token: str) -> tuple[int, str]:
    number, dot, run_id = token.partition(".")
    if not dot or not number.removeprefix("-").isdigit() or len(number) > 20:
        raise bad_page_token(token)
    return int(number), run_id
