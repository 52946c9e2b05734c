"""AlertQueries: the alerts of a run, and what the alert policy reads, from the tables of runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.drivers.monitor.queries.estimate_queries import EstimateQueries
from tocsin.drivers.monitor.queries.index import RunIndex
from tocsin.event.instant import NS_PER_S
from tocsin.monitor.alerts.policy import AlertPolicy, CompletedRuns, Expectation
from tocsin.monitor.alerts.scanner import RunningAttempt, RunUnderWay
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.views import RunFacts

if TYPE_CHECKING:  # with numpy
    from tocsin.monitor.alerts.limits import PastDuration
    from tocsin.monitor.estimate.inputs import Task

WATCHED_MAX: Final = 5_000  # activities of a run
PAST_MAX: Final = 2_000  # durations of a type that define what is usual, the latest
PAST_RUNS_MAX: Final = 500  # of which the shortest and the largest are looked for

_UNDER_WAY = (
    "SELECT no, id, workflow, started_ns FROM runs WHERE ended_ns IS NULL "
    "AND state = 'running' AND lost_at_ns >= ? AND workflow != '' AND no >= ? ORDER BY no LIMIT ?"
)
_RUNNING = (
    "SELECT activity, attempt, type, version, row FROM attempts WHERE run = ? AND last "
    "AND state = 'running' AND activity > ? ORDER BY activity LIMIT ?"
)
_COUNTS = (
    "SELECT CASE WHEN lost_at_ns < ? THEN 'lost' ELSE state END AS shown, count(*) FROM runs "
    "WHERE ended_ns IS NULL GROUP BY shown"
)


class AlertQueries:
    """Implements `AlertSource` of `monitor.alerts.scanner`."""

    def __init__(self, index: RunIndex, estimates: EstimateQueries) -> None:
        self._index = index
        self._estimates = estimates
        self.policy = AlertPolicy(self)

    def alerts(self, run_id: str, now_ns: int) -> list[dict[str, Any]]:
        """The run, if it takes longer than nearly all before; and activities that do, or did."""
        run_no, facts = self._index.facts(run_id)
        tasks = self._watched(run_no, sum(facts.counts.values()))
        return self.policy.alerts(run_no, facts, tasks, now_ns)

    def _watched(self, run_no: int, known: int) -> Iterator[Task]:
        """Those that run; unless there are too many, those that have succeeded too."""
        states = ("running", "succeeded") if known <= WATCHED_MAX else ("running",)
        for state in states:
            yield from self._index.tasks(run_no, "running", most=WATCHED_MAX, state=state)

    # What the policy reads

    def locked(self) -> AbstractContextManager[object]:
        return self._index.locked()

    def completed(self, workflow: str) -> int:
        ((count,),) = self._index.rows(
            "SELECT count(*) FROM runs WHERE workflow = ? AND state = 'completed'", workflow
        )
        return int(count)

    def completed_runs(self, workflow: str) -> CompletedRuns:
        ((least_ns, most),) = self._index.rows(
            "SELECT min(ended_ns - started_ns), max((SELECT sum(count) FROM tally WHERE run = no)) "
            "FROM (SELECT no, started_ns, ended_ns FROM runs WHERE workflow = ? "
            "AND state = 'completed' ORDER BY ended_ns DESC LIMIT ?) WHERE started_ns < ended_ns",
            workflow,
            PAST_RUNS_MAX,
        )
        return CompletedRuns((least_ns or 0) / NS_PER_S, most or 0)

    def past_durations(self, workflow: str, kind: str) -> list[PastDuration]:
        from tocsin.monitor.alerts.limits import PastDuration

        found = self._index.rows(
            "SELECT r.id, a.duration_s, a.version, a.row FROM attempts AS a "
            "JOIN runs AS r ON r.no = a.run WHERE a.type = ? AND a.ended_ns IS NOT NULL "
            "AND a.state = 'succeeded' AND a.duration_s IS NOT NULL AND r.workflow = ? "
            "AND r.state = 'completed' ORDER BY a.ended_ns DESC LIMIT ?",
            kind,
            workflow,
            PAST_MAX,
        )
        return [
            PastDuration(seconds, run, version, latest(decode_row(row), "input_bytes"))
            for run, seconds, version, row in found
        ]

    def expectation(self, run_no: int, row: Row) -> Expectation:
        return self._estimates.expectation(run_no, row)

    # What the scanner reads

    def counts(self, now_ns: int) -> dict[str, int]:
        return dict(self._index.rows(_COUNTS, now_ns))

    def runs_under_way(self, now_ns: int, first: int, limit: int) -> list[RunUnderWay]:
        return [RunUnderWay(*row) for row in self._index.rows(_UNDER_WAY, now_ns, first, limit)]

    def running(self, run_no: int, after: str, limit: int) -> list[RunningAttempt]:
        return [
            RunningAttempt(activity, attempt, kind, version, partial(decode_row, packed))
            for activity, attempt, kind, version, packed in self._index.rows(
                _RUNNING, run_no, after, limit
            )
        ]

    def reported(self, run_no: int) -> set[tuple[str, int]]:
        statement = "SELECT activity, attempt FROM alerts WHERE run = ?"
        return {(activity, attempt) for activity, attempt in self._index.rows(statement, run_no)}

    def facts(self, run_id: str) -> tuple[int, RunFacts]:
        return self._index.facts(run_id)
