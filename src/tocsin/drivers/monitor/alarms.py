"""Alarms: which activities and runs under way go slower than usual, and were not told of yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tocsin.drivers.monitor.attempt_rows import decode_row
from tocsin.drivers.monitor.watch import RUNS_NEEDED, Watch
from tocsin.monitor.alerts.messages import Straggler, under_way_s
from tocsin.monitor.fold import latest
from tocsin.monitor.states import attempt_times
from tocsin.monitor.times import seconds_between

if TYPE_CHECKING:
    from tocsin.monitor.alerts.limits import SlowAlert

RUNS_AT_ONCE: Final = 1_000
ACTIVITIES_AT_ONCE: Final = 2_000
PER_RUN_MAX: Final = 100  # a machine on which everything is slow is no news a hundred times over

_UNDER_WAY = (
    "SELECT no, id, workflow, version, started_ns FROM runs WHERE ended_ns IS NULL "
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


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be told, and the row under which it is then remembered."""

    straggler: Straggler
    key: tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class _Run:
    no: int
    id: str
    workflow: str
    version: str
    started_ns: int | None
    completed: int


_Running = tuple[str, int, str, str, bytes]  # as the query has it


class Alarms:
    """A look at what is under way; each goes on where the one before had enough."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._place = (0, "")  # run and activity

    def under_way(self, now_ns: int) -> dict[str, int]:
        """How many runs are in each state that is no end."""
        return dict(self._watch.rows(_COUNTS, now_ns))

    def look(self, now_ns: int, is_enough: Callable[[], bool] = lambda: False) -> list[Found]:
        """Some of what is slower than usual at this time and was not told of."""
        found: list[Found] = []
        first, after = self._place
        runs = self._watch.rows(_UNDER_WAY, now_ns, first, RUNS_AT_ONCE)
        # The first run of all again, unless it is stopped on the way or there are more.
        self._place = (runs[-1][0] + 1, "") if len(runs) == RUNS_AT_ONCE else (0, "")
        completed: dict[str, int] = {}
        left = ACTIVITIES_AT_ONCE
        for no, run_id, workflow, version, started_ns in runs:
            if workflow not in completed:
                completed[workflow] = self._watch.completed(workflow)
            run = _Run(no, run_id, workflow, version, started_ns, completed[workflow])
            if run.completed:
                left -= self._look_at(run, after if no == first else "", left, now_ns, found)
            if left <= 0:
                return found
            if is_enough():
                self._place = (no + 1, "")
                return found
            after = ""
        return found

    def _look_at(self, run: _Run, after: str, most: int, now_ns: int, found: list[Found]) -> int:
        """One run, and at most so many of its activities. Returns how many those were."""
        told = {
            tuple(each)
            for each in self._watch.rows("SELECT activity, attempt FROM alerts WHERE run=?", run.no)
        }
        if ("", 0) not in told:
            found += self._slow_run(run, now_ns)
        room = PER_RUN_MAX - len(told - {("", 0)})
        rows = self._watch.rows(_RUNNING, run.no, after, most) if room > 0 else []
        for row in rows:
            if room > 0 and (row[0], row[1]) not in told:
                slow = self._slow_activity(run, row, now_ns)
                room -= len(slow)
                found += slow if room else map(_last, slow)
        if len(rows) == most:
            self._place = (run.no, rows[-1][0])
        return len(rows)

    def _slow_activity(self, run: _Run, running: _Running, now_ns: int) -> list[Found]:
        from tocsin.monitor.alerts.limits import slower

        name, attempt, kind, version, packed = running
        known = self._watch.usual_for(run.workflow, kind, version, run.completed)
        if known is None:
            return []
        row = decode_row(packed)
        heard_ns = row.get("started_heard", row.get("last_received"))
        took_s = under_way_s(attempt_times(row).started_ns, heard_ns, now_ns)
        alert = None if took_s is None else slower(known, took_s, latest(row, "input_bytes"))
        return [] if alert is None else [_found(run, alert, known.rate, name, kind, attempt)]

    def _slow_run(self, run: _Run, now_ns: int) -> list[Found]:
        watch = self._watch
        if run.completed < RUNS_NEEDED or run.started_ns is None:
            return []
        past = watch.known_runs(run.workflow, run.completed)
        if seconds_between(run.started_ns, now_ns) <= past.shortest_s:
            return []
        # Only now its row, which holds the workflow's files and may be large.
        run_no, facts = watch.facts(run.id)
        alert = watch.slow_run(run_no, facts, run.completed, now_ns)
        return [] if alert is None else [_found(run, alert, _run_rate())]


def _last(found: Found) -> Found:
    why = f"{found.straggler.why} No more alerts for this run: {PER_RUN_MAX} were slower."
    return replace(found, straggler=replace(found.straggler, why=why))


def _run_rate() -> float:
    from tocsin.monitor.alerts.limits import RUN_RATE

    return RUN_RATE


def _found(
    run: _Run, alert: SlowAlert, rate: float, activity: str = "", kind: str = "", attempt: int = 0
) -> Found:
    straggler = Straggler(
        run=run.id,
        workflow=run.workflow,
        activity=activity,
        type=kind,
        attempt=attempt,
        took_s=alert.took_s,
        usual_s=alert.usual_s,
        limit_s=alert.limit_s,
        rate=rate,
        why=alert.why,
    )
    return Found(straggler, (run.no, activity, attempt))
