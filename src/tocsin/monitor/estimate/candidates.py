"""Several ways to say when a run will end. Which to believe is decided in `choose`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.baselines import (
    fraction_of_tasks,
    fraction_of_work,
    mean_makespan,
    median_makespan,
    median_work,
)
from tocsin.monitor.estimate.prior import FromTables, informed
from tocsin.monitor.estimate.remaining import LOG_S_MAX, Rest, rests
from tocsin.monitor.estimate.run_digest import MILESTONES, RunDigest
from tocsin.monitor.estimate.runtimes import Runtimes, runtimes
from tocsin.monitor.estimate.shape import Floats, Shape, features
from tocsin.monitor.estimate.similar import Similar, similar
from tocsin.monitor.estimate.state import State
from tocsin.monitor.history.tables import WorkflowTables

CANDIDATES = (
    "similar runs",
    "simulation",
    "simulation at this pace",
    "pace of similar runs",
    "milestones of similar runs",
    "fraction of tasks",
    "fraction of work",
    "mean makespan",
    "median makespan",
)

SLOW = 2.0  # times as long as usual
LEFT_MIN = 0.01  # of the elapsed time: a run that goes on has at least this much to go
REST_MIN = 1e-3  # of a past run: less than this after a milestone is counted as this
TOTAL_S_MIN = 1e-3
TOTAL_S_MAX = 1e13
CLOCK_MIN = 0.02


@dataclass(frozen=True, slots=True)
class View:
    """One run seen from its past: what can be said of it before it starts."""

    past: Sequence[RunDigest]
    shape: Shape
    like: Similar | None
    models: Runtimes
    medians: Mapping[str, float]
    total_s: float | None
    core_s: float | None
    tables: FromTables

    @property
    def has_past(self) -> bool:
        """Whether anything is known of such runs beside the run itself."""
        return bool(self.past or self.tables.activities)


def view(past: Sequence[RunDigest], shape: Shape, tables: WorkflowTables | None = None) -> View:
    """Look at a run from its past, and from what the pipeline's tables know of its activities."""
    if not past:
        models, used = informed(Runtimes({}, 0.0), past, shape, tables)
        return View(past, shape, None, models, {}, None, None, used)
    like = similar([run.features for run in past], features(shape))
    models, used = informed(runtimes(past, shape, like), past, shape, tables)
    return View(
        past,
        shape,
        like,
        models,
        median_work(past, shape),
        _expected(like, [run.makespan_s for run in past]),
        _expected(like, [run.core_s for run in past]),
        used,
    )


def _expected(like: Similar, seconds: Sequence[float]) -> float:
    """The time to expect from those of past runs; a trend that leads beyond all bounds is cut."""
    log = like.predict(np.log(seconds))
    return math.exp(min(max(log, -LOG_S_MAX), LOG_S_MAX))


@dataclass(frozen=True, slots=True)
class Totals:
    """The logarithm of the total seconds by each candidate, and the simulation at this pace.

    `place` is how far on the run seems from inside: by tasks, by median work, by the clock.
    `least_s` is what the total cannot be below.
    """

    logs: Floats
    rest: Rest
    place: Floats
    least_s: float


def totals(seen: View, state: State) -> Totals | None:
    """What each candidate says now; None if none has anything to go by.

    One that has nothing to go by says what similar runs say; without a past run what a simulation
    with the pipeline's tables says, or else what the others say in the middle. One that the clock
    has refuted joins the simulation at this run's pace.
    """
    stretch = state.stretch
    if stretch is None:
        stretch = seen.total_s / seen.core_s if seen.total_s and seen.core_s else 1.0
    usual, paced = rests(seen.shape, seen.models, state, stretch)
    can_simulate = bool(seen.has_past or state.ended)
    core_s = seen.core_s * stretch if seen.core_s is not None else None
    predicted: list[float | None] = [
        seen.total_s,
        state.elapsed_s + usual.remaining_s if can_simulate else None,
        state.elapsed_s + paced.remaining_s if can_simulate else None,
        core_s,
        _by_milestone(seen, state, stretch) or core_s,
        fraction_of_tasks(seen.past, seen.shape, state),
        fraction_of_work(seen.past, seen.shape, state, seen.medians),
        mean_makespan(seen.past) if seen.past else None,
        median_makespan(seen.past) if seen.past else None,
    ]
    known = [value for value in predicted if value is not None]
    if not known:
        return None
    floor_s = max(state.elapsed_s * (1 + LEFT_MIN), TOTAL_S_MIN)
    paced_s = max(state.elapsed_s + paced.remaining_s, floor_s)
    middle_s = seen.total_s or (paced_s if seen.tables.activities else _middle_s(known, floor_s))
    values = [middle_s if value is None else value for value in predicted]
    values = [paced_s if value < floor_s else value for value in values]
    values = [min(value, max(TOTAL_S_MAX, floor_s)) for value in values]
    least_s = state.elapsed_s
    if seen.total_s is not None and _goes_its_own_way(state.elapsed_s, seen.total_s, paced.pace):
        least_s += min(usual.remaining_s, paced.remaining_s)
    place = _place(seen, state, values[0])
    return Totals(np.log(values), paced, place, min(least_s, max(values)))


def _middle_s(known: Sequence[float], floor_s: float) -> float:
    return math.exp(float(np.mean(np.log(np.maximum(known, floor_s)))))


def _goes_its_own_way(elapsed_s: float, usual_s: float, pace: float | None) -> bool:
    """Whether a run has outlasted similar ones, or is so slow that they say little of its end."""
    return elapsed_s > usual_s or (pace is not None and pace > SLOW)


def _place(seen: View, state: State, total_s: float) -> Floats:
    shape, medians = seen.shape, seen.medians
    work_s = sum(medians.get(name, 0.0) * len(them) for name, them in shape.members.items())
    ended_s = sum(medians.get(shape.types[index], 0.0) for index in state.ended)
    clock = max(state.elapsed_s / total_s, CLOCK_MIN)
    return np.array(
        [
            len(state.ended) / shape.count,
            ended_s / work_s if work_s > 0 else 0.0,
            math.log(clock) / 2,
        ]
    )


def _by_milestone(seen: View, state: State, stretch: float) -> float | None:
    """When the last milestone was reached, and what similar runs still had to do after it."""
    if seen.like is None:
        return None
    latest = _latest_milestone(seen, state)
    if latest is None:
        return None
    reached_s, key = latest
    after = [max(run.core_s - run.milestones[key], REST_MIN * run.core_s) for run in seen.past]
    return reached_s + stretch * _expected(seen.like, after)


def _latest_milestone(seen: View, state: State) -> tuple[float, tuple[str, float]] | None:
    ended = np.asarray(state.ended, dtype=np.intp)
    over = np.zeros(seen.shape.count, dtype=bool)
    over[ended[np.isfinite(state.ends[ended])]] = True
    latest: tuple[float, tuple[str, float]] | None = None
    for name, indexes in seen.shape.members.items():
        there = indexes[over[indexes]]
        if not len(there) or not all(
            (name, share) in run.milestones for run in seen.past for share in MILESTONES
        ):
            continue
        ends = np.sort(state.ends[there])
        for share in MILESTONES:
            needed = math.ceil(share * len(indexes))
            if len(ends) >= needed and (latest is None or ends[needed - 1] > latest[0]):
                latest = float(ends[needed - 1]), (name, share)
    return latest
