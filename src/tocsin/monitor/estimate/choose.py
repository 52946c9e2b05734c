"""Which candidate to believe: each weighs by its own past error in moments like this one.

The error of a candidate for a past run is found by leaving that run out of its own past, or all
runs of its size if the run at hand is of a size never seen. Past runs are looked at before their
start and at several moments on their way; the moments that count are those that look like now from
inside, as nobody knows what fraction of a run is over. The interval is where the errors of the
mixture so weighed have been.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.monitor.estimate.candidates import BASELINE_CANDIDATES, CANDIDATES
from tocsin.monitor.estimate.shape import Floats, Indexes

# Moments of a past run that are looked at. Each run has its own, or what is proportional to the
# elapsed time could be corrected to the total by the stage alone.
MOMENTS = 8
GOLDEN = 0.6180339887498949

ALIKE = 0.3  # how far apart moments may be in progress, from 0 to 1, to be alike
EVEN = 1e-6  # the weight of a moment however far; with none near, all count
FAINT = 0.02  # of the heaviest moment: lighter ones are passed over

POWER = 4  # a candidate with twice the error weighs 1/16
ERROR_MAX = 2.0  # one error beyond counts as this in a mean
ERROR_MIN = 1e-3

# A baseline that had less than this share of the mixture's error is believed alone. A larger share
# would follow chance: among a dozen runs, one of three is soon a little better.
SURELY = 0.8
SIMPLE = [CANDIDATES.index(name) for name in BASELINE_CANDIDATES]
OUTLIER = math.log(3.0)  # nobody may pull further than this from the middle of opinions

LEVEL = 0.8
FEW = 0.4  # runs that the interval holds beyond its share, as the past is a sample

# Errors to start from where there are few past runs, about as measured on the WfInstances by
# others' and our own first trials. PRIOR_RUNS past runs weigh as much.
PRIOR_ERRORS = np.array([0.15, 0.25, 0.20, 0.15, 0.40, 0.40, 0.45])
PRIOR_RUNS = 2

# The 80 % interval of a run without a past, as logarithms of real over estimated total; measured
# by `tests/monitor/estimate/test_alone.py` on the runs of docs/estimates.md.
ALONE_LOW, ALONE_HIGH = -0.7, 1.1
RUNS_ENOUGH = 6  # with fewer past runs, the interval is part theirs and part this


@dataclass(frozen=True, slots=True)
class Lessons:
    """Past runs at past moments, a row each: whose, how far on it seemed, each one's error."""

    groups: Indexes
    started: NDArray[np.bool_]
    places: Floats
    errors: Floats


@dataclass(frozen=True, slots=True)
class Verdict:
    """How to mix the candidates now, and how wrong the mixture has been, in logarithms."""

    weights: Floats
    low: float = ALONE_LOW
    high: float = ALONE_HIGH
    error: float | None = None


def fractions(number: int) -> list[float]:
    """At which fractions of its time the past run of this number is looked at; 0 is first."""
    shift = (number * GOLDEN + 0.5) % 1.0
    return [0.0, *((moment + shift) / MOMENTS for moment in range(MOMENTS))]


def judge(lessons: Lessons, place: Floats, *, started: bool) -> Verdict:
    """Weigh the candidates for a run that seems this far on."""
    weights, kept = _alike(lessons, place, started=started)
    if not len(kept):
        return Verdict(_shares(PRIOR_ERRORS))
    sizes = np.abs(np.expm1(np.clip(lessons.errors[kept], -2 * OUTLIER, 2 * OUTLIER)))
    order = np.argsort(sizes, axis=0, kind="stable")
    groups = lessons.groups[kept]
    shares = _weigh(sizes, order, weights, groups)
    known, whose = np.unique(groups, return_inverse=True)
    if len(known) < 2:
        return Verdict(shares)
    mixed = np.empty(len(kept))
    for number in range(len(known)):
        here = whose == number
        others = _weigh(sizes, order, np.where(here, 0.0, weights), groups)
        mixed[here] = [mix(row, others) for row in lessons.errors[kept[here]]]
    together = np.abs(np.expm1(np.clip(mixed, -2 * OUTLIER, 2 * OUTLIER)))[:, None]
    simple = _typical(sizes, order, weights)[SIMPLE]
    if simple.min() < SURELY * _typical(together, np.argsort(together, axis=0), weights)[0]:
        best = SIMPLE[int(np.argmin(simple))]
        shares = np.eye(len(CANDIDATES))[best]
        mixed = lessons.errors[kept, best]
    low, high = _interval(mixed, weights, _count(weights, groups))
    error = float(_quantiles(np.abs(np.expm1(mixed)), weights, [0.5])[0])
    return Verdict(shares, low, high, error)


