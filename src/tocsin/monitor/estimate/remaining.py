"""The rest of a run, simulated from where it stands.

Tasks that have ended correct the models of their type, and a little those of the others. Each task
still to come gets its own place in its type's distribution, so that the longest of a hundred is
long: one simulation then gives the mean of many with random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tocsin.monitor.estimate.run_digest import RANKS
from tocsin.monitor.estimate.runtimes import Runtimes, TypeModel, unknown_type
from tocsin.monitor.estimate.schedule import Timetable, schedule
from tocsin.monitor.estimate.shape import Floats, Indexes, Shape
from tocsin.monitor.estimate.state import RUNTIME_S_MIN, State

GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly and in no order
OVERDUE = 0.1  # a task beyond all its kin is given this share of its time more
DRAG_MIN, DRAG_MAX = 0.5, 3.0
DRAG_PRIOR = 5  # so many ended tasks speak for no drag
LOG_S_MAX = 30.0
GENERATIONS = 3  # through so many tasks that have not ended is something inherited
VARIANCE_MIN = 1e-3
ERROR_MAX = 1.5  # of a type's level in a past run: beyond it is an accident
PAIRS_PRIOR = 5.0  # so many past runs speak for all pairs of types being alike

WAITING, RUNNING, ENDED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left: when who runs, and how this run compares with others."""

    timetable: Timetable
    drag: float
    pace: float | None

    @property
    def remaining_s(self) -> float:
        return self.timetable.length_s * self.drag


@dataclass(frozen=True, slots=True)
class _Seen:
    """One type in this run: which tasks ended, run and wait, and how the ended ones differ."""

    model: TypeModel
    places: Mapping[int, Indexes]
    indexes: Indexes
    ages: Floats
    deviation: float
    count: int
    scale: Floats


def rests(shape: Shape, models: Runtimes, state: State, stretch: float) -> tuple[Rest, Rest]:
    """What is left of a run if it goes on as past runs did, and if it goes on at its own pace.

    `stretch` is seconds by the clock for a second of work. Whether a slow start lasts differs from
    machine to machine: who was right about past runs is believed (`choose`).
    """
    kinds = np.full(shape.count, WAITING, dtype=np.int8)
    kinds[list(state.ended)] = ENDED
    kinds[list(state.running)] = RUNNING
    seen = {
        name: _look(indexes, kinds[indexes], models, models.types.get(name), state, stretch)
        for name, indexes in shape.members.items()
    }
    corrections, pace = _corrections(seen, models)
    if pace is not None and any(each.model.heredity for each in seen.values()):
        models = _inherited(shape, models, seen, corrections, state)
        seen = {
            name: _look(indexes, kinds[indexes], models, models.types.get(name), state, stretch)
            for name, indexes in shape.members.items()
        }
        corrections, _ = _corrections(seen, models)
    drag = _drag(shape, state)
    usual = Rest(_simulated(shape, seen, {}, state, stretch), drag, pace)
    if pace is None:
        return usual, usual
    return usual, Rest(_simulated(shape, seen, corrections, state, stretch), drag, pace)


def _inherited(
    shape: Shape,
    models: Runtimes,
    seen: Mapping[str, _Seen],
    corrections: Mapping[str, float],
    state: State,
) -> Runtimes:
    """The models with what each task has from those before it: who follows a long one is long."""
    own, known = np.zeros(shape.count), np.zeros(shape.count)
    passes = np.zeros(shape.count)
    for name, each in seen.items():
        ended = each.places[ENDED]
        at = each.indexes[ended]
        own[at] = state.logs[at] - each.model.levels[ended] - corrections[name]
        known[at] = 1.0
        passes[each.indexes] = each.model.heredity
    here, sure = own, known
    for _ in range(GENERATIONS):
        kin, share = shape.over_parents(here, sure)
        here = np.where(known > 0, own, passes * kin)
        sure = np.where(known > 0, 1.0, share * (passes > 0))
    kin, share = shape.over_parents(here, sure)
    types = {}
    for name, model in models.types.items():
        at = shape.members[name]
        scale = 1.0 - share[at] * (1.0 - model.narrowed)
        types[name] = replace(
            model, levels=model.levels + model.heredity * share[at] * kin[at], scale=scale
        )
    return replace(models, types=types)


