"""Live: the time left of runs, from what past runs of the same workflow teach."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tocsin.drivers.monitor.attempt_rows import decode_row
from tocsin.drivers.monitor.learned import learned_shown
from tocsin.drivers.monitor.past import Past
from tocsin.errors import NothingToEstimate
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.history.tables import TablesStatus, WorkflowTables
from tocsin.monitor.records import ENDED_RUN
from tocsin.monitor.states import began_again, run_started_ns
from tocsin.monitor.times import NS_PER_S, seconds_between, shown
from tocsin.monitor.views import RunFacts, state_at

if TYPE_CHECKING:  # they need numpy, and are imported by whoever asks first
    from tocsin.monitor.estimate import Estimate, Knowledge, PastRun, Plan, RunProgress
    from tocsin.monitor.estimate.inputs import Growth, Task

TASKS_MAX: Final = 20_000  # of a run whose time left is worked out task by task
PAST_TASKS_MAX: Final = 5_000  # of a run that is learnt from
WORKFLOWS_KNOWN_MAX: Final = 64
PACE_LOW, PACE_HIGH = 0.5, 2.0  # of what the pace alone says, where nothing else is known


@dataclass(frozen=True, slots=True)
class Learnt:
    """What the past runs of a workflow taught, and how many had ended when it was learnt."""

    ended: tuple[int, int]
    knowledge: Knowledge
    cores: int
    latest: PastRun | None
    names: tuple[str, ...]
    growths: tuple[Growth, ...]
    """How the plans of those runs grew while they ran."""


class Live(Past):
    """Questions about what is not over yet."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._learnt: OrderedDict[str, Learnt] = OrderedDict()
        self._learning = threading.Lock()  # once, however many ask at the same time

    def estimate(self, run_id: str, now_ns: int) -> dict[str, Any]:
        """When the run will end, and why then; NothingToEstimate if that cannot be said."""
        from tocsin.monitor.estimate import estimate

        with self._turn:
            run_no, facts = self.facts(run_id)
        state = state_at(facts.row, now_ns, self.options.silence_s)
        standing = self.standing()
        if state in ENDED_RUN:
            return {**_over(facts.row, state), "learned": self._learned_shown(standing, now_ns)}
        if state == "lost":
            raise NothingToEstimate(
                f"there was no message about the run {run_id[:80]!r} for too long",
                remedy="It counts as lost. If it goes on, ask again.",
            )
        known = sum(facts.counts.values())
        if known > TASKS_MAX:
            return {
                **estimate_shown(_by_pace(facts, now_ns), now_ns, ()),
                "learned": self._learned_shown(standing, now_ns),
            }
        tasks = self.tasks(run_no, state)
        workflow = latest(facts.row, "workflow") or ""
        learnt = self.learnt(workflow)
        moment = self._moment(facts.row, tasks, learnt, now_ns)
        found = estimate(learnt.knowledge, moment, _tables_for(standing, workflow, now_ns))
        if found is None:
            raise NothingToEstimate(
                f"no run of {workflow or 'this workflow'!r} has completed, "
                "and nothing of this one has ended",
                remedy="Ask again when its first activities have ended.",
            )
        return {
            **estimate_shown(found, now_ns, [task.name for task in tasks]),
            "learned": self._learned_shown(standing, now_ns, found),
        }

    def estimate_unstarted(
        self, workflow: str, now_ns: int, plan: Plan | None = None, names: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """How long a run would take that is not started yet; by default, one like the latest."""
        from tocsin.monitor.estimate import RunProgress, estimate

        learnt = self.learnt(workflow)
        if plan is None:
            if learnt.latest is None:
                raise NothingToEstimate(
                    f"no run of {workflow[:80]!r} has completed yet",
                    remedy="Run it once, or POST its tasks to /estimates.",
                )
            plan, names = learnt.latest.plan, learnt.names
        standing = self.standing()
        tables = _tables_for(standing, workflow, now_ns)
        found = estimate(learnt.knowledge, RunProgress(plan, 0.0, {}, {}), tables)
        if found is None:
            raise NothingToEstimate(
                f"no run of {workflow[:80]!r} has completed yet",
                remedy="Run it once first: estimates are based on earlier runs.",
            )
        return {
            **estimate_shown(found, now_ns, names),
            "learned": self._learned_shown(standing, now_ns, found),
        }

    def _learned_shown(
        self, standing: TablesStatus, now_ns: int, found: Estimate | None = None
    ) -> dict[str, Any] | None:
        return learned_shown(
            standing,
            now_ns,
            self.options.tables_old_s,
            attempts=0 if found is None else found.past_attempts,
            other_versions=() if found is None else found.other_versions,
        )

    def learnt(self, workflow: str) -> Learnt:
        """What is known of a workflow, learnt anew when a run of it has completed since."""
        ((count, last_ns),) = self.rows(
            "SELECT count(*), coalesce(max(ended_ns), 0) FROM runs "
            "WHERE workflow = ? AND state = 'completed'",
            workflow,
        )
        with self._learning:
            had = self._learnt.get(workflow)
            if had is not None and had.ended == (count, last_ns):
                self._learnt.move_to_end(workflow)
                return had
            found = self._learn(workflow, (count, last_ns))
            self._learnt[workflow] = found
            if len(self._learnt) > WORKFLOWS_KNOWN_MAX:
                self._learnt.popitem(last=False)
            return found

    def _learn(self, workflow: str, ended: tuple[int, int]) -> Learnt:
        from tocsin.monitor.estimate import learn

        runs = [] if not workflow else self.past_runs(workflow)
        past = [run for run, _, _ in runs]
        cores = max((run.plan.cores for run in past), default=1)
        last, names, _ = runs[-1] if runs else (None, (), None)
        growths = tuple(growth for _, _, growth in runs if growth is not None)
        return Learnt(ended, learn(past), cores, last, names, growths)

    def past_runs(self, workflow: str) -> list[tuple[PastRun, tuple[str, ...], Growth | None]]:
        """The completed runs of a workflow, oldest first, with their tasks' names and growth.

        A run whose id was used again is a mixture of two, and teaches nothing.
        """
        from tocsin.monitor.estimate.inputs import cores_of, growth_of, past_run, plan_of

        found = self.rows(
            "SELECT no, id, row FROM runs WHERE workflow = ? AND state = 'completed' "
            "ORDER BY sort_ns DESC LIMIT ?",
            workflow,
            self.options.past_runs_max,
        )
        runs: list[tuple[PastRun, tuple[str, ...], Growth | None]] = []
        for run_no, run_id, packed in reversed(found):
            row = decode_row(packed)
            began_ns, ended_ns = run_started_ns(row), row.get("ended")
            if began_ns is None or ended_ns is None or ended_ns <= began_ns or began_again(row):
                continue
            tasks = self.tasks(run_no, "completed", most=PAST_TASKS_MAX + 1)
            if not tasks or len(tasks) > PAST_TASKS_MAX:
                continue
            plan = plan_of(tasks, row, cores=cores_of(row, tasks), ended=True)
            makespan_s = seconds_between(began_ns, ended_ns)
            settled = row["state"][2], row.get("last_received")
            past = past_run(run_id, plan, tasks, began_ns, makespan_s, *settled)
            runs.append((past, tuple(task.name for task in tasks), growth_of(row, len(tasks))))
        return runs

    def tasks(
        self, run_no: int, run_is: str, most: int = TASKS_MAX, *, state: str | None = None
    ) -> list[Task]:
        """The activities of a run in the order in which they were heard of, or those in a state."""
        from tocsin.monitor.estimate.inputs import task_of

        where, values = ("", ()) if state is None else (" AND state = ?", (state,))
        found = self.rows(
            "SELECT activity, type, version, row, attempt FROM attempts "
            f"WHERE run = ? AND last{where} ORDER BY no LIMIT ?",
            run_no,
            *values,
            most,
        )
        # What a task waits for is told once, by its plan or its first attempt.
        before = self._attempts(run_no, [name for name, *_, number in found if number > 1])
        return [
            task_of(name, kind, version, decode_row(row), run_is, before.get(name, {}))
            for name, kind, version, row, _ in found
        ]

    def _moment(self, row: Row, tasks: list[Task], learnt: Learnt, now_ns: int) -> RunProgress:
        from tocsin.monitor.estimate.inputs import cores_of, plan_of, progress_of

        cores = cores_of(row, tasks, learnt.cores)
        plan = plan_of(tasks, row, cores=cores, ended=False, past=learnt.growths)
        began_ns = _began_ns(row, now_ns)
        return progress_of(plan, tasks, began_ns, max(0.0, seconds_between(began_ns, now_ns)))


def _tables_for(standing: TablesStatus, workflow: str, now_ns: int) -> WorkflowTables | None:
    if standing.learned is None or not workflow:
        return None
    return WorkflowTables(standing.learned, workflow, now_ns)


def _by_pace(facts: RunFacts, now_ns: int) -> Estimate:
    """A run that is too large to be worked out: how fast its activities end tells."""
    from tocsin.monitor.estimate import Estimate

    row, counts = facts.row, facts.counts
    began_ns = _began_ns(row, now_ns)
    elapsed_s = max(0.0, seconds_between(began_ns, now_ns))
    ended = sum(counts.get(each, 0) for each in ("succeeded", "failed", "skipped", "cached"))
    total = max(sum(counts.values()), latest(row, "planned_total") or 0)
    if not ended:
        raise NothingToEstimate(
            "none of the run's activities has ended yet", remedy="Ask again when some have."
        )
    remaining_s = elapsed_s * (total - ended) / ended
    reason = f"{ended:,} of {total:,} activities ended in {elapsed_s:,.0f} s"
    return Estimate(
        total_s=elapsed_s + remaining_s,
        remaining_s=remaining_s,
        low_s=remaining_s * PACE_LOW,
        high_s=remaining_s * PACE_HIGH,
        method="pace",
        reason=reason,
        critical_path=(),
        past_runs=0,
        past_error=None,
    )


def _began_ns(row: Row, now_ns: int) -> int:
    """When it began, unless that is in the future: then, when it was first heard of."""
    began_ns = run_started_ns(row)
    if began_ns is None or began_ns > now_ns:
        began_ns = row.get("first_received", now_ns)
    return began_ns


def estimate_shown(
    found: Estimate, now_ns: int, names: tuple[str, ...] | list[str]
) -> dict[str, Any]:
    """The estimate as the API shows it: seconds, and times by the broker's clock."""
    return {
        "remaining_s": round(found.remaining_s, 3),
        "low_s": round(found.low_s, 3),
        "high_s": round(found.high_s, 3),
        "total_s": round(found.total_s, 3),
        "eta": _at(now_ns, found.remaining_s),
        "eta_low": _at(now_ns, found.low_s),
        "eta_high": _at(now_ns, found.high_s),
        "method": found.method,
        "reason": found.reason,
        "past_runs": found.past_runs,
        "past_error": found.past_error,
        "critical_path": [names[each] for each in found.critical_path if each < len(names)],
    }


def _at(now_ns: int, seconds: float) -> str | None:
    if not seconds < 1e9:
        return None
    return shown(now_ns + int(seconds * NS_PER_S))


def _over(row: Row, state: str) -> dict[str, Any]:
    began_ns, ended_ns = run_started_ns(row), row.get("ended")
    took_s = None
    if began_ns is not None and ended_ns is not None and ended_ns >= began_ns:
        took_s = seconds_between(began_ns, ended_ns)
    ended = None if ended_ns is None else shown(ended_ns)
    return {
        "remaining_s": 0.0,
        "low_s": 0.0,
        "high_s": 0.0,
        "total_s": took_s,
        "eta": ended,
        "eta_low": ended,
        "eta_high": ended,
        "method": "ended",
        "reason": f"The run is {state}.",
        "past_runs": 0,
        "past_error": None,
        "critical_path": [],
    }