def mix(said: Floats, weights: Floats) -> float:
    """The weighed mean of what the candidates say, none far from their weighed median."""
    order = np.argsort(said, kind="stable")
    half = int(np.searchsorted(np.cumsum(weights[order]), 0.5))
    middle = said[order[min(half, len(order) - 1)]]
    return float(weights @ np.clip(said, middle - OUTLIER, middle + OUTLIER))


def _alike(lessons: Lessons, place: Floats, *, started: bool) -> tuple[Floats, Indexes]:
    """The weights of the moments that are like this one, and which they are."""
    among = np.flatnonzero(lessons.started == started)
    if not started or not len(among):
        return np.ones(len(among)), among
    apart = ((lessons.places[among] - place) ** 2).sum(axis=1)
    weights = np.exp(-0.5 * apart / ALIKE**2) + EVEN
    heavy = weights > FAINT * weights.max()
    return np.asarray(weights[heavy] / weights.max()), among[heavy]


def _count(weights: Floats, groups: Indexes) -> float:
    """How many past runs (or sizes) there are to go by: each counts by its heaviest moment."""
    heaviest = np.zeros(int(groups.max()) + 1)
    np.maximum.at(heaviest, groups, weights)
    return float(heaviest.sum())


def _weigh(sizes: Floats, order: Indexes, weights: Floats, groups: Indexes) -> Floats:
    """Each candidate's share by the size of its errors."""
    if weights.sum() <= 0:
        return _shares(PRIOR_ERRORS)
    runs = _count(weights, groups)
    typical = _typical(sizes, order, weights)
    found = (runs * typical + PRIOR_RUNS * PRIOR_ERRORS) / (runs + PRIOR_RUNS)
    return _shares(np.maximum(found, ERROR_MIN))


def _typical(sizes: Floats, order: Indexes, weights: Floats) -> Floats:
    """The size of each column's errors: half their median, half their mean."""
    total = weights.sum()
    sums = np.cumsum(weights[order], axis=0)
    rows = np.minimum((sums < total / 2).sum(axis=0), len(sizes) - 1)
    columns = np.arange(sizes.shape[1])
    median = sizes[order[rows, columns], columns]
    mean = weights @ np.minimum(sizes, ERROR_MAX) / total
    return np.asarray((median + mean) / 2)


def _shares(errors: Floats) -> Floats:
    weights = errors**-POWER
    return np.asarray(weights / weights.sum())


def _interval(mixed: Floats, weights: Floats, runs: float) -> tuple[float, float]:
    """Where 80 % of errors were: half by their size alone, half by each side."""
    level = min(LEVEL + FEW / runs, 1.0)
    even = float(_quantiles(np.abs(mixed), weights, [level])[0])
    tail = (1 - level) / 2
    below, above = _quantiles(-mixed, weights, [tail, 1 - tail])
    low = min((float(below) - even) / 2, 0.0)
    high = max((float(above) + even) / 2, 0.0)
    alone = max(RUNS_ENOUGH - runs, 0.0) / RUNS_ENOUGH
    return low + alone * (ALONE_LOW - low), high + alone * (ALONE_HIGH - high)


def _quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> Floats:
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    return np.interp(levels, (sums - weights[order] / 2) / sums[-1], values[order])


def chosen(weights: Floats, share_min: float = 0.1) -> str:
    """The candidates that count, heaviest first, for people."""
    order: Sequence[int] = np.argsort(-weights, kind="stable").tolist()
    named = [CANDIDATES[place] for place in order if weights[place] >= share_min]
    return " + ".join(named or [CANDIDATES[order[0]]])
