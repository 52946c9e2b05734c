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

# A baseline is believed alone if it had less than this share of the mixture's error, and was nearer
# in so many moments. Less would follow chance: of three, one is soon a little better.
SURELY = 0.8
OFTEN = 0.75
SAME = 1e-6
SIMPLE = [CANDIDATES.index(name) for name in BASELINE_CANDIDATES]
OUTLIER = math.log(3.0)  # nobody may pull further than this from the middle of opinions

LEVEL = 0.8
FEW = 0.4  # runs that the interval holds beyond its share, as the past is a sample


@dataclass(frozen=True, slots=True)
class Prior:
    """Errors to start from, which weigh as much as so many past runs."""

    errors: Floats
    runs: int


# Before the start nothing but similar runs knows the size of the engine's own overhead; on the way
# a simulation from where the run stands is as good. Rounded from our first trials, and flat about
# these values: half or twice as many runs change no median of docs/estimates.md by a fifth.
BEFORE = Prior(np.array([0.12, 0.40, 0.12, 0.12, 0.40, 0.40, 0.45]), 10)
ON_THE_WAY = Prior(np.array([0.15, 0.15, 0.25, 0.15, 0.40, 0.40, 0.45]), 6)

# The 80 % interval of a run without a past, as logarithms of real over estimated total: about
# where 100 recorded runs were at 25 and 50 % of their time (docs/estimates.md).
ALONE_LOW, ALONE_HIGH = -0.9, 0.9
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
    prior = ON_THE_WAY if started else BEFORE
    weights, kept = _alike(lessons, place, started=started)
    if not len(kept):
        return Verdict(_shares(prior.errors))
    errors = lessons.errors[kept]
    record = _Record(_sizes(errors), lessons.groups[kept], _copies(errors), prior)
    shares = record.shares(weights)
    known, whose = np.unique(record.groups, return_inverse=True)
    if len(known) < 2:
        return Verdict(shares)
    mixed = np.empty(len(kept))
    for number in range(len(known)):
        here = whose == number
        others = record.shares(np.where(here, 0.0, weights))
        mixed[here] = [mix(row, others) for row in errors[here]]
    best = _surely_better(record, _sizes(mixed[:, None]), weights)
    if best is not None:
        shares = np.eye(len(CANDIDATES))[best]
        mixed = errors[:, best]
    low, high = _interval(mixed, weights, _count(weights, record.groups))
    error = float(_quantiles(np.abs(np.expm1(mixed)), weights, [0.5])[0])
    return Verdict(shares, low, high, error)


@dataclass(frozen=True, slots=True)
class _Record:
    """The sizes of errors, a row a moment and a column a candidate, whose they are, and how many
    candidates say the same."""

    sizes: Floats
    groups: Indexes
    copies: Floats
    prior: Prior

    def shares(self, weights: Floats) -> Floats:
        """Each candidate's share by the size of its errors."""
        typical = self.prior.errors
        if weights.sum() > 0:
            runs, before = _count(weights, self.groups), self.prior.runs
            found = _typical(self.sizes, weights)
            typical = (runs * found + before * self.prior.errors) / (runs + before)
        return _shares(typical, self.copies)


def _shares(errors: Floats, copies: float | Floats = 1.0) -> Floats:
    shares = np.maximum(errors, ERROR_MIN) ** -POWER / copies
    return np.asarray(shares / shares.sum())


def _sizes(errors: Floats) -> Floats:
    return np.asarray(np.abs(np.expm1(np.clip(errors, -2 * OUTLIER, 2 * OUTLIER))))


def _copies(errors: Floats) -> Floats:
    """How many candidates have said the same as each, itself included; they share one vote."""
    apart = np.abs(errors[:, :, None] - errors[:, None, :]).max(axis=0)
    return np.asarray((apart < SAME).sum(axis=1), dtype=np.float64)


def _surely_better(record: _Record, mixture: Floats, weights: Floats) -> int | None:
    """The baseline that was better than the mixture by more than chance, if there is one."""
    ratios = _typical(record.sizes, weights)[SIMPLE] / _typical(mixture, weights)[0]
    place = int(np.argmin(ratios))
    best = SIMPLE[place]
    wins = weights @ (record.sizes[:, best] < mixture[:, 0]) / weights.sum()
    return best if ratios[place] < SURELY and wins > OFTEN else None


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


def _typical(sizes: Floats, weights: Floats) -> Floats:
    """The size of each column's errors: half their median, half their mean."""
    order = np.argsort(sizes, axis=0, kind="stable")
    total = weights.sum()
    sums = np.cumsum(weights[order], axis=0)
    rows = np.minimum((sums < total / 2).sum(axis=0), len(sizes) - 1)
    columns = np.arange(sizes.shape[1])
    median = sizes[order[rows, columns], columns]
    mean = weights @ np.minimum(sizes, ERROR_MAX) / total
    return np.asarray((median + mean) / 2)


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
