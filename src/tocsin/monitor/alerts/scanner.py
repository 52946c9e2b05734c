"""AlertScanner: goes through the runs under way and finds what is slower than usual.

A scan is bounded; the next one goes on where it stopped. What was reported before is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from tocsin.event.instant import seconds_between
from tocsin.monitor.alerts.messages import Straggler, under_way_s
from tocsin.monitor.alerts.policy import AlertPolicy, RunHistory, slow_activity
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.states import attempt_times
from tocsin.monitor.views import RunFacts

if TYPE_CHECKING:
    from tocsin.monitor.alerts.limits import SlowAlert

RUNS_AT_ONCE: Final = 1_000
ACTIVITIES_AT_ONCE: Final = 2_000
PER_RUN_MAX: Final = 100  # a machine on which everything is slow is no news a hundred times over

AlertKey = tuple[int, str, int]
"""A run by its number, an activity and an attempt; `("", 0)` for the run as a whole."""
_WHOLE_RUN: Final = ("", 0)


@dataclass(frozen=True, slots=True)
class RunUnderWay:
    no: int
    id: str
    workflow: str
    started_ns: int | None


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """The last attempt at an activity that runs."""

    activity: str
    attempt: int
    type: str
    version: str
    row: Callable[[], Row]
    """Its folded row, decoded when it is wanted."""


class AlertSource(RunHistory, Protocol):
    """Runs under way, beside the history of those before."""

    def counts(self, now_ns: int) -> dict[str, int]:
        """How many runs are in each state that is not an end."""

    def runs_under_way(self, now_ns: int, first: int, limit: int) -> list[RunUnderWay]:
        """Runs that are running and not lost, by number, from `first` on."""

    def running(self, run_no: int, after: str, limit: int) -> list[RunningAttempt]:
        """Activities of a run that are running, by name, after this one."""

    def reported(self, run_no: int) -> set[tuple[str, int]]:
        """The activities and attempts of a run for which there was an alert."""

    def facts(self, run_id: str) -> tuple[int, RunFacts]: ...


@dataclass(frozen=True, slots=True)
class FoundAlert:
    """An alert to publish, and the key under which it is remembered then."""

    straggler: Straggler
    key: AlertKey


class AlertScanner:
    """One scan after the other; each goes on where the one before stopped."""

    def __init__(self, source: AlertSource, policy: AlertPolicy) -> None:
        self._source = source
        self._policy = policy
        self._position = (0, "")  # run and activity

    def counts(self, now_ns: int) -> dict[str, int]:
        """How many runs are in each state that is not an end."""
        return self._source.counts(now_ns)

    def scan(self, now_ns: int, is_enough: Callable[[], bool] = lambda: False) -> list[FoundAlert]:
        """Some of what is slower than usual at this time and was not reported."""
        found: list[FoundAlert] = []
        first, after = self._position
        runs = self._source.runs_under_way(now_ns, first, RUNS_AT_ONCE)
        # From the first run again, unless this scan stops early or there are more.
        self._position = (runs[-1].no + 1, "") if len(runs) == RUNS_AT_ONCE else (0, "")
        completed: dict[str, int] = {}
        left = ACTIVITIES_AT_ONCE
        for run in runs:
            if run.workflow not in completed:
                completed[run.workflow] = self._source.completed(run.workflow)
            if count := completed[run.workflow]:
                start = after if run.no == first else ""
                left -= self._scan_run(run, count, start, left, now_ns, found)
            if left <= 0:
                return found
            if is_enough():
                self._position = (run.no + 1, "")
                return found
            after = ""
        return found

    def _scan_run(
        self,
        run: RunUnderWay,
        completed: int,
        after: str,
        limit: int,
        now_ns: int,
        found: list[FoundAlert],
    ) -> int:
        """One run, and at most `limit` of its activities. Returns how many those were."""
        reported = self._source.reported(run.no)
        if _WHOLE_RUN not in reported:
            found += self._slow_run(run, completed, now_ns)
        room = PER_RUN_MAX - len(reported - {_WHOLE_RUN})
        attempts = self._source.running(run.no, after, limit) if room > 0 else []
        for each in attempts:
            if room > 0 and (each.activity, each.attempt) not in reported:
                slow = self._slow_activity(run, completed, each, now_ns)
                room -= len(slow)
                found += slow if room else map(_last, slow)
        if len(attempts) == limit:
            self._position = (run.no, attempts[-1].activity)
        return len(attempts)

    def _slow_activity(
        self, run: RunUnderWay, completed: int, running: RunningAttempt, now_ns: int
    ) -> list[FoundAlert]:
        limit = self._policy.limit_for(run.workflow, running.type, running.version, completed)
        if limit is None:
            return []
        row = running.row()
        received_ns = row.get("started_heard", row.get("last_received"))
        took_s = under_way_s(attempt_times(row).started_ns, received_ns, now_ns)
        alert = slow_activity(limit, took_s, latest(row, "input_bytes"))
        return [] if alert is None else [_found(run, alert, limit.rate, running)]

    def _slow_run(self, run: RunUnderWay, completed: int, now_ns: int) -> list[FoundAlert]:
        if run.started_ns is None:
            return []
        took_s = seconds_between(run.started_ns, now_ns)
        if not self._policy.may_be_slow(run.workflow, took_s, completed):
            return []
        # Only now its row, which holds the workflow's files and may be large.
        run_no, facts = self._source.facts(run.id)
        alert = self._policy.slow_run(run_no, facts, completed, now_ns)
        return [] if alert is None else [_found(run, alert, _run_rate())]


def _last(found: FoundAlert) -> FoundAlert:
    why = f"{found.straggler.why} No more alerts for this run: {PER_RUN_MAX} were slower."
    return replace(found, straggler=replace(found.straggler, why=why))


def _run_rate() -> float:
    from tocsin.monitor.alerts.limits import RUN_RATE

    return RUN_RATE


def _found(
    run: RunUnderWay, alert: SlowAlert, rate: float, running: RunningAttempt | None = None
) -> FoundAlert:
    activity, attempt = (running.activity, running.attempt) if running else _WHOLE_RUN
    straggler = Straggler(
        run=run.id,
        workflow=run.workflow,
        activity=activity,
        type=running.type if running else "",
        attempt=attempt,
        took_s=alert.took_s,
        usual_s=alert.usual_s,
        limit_s=alert.limit_s,
        rate=rate,
        why=alert.why,
    )
    return FoundAlert(straggler, (run.no, activity, attempt))
