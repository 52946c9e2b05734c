"""Watch: what goes slower than usual, and what could have gone at the same time."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tocsin.drivers.monitor.attempt_rows import decode_row
from tocsin.drivers.monitor.live import Live
from tocsin.monitor.alerts.messages import under_way_s
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.records import ENDED_RUN, RunRecord
from tocsin.monitor.states import run_started_ns, run_state
from tocsin.monitor.times import NS_PER_S
from tocsin.monitor.views import RunFacts, planned_total, state_at

if TYPE_CHECKING:  # numpy's friends: imported by whoever is first asked, not at the start
    from tocsin.monitor.alerts.limits import DurationLimit, PastDuration, SlowAlert
    from tocsin.monitor.estimate.inputs import Task
    from tocsin.monitor.hints import Hint

HINT_TASKS_MAX: Final = 2_000  # each is looked at with all that it needs
WATCHED_MAX: Final = 5_000  # activities of a run
ALERTS_MAX: Final = 20  # the slowest of them
PAST_MAX: Final = 2_000  # durations of a type that say what is usual, the latest
USUAL_KNOWN_MAX: Final = 1_000  # types
SLOWER: Final = "slower than usual"
RUNS_NEEDED: Final = 9  # for the rate of false alarms that `run_alert` keeps
RUN_TASKS_MAX: Final = 5_000  # of a run that is compared with its estimate
PAST_RUNS_MAX: Final = 500  # of which the shortest and the largest are looked for


@dataclass(frozen=True, slots=True)
class _Known:
    """What is usual, and how many runs had completed when that was worked out."""

    completed: int
    usual: DurationLimit | None


@dataclass(frozen=True, slots=True)
class KnownRuns:
    """The completed runs of a workflow: how many, the shortest, and the most activities of any."""

    completed: int
    shortest_s: float
    activities_max: int


@dataclass(frozen=True, slots=True)
class _Expected:
    """How long a run of so many activities should take, and how far off that was in the past."""

    size: int
    completed: int
    total_s: float
    ratios: tuple[float, ...]


class Watch(Live):
    """Questions of those who keep an eye on a run."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._usual: OrderedDict[tuple[str, str, str], _Known] = OrderedDict()
        self._known_runs: dict[str, KnownRuns] = {}
        self._expected: dict[int, _Expected] = {}

    def run(self, run_id: str, now_ns: int) -> RunRecord:
        """As everybody sees it; while it is under way, with what is slower than usual."""
        record = super().run(run_id, now_ns)
        if record.state in ENDED_RUN or record.state == "lost":
            return record
        return replace(record, alerts=tuple(self.alerts(run_id, now_ns)))

    def alerts(self, run_id: str, now_ns: int) -> list[dict[str, Any]]:
        """The run, if it takes longer than nearly all before; and activities that do, or did."""
        run_no, facts = self.facts(run_id)
        workflow = latest(facts.row, "workflow") or ""
        completed = self.completed(workflow) if workflow else 0
        if not completed:
            return []
        slow = self.slow_run(run_no, facts, completed, now_ns)
        about: dict[str, Any] = {"activity": None, "type": None, "state": "running"}
        whole = [] if slow is None else [_shown(about, slow)]
        with self._turn:
            found: list[tuple[float, dict[str, Any]]] = []
            for task in self._watched(run_no, sum(facts.counts.values())):
                took_s = _took_s(task, now_ns)
                known = self.usual_for(workflow, task.type, task.version, completed)
                alert = _slower(known, took_s, task.input_bytes)
                if alert is not None:
                    about = {"activity": task.name, "type": task.type, "state": task.state}
                    found.append((alert.took_s / alert.limit_s, _shown(about, alert)))
        found.sort(key=lambda each: -each[0])
        return [*whole, *(alert for _, alert in found)][:ALERTS_MAX]

    def hints(self, run_id: str, now_ns: int) -> tuple[list[Hint], str | None]:
        """Activities that followed each other without need, the most time saved first.

        The second says why nothing can be said, where that is so.
        """
        from tocsin.monitor.estimate.inputs import cores_of, executed_tasks
        from tocsin.monitor.hints import hints, why_no_hints

        with self._turn:
            run_no, facts = self.facts(run_id)
            run_is = state_at(facts.row, now_ns, self.options.silence_s)
            tasks = self.tasks(run_no, run_is, most=HINT_TASKS_MAX)
        ran = executed_tasks(tasks)
        return hints(ran, cores_of(facts.row, tasks)), why_no_hints(ran)

    def completed(self, workflow: str) -> int:
        """How many runs of a workflow came to a good end."""
        ((count,),) = self.rows(
            "SELECT count(*) FROM runs WHERE workflow = ? AND state = 'completed'", workflow
        )
        return int(count)

    def usual_for(
        self, workflow: str, kind: str, version: str, completed: int
    ) -> DurationLimit | None:
        """What is usual for activities of a type; None if there is too little history."""
        from tocsin.monitor.alerts.limits import usual

        key = (workflow, kind, version)
        with self._turn:
            known = self._usual.get(key)
            if known is None or known.completed != completed:
                past = self._past_durations(workflow, kind)
                known = _Known(completed, usual(past, version))
                self._usual[key] = known
                self._usual.move_to_end(key)
                if len(self._usual) > USUAL_KNOWN_MAX:
                    self._usual.popitem(last=False)
            return known.usual

    def slow_run(
        self, run_no: int, facts: RunFacts, completed: int, now_ns: int
    ) -> SlowAlert | None:
        """The alert for a run that takes longer than was to be expected before its start."""
        row, known = facts.row, sum(facts.counts.values())
        took_s, workflow = run_took_s(row, now_ns), latest(row, "workflow") or ""
        if run_state(row) != "running" or took_s is None or known > RUN_TASKS_MAX:
            return None
        past = self.known_runs(workflow, completed)
        if completed < RUNS_NEEDED or took_s <= past.shortest_s:
            return None  # so that few have to be estimated
        size = max(known, planned_total(row) or 0)
        if size > past.activities_max:
            return None  # how well larger ones than all before are estimated is not known
        from tocsin.monitor.alerts.limits import run_alert

        expected = self._expected.get(run_no)
        if expected is None or (expected.size, expected.completed) != (size, completed):
            expected = self._expect(run_no, row, size, completed)
            if len(self._expected) >= USUAL_KNOWN_MAX:
                self._expected.clear()
            self._expected[run_no] = expected
        return run_alert(expected.ratios, expected.total_s, took_s)

    def _expect(self, run_no: int, row: Row, size: int, completed: int) -> _Expected:
        """What would have been estimated before the start of a run, had its plan been known."""
        from tocsin.monitor.estimate import RunProgress, estimate, past_ratios
        from tocsin.monitor.estimate.inputs import cores_of, plan_of

        learnt = self.learnt(latest(row, "workflow") or "")
        tasks = self.tasks(run_no, "running", most=RUN_TASKS_MAX)
        cores = cores_of(row, tasks, learnt.cores)
        plan = plan_of(tasks, row, cores=cores, ended=False, past=learnt.growths)
        found = estimate(learnt.knowledge, RunProgress(plan, 0.0, {}, {}))
        if found is None:
            return _Expected(size, completed, 0.0, ())
        return _Expected(size, completed, found.total_s, past_ratios(learnt.knowledge))

    def known_runs(self, workflow: str, completed: int) -> KnownRuns:
        """What the last completed runs were like: no run is slow that is not yet as long."""
        had = self._known_runs.get(workflow)
        if had is not None and had.completed == completed:
            return had
        ((least_ns, most),) = self.rows(
            "SELECT min(ended_ns - started_ns), max((SELECT sum(count) FROM tally WHERE run = no)) "
            "FROM (SELECT no, started_ns, ended_ns FROM runs WHERE workflow = ? "
            "AND state = 'completed' ORDER BY ended_ns DESC LIMIT ?) WHERE started_ns < ended_ns",
            workflow,
            PAST_RUNS_MAX,
        )
        if len(self._known_runs) >= USUAL_KNOWN_MAX:
            self._known_runs.clear()
        found = KnownRuns(completed, (least_ns or 0) / NS_PER_S, most or 0)
        self._known_runs[workflow] = found
        return found

    def _watched(self, run_no: int, known: int) -> list[Task]:
        """Those that run; unless there are too many, those that have succeeded too."""
        states = ("running", "succeeded") if known <= WATCHED_MAX else ("running",)
        return [
            task
            for state in states
            for task in self.tasks(run_no, "running", most=WATCHED_MAX, state=state)
        ]

    def _past_durations(self, workflow: str, kind: str) -> list[PastDuration]:
        from tocsin.monitor.alerts.limits import PastDuration

        found = self.rows(
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


def run_took_s(row: Row, now_ns: int) -> float | None:
    """How long a run is under way, by the clocks of both sides."""
    return under_way_s(run_started_ns(row), row.get("first_received"), now_ns)


def _took_s(task: Task, now_ns: int) -> float | None:
    """How long it took; of one that runs, how long so far."""
    if task.state == "succeeded":
        return task.times.duration_s
    return under_way_s(task.times.started_ns, task.heard_ns, now_ns)


def _slower(
    known: DurationLimit | None, took_s: float | None, input_bytes: int | None = None
) -> SlowAlert | None:
    from tocsin.monitor.alerts.limits import slower

    return None if took_s is None else slower(known, took_s, input_bytes)


def _shown(about: dict[str, Any], alert: SlowAlert) -> dict[str, Any]:
    return {
        "kind": SLOWER,
        **about,
        "took_s": round(alert.took_s, 3),
        "usual_s": round(alert.usual_s, 3),
        "limit_s": round(alert.limit_s, 3),
        "why": alert.why,
    }
