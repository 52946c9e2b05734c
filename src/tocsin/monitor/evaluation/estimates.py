"""How good estimates are: every run estimated from the others, beside simple baselines.

A run is replayed (`replay`) and looked at before its start and at 25, 50 and 75 % of its time. The
estimator is given a `RunProgress`, which holds only what was known then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tocsin.monitor.estimate.baselines import (
    fraction_of_tasks,
    fraction_of_work,
    mean_makespan,
    median_work,
)
from tocsin.monitor.estimate.estimator import Knowledge, estimate, learn
from tocsin.monitor.estimate.run_digest import RunDigest, digest
from tocsin.monitor.estimate.shape import compile_plan
from tocsin.monitor.estimate.state import state_of
from tocsin.monitor.estimate.types import Done, PastRun, RunProgress

STAGES = (0.0, 0.25, 0.5, 0.75)
RUNS_MIN = 10
BASELINES = ("mean_makespan", "fraction_of_tasks", "fraction_of_work")

Report = dict[str, object]


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of one kind of estimate over the runs of an application, as fractions."""

    mdape: float
    mape: float
    coverage: float | None = None
    ratio: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        found: dict[str, float | None] = {"mdape": self.mdape, "mape": self.mape}
        if self.coverage is not None:
            found |= {"coverage": self.coverage, "ratio": self.ratio}
        return found


Scores = Mapping[float, Score]


@dataclass(frozen=True, slots=True)
class Application:
    """What was found for one application: our scores by stage, and those of each baseline."""

    runs: int
    run_out: Scores
    size_out: Scores
    run_out_baselines: Mapping[str, Scores]
    size_out_baselines: Mapping[str, Scores]


@dataclass(frozen=True, slots=True)
class _Result:
    error: float
    inside: bool
    ratio: float
    baselines: Mapping[str, float]


class Case(Protocol):
    """A run that has ended, and what was known of it at each moment."""

    @property
    def run(self) -> PastRun: ...

    def at(self, elapsed_s: float, past: Sequence[Case]) -> RunProgress:
        """All that was known when so many seconds were over, with the `past` runs known then."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run whose tasks are replayed: the plan is known before the start."""

    run: PastRun

    def at(self, elapsed_s: float, past: Sequence[Case]) -> RunProgress:
        return progress_at(self.run, elapsed_s)


def with_times(run: PastRun) -> PastRun:
    """The run with the times at which its tasks started and ended, replayed if need be."""
    digested = digest(run)
    assert digested is not None
    whole = digested.whole
    done = {
        index: replace(task, started_s=float(whole.starts[index]), ended_s=float(whole.ends[index]))
        for index, task in run.done.items()
    }
    return replace(run, done=done)


def progress_at(run: PastRun, elapsed_s: float) -> RunProgress:
    """All that was known of a run with times when so many seconds were over, and nothing else."""
    done: dict[int, Done] = {}
    running: dict[int, float] = {}
    for index, task in run.done.items():
        assert task.started_s is not None
        assert task.ended_s is not None
        if elapsed_s <= 0:
            break
        if task.ended_s <= elapsed_s:
            done[index] = task
        elif task.started_s <= elapsed_s:
            running[index] = task.started_s
    return RunProgress(run.plan, elapsed_s, done, running)


def evaluate(
    runs: Sequence[PastRun], on_progress: Callable[[int], None] = lambda _: None
) -> Application:
    """Estimate every run from the others, and again from those of other sizes; see below."""
    return evaluate_cases([Replayed(with_times(run)) for run in runs], on_progress)


def evaluate_cases(
    timed: Sequence[Case], on_progress: Callable[[int], None] = lambda _: None
) -> Application:
    """Estimate every run from the others, and again from those of other sizes.

    `on_progress` is called with how many runs of twice as many are done.
    """
    sizes = [compile_plan(case.run.plan).size for case in timed]
    run_out = []
    for number, case in enumerate(timed):
        run_out.append(_look(case, [other for other in timed if other is not case]))
        on_progress(number + 1)
    if len(set(sizes)) == len(sizes):
        size_out = run_out
        on_progress(2 * len(timed))
    else:
        size_out = []
        for number, case in enumerate(timed):
            others = [o for o, size in zip(timed, sizes, strict=True) if size != sizes[number]]
            size_out.append(_look(case, others))
            on_progress(len(timed) + number + 1)
    return Application(
        len(timed),
        _ours(run_out),
        _ours(size_out),
        {name: _theirs(run_out, name) for name in BASELINES},
        {name: _theirs(size_out, name) for name in BASELINES},
    )