def _simulated(
    shape: Shape,
    seen: Mapping[str, _Seen],
    corrections: Mapping[str, float],
    state: State,
    stretch: float,
) -> Timetable:
    log_seconds = np.zeros(shape.count)
    left: dict[int, float] = {}
    for name, each in seen.items():
        correction = corrections.get(name, 0.0)
        waiting = each.places[WAITING]
        if len(waiting):
            shuffled = _shuffled(len(waiting))
            log_seconds[each.indexes[waiting]] = (
                each.model.levels[waiting]
                + correction
                + np.interp(shuffled, RANKS, each.model.deviations) * each.scale[waiting]
            )
        left.update(_left(each, correction, stretch))
    seconds = np.exp(np.minimum(log_seconds, LOG_S_MAX)) * stretch
    return schedule(shape, seconds.tolist(), ended=state.ended, left=left)


def _look(
    indexes: Indexes,
    kinds: NDArray[np.int8],
    models: Runtimes,
    known: TypeModel | None,
    state: State,
    stretch: float,
) -> _Seen:
    places = {kind: np.flatnonzero(kinds == kind) for kind in (WAITING, RUNNING, ENDED)}
    ended = state.logs[indexes[places[ENDED]]]
    model = known or _guess(models, state, ended, len(indexes))
    ages_s = [state.elapsed_s - state.running[i] for i in indexes[places[RUNNING]].tolist()]
    ages = np.log(np.maximum(np.array(ages_s) / stretch, RUNTIME_S_MIN))
    scale = np.ones(len(indexes)) if model.scale is None else model.scale
    deviation = 0.0
    if len(ended):
        above = np.sort(ended - model.levels[places[ENDED]])
        ranks = _ranks(above, np.sort(ages - model.levels[places[RUNNING]]))
        usual = np.interp(ranks, RANKS, model.deviations) * float(scale[places[ENDED]].mean())
        deviation = float(np.mean(above - usual))
    return _Seen(model, places, indexes, ages, deviation, len(ended), scale)


def _guess(models: Runtimes, state: State, ended: Floats, count: int) -> TypeModel:
    """For a type without a past: as its own ended tasks, or as any task here or ever."""
    if len(ended):
        level = float(np.median(ended))
    elif len(state.ended):
        level = float(np.median(state.logs[list(state.ended)]))
    elif models.types:
        level = float(np.median([model.levels[0] for model in models.types.values()]))
    else:
        level = 0.0
    return unknown_type(np.full(count, level))


def _ranks(ended: Floats, ages: Floats) -> Floats:
    """Where the ended tasks stand among all that started (Kaplan and Meier, 1958).

    Those that end first are the short ones; to compare them with a type's mean would flatter.
    """
    values = np.concatenate([ended, ages])
    order = np.argsort(values, kind="stable")
    is_end = order < len(ended)
    at_risk = np.arange(len(values), 0, -1)
    survival = np.cumprod(np.where(is_end, 1.0 - 1.0 / at_risk, 1.0))
    before = np.concatenate([[1.0], survival[:-1]])
    return np.asarray((1.0 - (before + survival) / 2)[is_end])


def _corrections(
    seen: Mapping[str, _Seen], models: Runtimes
) -> tuple[dict[str, float], float | None]:
    """By how much each type's level differs here, and the run's own pace (1: as usual).

    What types have in common, as past runs show it, passes from those that have ended to those
    that have not: a slow machine slows all, large data those that read it.
    """
    names = list(seen)
    known = [place for place, name in enumerate(names) if seen[name].count]
    if not known:
        return dict.fromkeys(seen, 0.0), None
    among, runs = _covariance(names, seen, models.shared)
    here = [seen[names[place]] for place in known]
    found = np.array([each.deviation for each in here])
    noise = np.diag([_noise(each) for each in here])
    inner = among[np.ix_(known, known)]
    # How much runs differ, this one counted in: what was never so slow before can be now.
    surprise = float(found @ np.linalg.solve(inner + noise, found)) / len(known)
    wider = max((runs + surprise) / (runs + 1), 1.0)
    predicted = wider * among[:, known] @ np.linalg.solve(wider * inner + noise, found)
    number = sum(each.count for each in here)
    mean = sum(each.deviation * each.count for each in here) / number
    pace = math.exp(min(max(mean, -LOG_S_MAX), LOG_S_MAX))
    return dict(zip(names, predicted.tolist(), strict=True)), pace


