"""Which candidates to believe: the mixture that would have erred least in moments like this one.

The error of a candidate for a past run is found by leaving that run out of its own past, or all
runs of its size if the run at hand is of a size never seen. Past runs are looked at before their
start and at several moments on their way; the moments that count are those that look like now from
inside, as nobody knows what fraction of a run is over. The simple baselines are candidates like the
others. The interval is where the errors of the mixture have been, each past run mixed by the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.monitor.estimate.candidates import CANDIDATES
from tocsin.monitor.estimate.shape import Floats, Indexes

# Moments of a past run that are looked at. Each run has its own, or what is proportional to the
# elapsed time could be corrected to the total by the stage alone.
MOMENTS = 8
GOLDEN = 0.6180339887498949

ALIKE = 0.3  # how far apart moments may be in progress, from 0 to 1, to be alike
EVEN = 1e-6  # the weight of a moment however far; with none near, all count
FAINT = 0.02  # of the heaviest moment: lighter ones are passed over

# So many past runs in which a candidate errs by as much more as the best one errs at all take a
# factor e from its share. 1 to 8 were tried on the runs of docs/estimates.md and differ little.
PATIENCE_RUNS = 2.0
ROUND_OFF = 0.03  # errors well below this count by their square, as they are mostly chance
ERROR_MIN = 0.01
ROUNDS = 100  # after which shares were within 0.003 of where they end
STEP, LONGER, SHORTER = 0.3, 1.5, 0.3
LOG_SHARE_MIN = -30.0
OUTLIER = math.log(3.0)  # nobody may pull further than this from the middle of opinions

REST_MIN = 0.05  # of the time left: an estimate of less is counted as this
LEVEL = 0.8
FEW = 0.4  # runs that the interval holds beyond its share, as the past is a sample


def _prior(*shares: float) -> Floats:
    return np.array(shares) / sum(shares)


# Shares before there is a past, in the order of `CANDIDATES`. Before the start nothing but similar
# runs knows the engine's own overhead; on the way a simulation from where it stands is as good.
BEFORE = _prior(0.7, 0.05, 0.05, 0.05, 0.05, *[0.01] * 4)
ON_THE_WAY = _prior(0.15, 0.15, 0.4, 0.05, 0.15, *[0.01] * 4)

# When most of the work has ended: what similar runs took in all says little of what is left.
NEAR_THE_END = _prior(0.02, 0.1, 0.8, 0.01, 0.03, 0.01, 0.02, 0.01, 0.01)

# For a run of a size never seen, where all past runs had one size: they cannot say how their time
# grows, and a simulation can.
GROWN = _prior(0.05, 0.6, 0.05, 0.1, 0.05, 0.1, 0.1, 0.01, 0.01)

# The 80 % interval of a run without a past, as logarithms of real over estimated total: about
# where 100 recorded runs were at 25 and 50 % of their time (docs/estimates.md).
ALONE_LOW, ALONE_HIGH = -0.9, 0.9
RUNS_ENOUGH = 6  # with fewer past runs, the interval is part theirs and part this


@dataclass(frozen=True, slots=True)
class PastErrors:
    """Past runs at past moments, a row each: whose, which fraction of its time was over, how far
    on it seemed, and each candidate's error of the total."""

    groups: Indexes
    fractions: Floats
    places: Floats
    errors: Floats

    @property
    def started(self) -> NDArray[np.bool_]:
        return self.fractions > 0


@dataclass(frozen=True, slots=True)
class Mixture:
    """How to mix the candidates now, and how wrong the mixture has been.

    `low` and `high` are logarithms of real over estimated time left; with no past run `of_total`.
    """

    weights: Floats
    low: float = ALONE_LOW
    high: float = ALONE_HIGH
    error: float | None = None
    of_total: bool = True


def fractions(number: int) -> list[float]:
    """At which fractions of its time the past run of this number is looked at; 0 is first."""
    shift = (number * GOLDEN + 0.5) % 1.0
    return [0.0, *((moment + shift) / MOMENTS for moment in range(MOMENTS))]