def _look(case: Case, past: Sequence[Case]) -> dict[float, _Result]:
    if not past:
        return {}
    knowledge = learn([other.run for other in past])
    found = {}
    for stage in STAGES:
        moment = case.at(stage * case.run.makespan_s, past)
        found[stage] = _result(knowledge, moment, case.run.makespan_s)
    return found


def _result(knowledge: Knowledge, moment: RunProgress, makespan_s: float) -> _Result:
    predicted = estimate(knowledge, moment)
    assert predicted is not None
    low_s = moment.elapsed_s + predicted.low_s
    high_s = moment.elapsed_s + predicted.high_s
    return _Result(
        error=abs(predicted.total_s / makespan_s - 1),
        inside=low_s <= makespan_s <= high_s,
        ratio=high_s / max(low_s, 1e-9),
        baselines={
            name: abs(total_s / makespan_s - 1)
            for name, total_s in baseline_totals(knowledge.runs, moment).items()
        },
    )


def baseline_totals(past: Sequence[RunDigest], moment: RunProgress) -> dict[str, float]:
    """What the baselines say; where one can say nothing, the mean makespan stands for it."""
    shape = compile_plan(moment.plan)
    state = state_of(moment, shape)
    mean_s = max(mean_makespan(past), moment.elapsed_s)
    medians = median_work(past, shape)
    tasks_s = fraction_of_tasks(past, shape, state)
    work_s = fraction_of_work(past, shape, state, medians)
    predicted = (mean_s, tasks_s, work_s)
    return {
        name: mean_s if total_s is None else total_s
        for name, total_s in zip(BASELINES, predicted, strict=True)
    }


def _ours(results: Sequence[Mapping[float, _Result]]) -> Scores:
    scores = {}
    for stage in STAGES:
        here = [found[stage] for found in results if stage in found]
        if here:
            errors = [result.error for result in here]
            scores[stage] = Score(
                float(np.median(errors)),
                float(np.mean(errors)),
                float(np.mean([result.inside for result in here])),
                float(np.median([result.ratio for result in here])),
            )
    return scores


def _theirs(results: Sequence[Mapping[float, _Result]], name: str) -> Scores:
    scores = {}
    for stage in STAGES:
        errors = [found[stage].baselines[name] for found in results if stage in found]
        if errors:
            scores[stage] = Score(float(np.median(errors)), float(np.mean(errors)))
    return scores


def median_of(applications: Sequence[Application]) -> Application:
    """The median over applications of every figure."""
    return Application(
        sum(each.runs for each in applications),
        _median_scores([each.run_out for each in applications]),
        _median_scores([each.size_out for each in applications]),
        {
            name: _median_scores([each.run_out_baselines[name] for each in applications])
            for name in BASELINES
        },
        {
            name: _median_scores([each.size_out_baselines[name] for each in applications])
            for name in BASELINES
        },
    )


def _median_scores(scores: Sequence[Scores]) -> Scores:
    found = {}
    for stage in STAGES:
        here = [each[stage] for each in scores if stage in each]
        if not here:
            continue
        coverages = [score.coverage for score in here if score.coverage is not None]
        ratios = [score.ratio for score in here if score.ratio is not None]
        found[stage] = Score(
            float(np.median([score.mdape for score in here])),
            float(np.median([score.mape for score in here])),
            float(np.median(coverages)) if coverages else None,
            float(np.median(ratios)) if ratios else None,
        )
    return found


def as_report(applications: Mapping[str, Application]) -> Report:
    """The shape that `tocsin evaluate eta --json` prints; errors are fractions."""
    return {
        "applications": {name: _report(each) for name, each in applications.items()},
        "median": _report(median_of(list(applications.values()))),
    }


def _report(application: Application) -> Report:
    return {
        "runs": application.runs,
        "leave_one_run_out": _by_stage(application.run_out),
        "leave_one_size_out": _by_stage(application.size_out),
        "baselines": {
            name: _by_stage(each) for name, each in application.run_out_baselines.items()
        },
        "baselines_size_out": {
            name: _by_stage(each) for name, each in application.size_out_baselines.items()
        },
    }


def _by_stage(scores: Scores) -> Report:
    return {f"{stage * 100:.0f}": score.as_dict() for stage, score in scores.items()}