def _covariance(
    names: Sequence[str], seen: Mapping[str, _Seen], shared: float
) -> tuple[Floats, int]:
    """How the levels of types vary together from run to run, and in how many runs that was seen.

    With few past runs, all pairs are taken to have the same in common.
    """
    among = np.full((len(names), len(names)), shared)
    among += np.diag([_own(seen[name], shared) for name in names])
    runs = sorted({run for each in seen.values() for run in each.model.errors})
    if not runs:
        return among, 0
    errors = np.array([[seen[n].model.errors.get(run, 0.0) for n in names] for run in runs])
    errors = np.clip(errors, -ERROR_MAX, ERROR_MAX)
    share = len(runs) / (len(runs) + PAIRS_PRIOR)
    sampled = errors.T @ errors / len(runs)
    mixed = (1 - share) * among + share * sampled
    np.fill_diagonal(mixed, np.maximum(np.diagonal(mixed), np.diagonal(among)))
    return mixed, len(runs)


def _own(each: _Seen, shared: float) -> float:
    return max(each.model.spread**2 - shared, VARIANCE_MIN)


def _noise(each: _Seen) -> float:
    scale = float(each.scale[each.places[ENDED]].mean()) if each.count else 1.0
    return (each.model.scatter * scale) ** 2 / max(each.count, 1)


def _shuffled(count: int) -> Floats:
    """The middles of `count` equal parts of 0..1, in no order but always the same."""
    keys = (np.arange(count) * GOLDEN + 0.5) % 1.0
    ranks = np.empty(count)
    ranks[np.argsort(keys, kind="stable")] = np.arange(count)
    return np.asarray((ranks + 0.5) / count)


def _left(each: _Seen, correction: float, stretch: float) -> dict[int, float]:
    """Seconds left of the tasks that run: longer than they have run, as their kin were."""
    running = each.places[RUNNING]
    if not len(running):
        return {}
    levels = each.model.levels[running] + correction
    deviations = each.model.deviations * float(each.scale[running].mean())
    survived = np.interp(each.ages - levels, deviations, RANKS, left=0.0, right=1.0)
    share = np.empty(len(running))
    share[np.argsort(-each.ages, kind="stable")] = (np.arange(len(running)) + 0.5) / len(running)
    ranks = survived + (1 - survived) * share
    logs = levels + np.interp(ranks, RANKS, deviations)
    totals_s = np.exp(np.minimum(logs, LOG_S_MAX)) * stretch
    ages_s = np.exp(each.ages) * stretch
    totals_s = np.where(totals_s <= ages_s, ages_s * (1 + OVERDUE), totals_s)
    return dict(zip(each.indexes[running].tolist(), (totals_s - ages_s).tolist(), strict=True))


def _drag(shape: Shape, state: State) -> float:
    """How much longer the run took to get here than its tasks alone explain."""
    ended = [index for index in state.ended if math.isfinite(state.ends[index])]
    if not ended or state.elapsed_s <= 0:
        return 1.0
    seconds = np.zeros(shape.count)
    seconds[ended] = state.ends[ended] - state.starts[ended]
    for index, start_s in state.running.items():
        seconds[index] = state.elapsed_s - start_s
    length_s = schedule(shape, seconds.tolist(), only=[*ended, *state.running]).length_s
    if length_s <= 0:
        return 1.0
    drag = min(max(state.elapsed_s / length_s, DRAG_MIN), DRAG_MAX)
    return float(drag ** (len(ended) / (len(ended) + DRAG_PRIOR)))
