"""Queries about time: what is left of a run, how long one would take, what could be parallel."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.drivers.monitor.queries.index import TASKS_MAX, RunIndex
from tocsin.drivers.monitor.tables import tables_view
from tocsin.errors import NothingToEstimate
from tocsin.event.instant import seconds_between
from tocsin.monitor.alerts.policy import RUN_TASKS_MAX, Expectation
from tocsin.monitor.end_states import ENDED_RUN
from tocsin.monitor.estimate_views import began_ns, ended_view, estimate_by_pace, estimate_view
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.history.tables import TablesStatus, WorkflowTables
from tocsin.monitor.states import began_again, run_started_ns
from tocsin.monitor.views import state_at
from tocsin.wire.api.history_views import EstimateInfo, LearnedInfo
from tocsin.wire.api.run_views import HintInfo

if TYPE_CHECKING:  # they need numpy, and are imported by whoever asks first
    from tocsin.monitor.estimate import Estimate, Knowledge, PastRun, Plan, RunProgress
    from tocsin.monitor.estimate.inputs import Growth, Task

PAST_TASKS_MAX: Final = 5_000  # of a past run that is used
HINT_TASKS_MAX: Final = 2_000  # each is compared with all that it depends on
WORKFLOWS_KNOWN_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class WorkflowModel:
    """The estimator trained with the past runs of a workflow, and how many had ended then."""

    ended: tuple[int, int]
    knowledge: Knowledge
    cores: int
    latest: PastRun | None
    names: tuple[str, ...]
    growths: tuple[Growth, ...]
    """How the plans of those runs grew while they ran."""


class EstimateQueries:
    """Estimates, from what past runs of the same workflow teach."""

    def __init__(self, index: RunIndex, tables_status: Callable[[], TablesStatus]) -> None:
        self._index = index
        self._tables_status = tables_status
        self._models: OrderedDict[str, WorkflowModel] = OrderedDict()
        self._learning = threading.Lock()  # once, however many ask at the same time

    def estimate(self, run_id: str, now_ns: int) -> EstimateInfo:
        """When the run will end, and why then; NothingToEstimate if that is unknown."""
        from tocsin.monitor.estimate import estimate

        with self._index.locked():
            run_no, facts = self._index.facts(run_id)
        state = state_at(facts.row, now_ns, self._index.options.silence_s)
        status = self._tables_status()
        if state in ENDED_RUN:
            return ended_view(facts.row, state, self._tables_view(status, now_ns))
        if state == "lost":
            raise NothingToEstimate(
                f"there was no message about the run {run_id[:80]!r} for too long",
                remedy="It counts as lost. If it goes on, ask again.",
            )
        known = sum(facts.counts.values())
        if known > TASKS_MAX:
            by_pace = estimate_by_pace(facts, now_ns)
            return estimate_view(by_pace, now_ns, (), self._tables_view(status, now_ns))
        tasks = self._index.tasks(run_no, state)
        workflow = latest(facts.row, "workflow") or ""
        model = self.model(workflow)
        progress = self._progress(facts.row, tasks, model, now_ns)
        found = estimate(model.knowledge, progress, _tables_for(status, workflow, now_ns))
        if found is None:
            raise NothingToEstimate(
                f"no run of {workflow or 'this workflow'!r} has completed, "
                "and nothing of this one has ended",
                remedy="Ask again when its first activities have ended.",
            )
        names = [task.name for task in tasks]
        return estimate_view(found, now_ns, names, self._tables_view(status, now_ns, found))

    def estimate_unstarted(
        self, workflow: str, now_ns: int, plan: Plan | None = None, names: tuple[str, ...] = ()
    ) -> EstimateInfo:
        """How long a run would take that is not started yet; by default, one like the latest."""
        from tocsin.monitor.estimate import RunProgress, estimate

        model = self.model(workflow)
        if plan is None:
            if model.latest is None:
                raise NothingToEstimate(
                    f"no run of {workflow[:80]!r} has completed yet",
                    remedy="Run it once, or POST its tasks to /estimates.",
                )
            plan, names = model.latest.plan, model.names
        status = self._tables_status()
        tables = _tables_for(status, workflow, now_ns)
        found = estimate(model.knowledge, RunProgress(plan, 0.0, {}, {}), tables)
        if found is None:
            raise NothingToEstimate(
                f"no run of {workflow[:80]!r} has completed yet",
                remedy="Run it once first: estimates are based on earlier runs.",
            )
        return estimate_view(found, now_ns, names, self._tables_view(status, now_ns, found))

    def hints(self, run_id: str, now_ns: int) -> tuple[list[HintInfo], str | None]:
        """Activities that followed each other without need, the most time saved first.

        The second says why there are none, where that is so.
        """
        from tocsin.monitor.estimate.inputs import cores_of, executed_tasks
        from tocsin.monitor.hints import hints, why_no_hints

        with self._index.locked():
            run_no, facts = self._index.facts(run_id)
            run_is = state_at(facts.row, now_ns, self._index.options.silence_s)
            tasks = self._index.tasks(run_no, run_is, most=HINT_TASKS_MAX)
        ran = executed_tasks(tasks)
        return hints(ran, cores_of(facts.row, tasks)), why_no_hints(ran)

    def expectation(self, run_no: int, row: Row) -> Expectation:
        """What would have been estimated before the start of a run, had its plan been known."""
        from tocsin.monitor.estimate import RunProgress, estimate, past_ratios
        from tocsin.monitor.estimate.inputs import cores_of, plan_of

        model = self.model(latest(row, "workflow") or "")
        tasks = self._index.tasks(run_no, "running", most=RUN_TASKS_MAX)
        cores = cores_of(row, tasks, model.cores)
        plan = plan_of(tasks, row, cores=cores, ended=False, past=model.growths)
        found = estimate(model.knowledge, RunProgress(plan, 0.0, {}, {}))
        if found is None:
            return Expectation(0.0, ())
        return Expectation(found.total_s, past_ratios(model.knowledge))

    def _tables_view(
        self, status: TablesStatus, now_ns: int, found: Estimate | None = None
    ) -> LearnedInfo | None:
        return tables_view(
            status,
            now_ns,
            self._index.options.tables_old_s,
            attempts=0 if found is None else found.past_attempts,
            other_versions=() if found is None else found.other_versions,
        )

    def model(self, workflow: str) -> WorkflowModel:
        """The model of a workflow, trained again when a run of it has completed since."""
        ((count, last_ns),) = self._index.rows(
            "SELECT count(*), coalesce(max(ended_ns), 0) FROM runs "
            "WHERE workflow = ? AND state = 'completed'",
            workflow,
        )
        with self._learning:
            had = self._models.get(workflow)
            if had is not None and had.ended == (count, last_ns):
                self._models.move_to_end(workflow)
                return had
            found = self._learn(workflow, (count, last_ns))
            self._models[workflow] = found
            if len(self._models) > WORKFLOWS_KNOWN_MAX:
                self._models.popitem(last=False)
            return found

    def _learn(self, workflow: str, ended: tuple[int, int]) -> WorkflowModel:
        from tocsin.monitor.estimate import learn

        runs = [] if not workflow else self.past_runs(workflow)
        past = [run for run, _, _ in runs]
        cores = max((run.plan.cores for run in past), default=1)
        last, names, _ = runs[-1] if runs else (None, (), None)
        growths = tuple(growth for _, _, growth in runs if growth is not None)
        return WorkflowModel(ended, learn(past), cores, last, names, growths)

    def past_runs(self, workflow: str) -> list[tuple[PastRun, tuple[str, ...], Growth | None]]:
        """The completed runs of a workflow, oldest first, with their tasks' names and growth.

        A run whose id was used again is a mixture of two, and teaches nothing.
        """
        from tocsin.monitor.estimate.inputs import cores_of, growth_of, past_run, plan_of

        found = self._index.rows(
            "SELECT no, id, row FROM runs WHERE workflow = ? AND state = 'completed' "
            "ORDER BY sort_ns DESC LIMIT ?",
            workflow,
            self._index.options.past_runs_max,
        )
        runs: list[tuple[PastRun, tuple[str, ...], Growth | None]] = []
        for run_no, run_id, packed in reversed(found):
            row = decode_row(packed)
            start_ns, ended_ns = run_started_ns(row), row.get("ended")
            if start_ns is None or ended_ns is None or ended_ns <= start_ns or began_again(row):
                continue
            tasks = self._index.tasks(run_no, "completed", most=PAST_TASKS_MAX + 1)
            if not tasks or len(tasks) > PAST_TASKS_MAX:
                continue
            plan = plan_of(tasks, row, cores=cores_of(row, tasks), ended=True)
            makespan_s = seconds_between(start_ns, ended_ns)
            settled = row["state"][2], row.get("last_received")
            past = past_run(run_id, plan, tasks, start_ns, makespan_s, *settled)
            runs.append((past, tuple(task.name for task in tasks), growth_of(row, len(tasks))))
        return runs

    def _progress(
        self, row: Row, tasks: list[Task], model: WorkflowModel, now_ns: int
    ) -> RunProgress:
        from tocsin.monitor.estimate.inputs import cores_of, plan_of, progress_of

        cores = cores_of(row, tasks, model.cores)
        plan = plan_of(tasks, row, cores=cores, ended=False, past=model.growths)
        start_ns = began_ns(row, now_ns)
        return progress_of(plan, tasks, start_ns, max(0.0, seconds_between(start_ns, now_ns)))


def _tables_for(status: TablesStatus, workflow: str, now_ns: int) -> WorkflowTables | None:
    if status.learned is None or not workflow:
        return None
    return WorkflowTables(status.learned, workflow, now_ns)
