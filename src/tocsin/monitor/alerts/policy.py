"""AlertPolicy: whether an activity or a run takes longer than usual.

It decides from the history that it is given, and reads neither a clock nor a disk. What is usual is
worked out once, and again when another run of the workflow has completed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from tocsin.monitor.alerts.messages import under_way_s
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.states import run_started_ns, run_state
from tocsin.monitor.views import RunFacts, planned_total

if TYPE_CHECKING:  # numpy is imported by whoever is first asked, not at the start of a broker
    from tocsin.monitor.alerts.limits import DurationLimit, PastDuration, SlowAlert
    from tocsin.monitor.estimate.inputs import Task

ALERTS_MAX: Final = 20  # of one run: the slowest
LIMITS_KNOWN_MAX: Final = 1_000  # types, runs and workflows that are remembered
RUNS_NEEDED: Final = 9  # for the rate of false alarms that `run_alert` keeps
RUN_TASKS_MAX: Final = 5_000  # of a run that is compared with its estimate
SLOWER: Final = "slower than usual"


@dataclass(frozen=True, slots=True)
class CompletedRuns:
    """The latest completed runs of a workflow: the shortest, and the most activities of any."""

    shortest_s: float
    activities_max: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """How long a run should take, and how far off such estimates were in the past.

    `ratios` are real over estimated totals of past runs.
    """

    total_s: float
    ratios: tuple[float, ...]


class RunHistory(Protocol):
    """What the policy knows of past runs. Only completed runs count."""

    def locked(self) -> AbstractContextManager[object]:
        """Held while something is worked out and remembered: several threads may ask."""

    def completed(self, workflow: str) -> int:
        """How many runs of the workflow have completed."""

    def completed_runs(self, workflow: str) -> CompletedRuns: ...

    def past_durations(self, workflow: str, kind: str) -> list[PastDuration]:
        """How long activities of a type took, the latest first."""

    def expectation(self, run_no: int, row: Row) -> Expectation:
        """How long a run that is under way should take."""


class AlertPolicy:
    """What is usual, and what is slower."""

    def __init__(self, history: RunHistory) -> None:
        self._history = history
        # Each with the number of completed runs that it was worked out from.
        self._limits: OrderedDict[tuple[str, str, str], tuple[int, DurationLimit | None]]
        self._limits = OrderedDict()
        self._completed_runs: dict[str, tuple[int, CompletedRuns]] = {}
        self._expected: dict[int, tuple[tuple[int, int], Expectation]] = {}

    def alerts(
        self, run_no: int, facts: RunFacts, tasks: Iterable[Task], now_ns: int
    ) -> list[dict[str, Any]]:
        """The run, if it takes longer than nearly all before; and those of its tasks that do."""
        workflow = latest(facts.row, "workflow") or ""
        completed = self._history.completed(workflow) if workflow else 0
        if not completed:
            return []
        slow = self.slow_run(run_no, facts, completed, now_ns)
        about: dict[str, Any] = {"activity": None, "type": None, "state": "running"}
        whole = [] if slow is None else [_alert_view(about, slow)]
        found: list[tuple[float, dict[str, Any]]] = []
        with self._history.locked():
            for task in tasks:
                limit = self.limit_for(workflow, task.type, task.version, completed)
                alert = slow_activity(limit, _took_s(task, now_ns), task.input_bytes)
                if alert is not None:
                    about = {"activity": task.name, "type": task.type, "state": task.state}
                    found.append((alert.took_s / alert.limit_s, _alert_view(about, alert)))
        found.sort(key=lambda each: -each[0])
        return [*whole, *(alert for _, alert in found)][:ALERTS_MAX]

    def limit_for(
        self, workflow: str, kind: str, version: str, completed: int
    ) -> DurationLimit | None:
        """What is usual for activities of a type; None if there is too little history."""
        from tocsin.monitor.alerts.limits import usual

        key = (workflow, kind, version)
        with self._history.locked():
            known = self._limits.get(key)
            if known is None or known[0] != completed:
                past = self._history.past_durations(workflow, kind)
                known = self._limits[key] = completed, usual(past, version)
                self._limits.move_to_end(key)
                if len(self._limits) > LIMITS_KNOWN_MAX:
                    self._limits.popitem(last=False)
            return known[1]

    def may_be_slow(self, workflow: str, took_s: float, completed: int) -> bool:
        """False if no run that took so long is slow: there are too few to compare, or the shortest
        took longer. So that few have to be estimated."""
        enough = completed >= RUNS_NEEDED
        return enough and took_s > self._runs_of(workflow, completed).shortest_s

    def slow_run(
        self, run_no: int, facts: RunFacts, completed: int, now_ns: int
    ) -> SlowAlert | None:
        """The alert for a run that takes longer than was to be expected before its start."""
        row, known = facts.row, sum(facts.counts.values())
        took_s = under_way_s(run_started_ns(row), row.get("first_received"), now_ns)
        workflow = latest(row, "workflow") or ""
        if run_state(row) != "running" or took_s is None or known > RUN_TASKS_MAX:
            return None
        if not self.may_be_slow(workflow, took_s, completed):
            return None
        size = max(known, planned_total(row) or 0)
        if size > self._runs_of(workflow, completed).activities_max:
            return None  # how well larger ones than all before are estimated is not known
        from tocsin.monitor.alerts.limits import run_alert

        expected = self._expectation(run_no, row, (size, completed))
        return run_alert(expected.ratios, expected.total_s, took_s)

    def _expectation(self, run_no: int, row: Row, made_from: tuple[int, int]) -> Expectation:
        known = self._expected.get(run_no)
        if known is None or known[0] != made_from:
            known = made_from, self._history.expectation(run_no, row)
            if len(self._expected) >= LIMITS_KNOWN_MAX:
                self._expected.clear()
            self._expected[run_no] = known
        return known[1]

    def _runs_of(self, workflow: str, completed: int) -> CompletedRuns:
        known = self._completed_runs.get(workflow)
        if known is None or known[0] != completed:
            if len(self._completed_runs) >= LIMITS_KNOWN_MAX:
                self._completed_runs.clear()
            known = completed, self._history.completed_runs(workflow)
            self._completed_runs[workflow] = known
        return known[1]


def slow_activity(
    limit: DurationLimit | None, took_s: float | None, input_bytes: int | None
) -> SlowAlert | None:
    from tocsin.monitor.alerts.limits import slower

    return None if took_s is None else slower(limit, took_s, input_bytes)


def _took_s(task: Task, now_ns: int) -> float | None:
    """How long it took; of one that runs, how long so far."""
    if task.state == "succeeded":
        return task.times.duration_s
    return under_way_s(task.times.started_ns, task.start_received_ns, now_ns)


def _alert_view(about: dict[str, Any], alert: SlowAlert) -> dict[str, Any]:
    return {
        "kind": SLOWER,
        **about,
        "took_s": round(alert.took_s, 3),
        "usual_s": round(alert.usual_s, 3),
        "limit_s": round(alert.limit_s, 3),
        "why": alert.why,
    }