def judge(lessons: PastErrors, place: Floats, *, started: bool, grown: bool = False) -> Mixture:
    """Weigh the candidates for a run that seems this far on; `grown` if nothing of its size was
    seen, nor any two sizes."""
    prior = _on_the_way(place) if started else GROWN if grown else BEFORE
    weights, kept = _alike(lessons, place, started=started)
    if not len(kept):
        return Mixture(prior)
    errors = _without_outliers(lessons.errors[kept], prior)
    known, whose = np.unique(lessons.groups[kept], return_inverse=True)
    heaviest = np.zeros(len(known))
    np.maximum.at(heaviest, whose, weights)
    runs = float(heaviest.sum())
    own = whose[None, :] == np.arange(len(known))[:, None]
    shares = _shares(
        errors,
        np.vstack([weights[None, :], np.where(own, 0.0, weights)]),
        np.concatenate([[runs], runs - heaviest]),
        prior,
    )
    if len(known) < 2:
        return Mixture(shares[0])
    mixed = np.einsum("nc,nc->n", errors, shares[1 + whose])
    low, high = _interval(_of_the_rest(mixed, lessons.fractions[kept]), weights, runs)
    error = float(_quantiles(np.abs(np.expm1(mixed)), weights, [0.5])[0])
    return Mixture(shares[0], low, high, error, of_total=False)


def _of_the_rest(errors: Floats, over: Floats) -> Floats:
    """Errors of the total as errors of the time left, when these fractions were over."""
    left = (np.exp(errors) - over) / (1 - over)
    return np.asarray(np.log(np.maximum(left, REST_MIN)))


def _on_the_way(place: Floats) -> Floats:
    """The shares to start from, by how much of the work has ended (see `Totals.place`)."""
    ended = min(max(float(place[1]), 0.0), 1.0)
    return (1 - ended) * ON_THE_WAY + ended * NEAR_THE_END


def _shares(errors: Floats, weights: Floats, runs: Floats, prior: Floats) -> Floats:
    """For each row of weights, the mixture with the least past error that is near the prior.

    `errors` has a row a moment and a column a candidate; `weights` a column a moment; `runs` says
    on how many past runs each row of weights goes. The less there are, the nearer to the prior. It
    is the minimum of the mean size of the mixture's error, in units of the best candidate's, plus
    the distance from the prior (Kullback and Leibler), found by steps in logarithms (mirror
    descent), each row's shorter after one that led up.
    """
    each = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    best = np.maximum((each @ np.abs(errors)).min(axis=1), ERROR_MIN)
    pull = (runs / PATIENCE_RUNS / best)[:, None]
    start = np.log(prior)
    logs = np.tile(start, (len(weights), 1))
    loss, slope = _loss(logs, errors, each, pull, start)
    step = np.full((len(weights), 1), STEP)
    for _ in range(ROUNDS):
        tried = logs + step * (start - slope - logs)
        tried = np.maximum(tried - tried.max(axis=1, keepdims=True), LOG_SHARE_MIN)
        tried_loss, tried_slope = _loss(tried, errors, each, pull, start)
        better = tried_loss <= loss
        logs, slope = np.where(better, tried, logs), np.where(better, tried_slope, slope)
        loss = np.where(better, tried_loss, loss)
        step = np.minimum(np.where(better, step * LONGER, step * SHORTER), STEP)
    return _as_shares(logs)


def _loss(
    logs: Floats, errors: Floats, each: Floats, pull: Floats, start: Floats
) -> tuple[Floats, Floats]:
    """What is to be least, and how the errors' part of it grows with each share."""
    shares = _as_shares(logs)
    mixed = errors @ shares.T
    sizes = np.sqrt(mixed**2 + ROUND_OFF**2)
    far = (shares * (np.log(np.maximum(shares, 1e-300)) - start)).sum(axis=1, keepdims=True)
    mean = np.einsum("gn,ng->g", each, sizes)[:, None]
    return pull * mean + far, pull * ((each * (mixed / sizes).T) @ errors)


def _as_shares(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _without_outliers(predicted: Floats, weights: Floats) -> Floats:
    """Every row, none of it far from its weighed median."""
    order = np.argsort(predicted, axis=1, kind="stable")
    sums = np.cumsum(weights[order], axis=1)
    half = np.minimum((sums < 0.5).sum(axis=1), predicted.shape[1] - 1)
    rows = np.arange(len(predicted))
    middle = predicted[rows, order[rows, half]][:, None]
    return np.asarray(np.clip(predicted, middle - OUTLIER, middle + OUTLIER))


def mix(predicted: Floats, weights: Floats) -> float:
    """The weighed mean of what the candidates say, none far from their weighed median."""
    return float(_without_outliers(predicted[None, :], weights)[0] @ weights)


def _alike(lessons: PastErrors, place: Floats, *, started: bool) -> tuple[Floats, Indexes]:
    """The weights of the moments that are like this one, and which they are."""
    among = np.flatnonzero(lessons.started == started)
    if not started or not len(among):
        return np.ones(len(among)), among
    apart = ((lessons.places[among] - place) ** 2).sum(axis=1)
    weights = np.exp(-0.5 * apart / ALIKE**2) + EVEN
    heaviest = np.max(weights)
    heavy = weights > FAINT * heaviest
    return np.asarray(weights[heavy] / heaviest), among[heavy]


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
