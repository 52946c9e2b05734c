"""Which candidate to believe: each weighs by its own past error at this stage of a run.

The error of a candidate for a past run is found by leaving that run out of its own past, or all
runs of its size if the run at hand is of a size never seen. The interval is where the errors of
the mixture so weighed have been.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tocsin.monitor.estimate.candidates import CANDIDATES
from tocsin.monitor.estimate.shape import Floats
from tocsin.monitor.estimate.similar import MAD_TO_SD

STAGES = (0.0, 0.25, 0.5, 0.75)
ROUNDS = 3  # how far on a run is depends on its total, and the other way round

POWER = 4  # a candidate with twice the error weighs 1/16
BIAS_DOUBT = 1.0  # James and Stein (1961): what may be chance is taken off a bias
TINY = 1e-9
ERROR_MAX = 2.0  # one error beyond counts as this in a mean
ERROR_MIN = 1e-3
OUTLIER = math.log(3.0)  # nobody may pull further than this from the middle of opinions
LEVEL = 0.8

# What is proportional to the elapsed time has, at a known stage, a bias that would tell the total.
# Nobody knows the stage of a run that goes on, so these are taken as they are.
UNCORRECTED = ("fraction of tasks", "fraction of work")

# Errors to start from where there are few past runs: medians over nine applications of the
# WfInstances at 0 to 75 % of a run. PRIOR_RUNS past runs weigh as much.
PRIOR_ERRORS = (0.15, 0.20, 0.20, 0.15, 0.40, 0.40, 0.45)
PRIOR_RUNS = 2

# The 80 % interval of a run without a past, as logarithms of real over estimated total.
ALONE_LOW, ALONE_HIGH = -0.7, 1.1
RUNS_ENOUGH = 6  # with fewer past runs, the interval is part theirs and part this


@dataclass(frozen=True, slots=True)
class Verdict:
    """How to mix candidates at one stage, and how wrong the mixture has been, in logarithms."""

    bias: Floats
    weights: Floats
    low: float = ALONE_LOW
    high: float = ALONE_HIGH
    error: float | None = None

    def total_log(self, said: Floats) -> float:
        """The weighed mean of what the candidates say, none far from their weighed median."""
        corrected = said - self.bias
        order = np.argsort(corrected, kind="stable")
        half = int(np.searchsorted(np.cumsum(self.weights[order]), 0.5))
        middle = corrected[order[min(half, len(order) - 1)]]
        return float(self.weights @ np.clip(corrected, middle - OUTLIER, middle + OUTLIER))


Verdicts = Mapping[float, Verdict]


def judge(errors: Mapping[float, Floats]) -> Verdicts:
    """From errors by stage, one row a past run and one column a candidate, in logarithms.

    The mixture's own error for a run is found with weights from the other runs alone, and at the
    stage that it believes to be at, as it will be when the total is not known.
    """
    verdicts = {stage: _weigh(rows) for stage, rows in errors.items()}
    runs = len(errors[STAGES[0]])
    mixed: dict[float, list[float]] = {stage: [] for stage in STAGES}
    for run in range(runs if runs > 1 else 0):
        others = {stage: _weigh(np.delete(rows, run, axis=0)) for stage, rows in errors.items()}
        for stage in STAGES:
            _, total_log = settle(others, errors[stage][run], stage)
            mixed[stage].append(total_log)
    return {
        stage: _with_interval(verdict, np.array(mixed[stage]))
        for stage, verdict in verdicts.items()
    }


def settle(verdicts: Verdicts, said: Floats, elapsed_s: float) -> tuple[Verdict, float]:
    """A verdict and the logarithm of the total that it gives, where the one fits the other."""
    floor = math.log(elapsed_s) if elapsed_s > 0 else -math.inf
    total_log = max(float(np.median(said)), floor)
    verdict = verdicts[STAGES[0]]
    for _ in range(ROUNDS):
        verdict = between(verdicts, elapsed_s * math.exp(-total_log))
        total_log = max(verdict.total_log(said), floor)
    return verdict, total_log


def _weigh(errors: Floats) -> Verdict:
    """Each candidate's bias, as far as it is more than chance, and its weight."""
    runs = len(errors)
    typical = np.array(PRIOR_ERRORS)
    bias = np.zeros(len(CANDIDATES))
    if runs:
        middle = np.median(errors, axis=0)
        scatter = MAD_TO_SD * np.median(np.abs(errors - middle), axis=0)
        chance = BIAS_DOUBT * scatter**2 / runs
        bias = middle * np.maximum(1 - chance / (middle**2 + TINY), 0.0) * runs / (runs + 1)
        bias[[CANDIDATES.index(name) for name in UNCORRECTED]] = 0.0
        sizes = np.abs(np.expm1(np.clip(errors - bias, -OUTLIER * 2, OUTLIER * 2)))
        found = (np.median(sizes, axis=0) + np.minimum(sizes, ERROR_MAX).mean(axis=0)) / 2
        typical = (runs * found + PRIOR_RUNS * typical) / (runs + PRIOR_RUNS)
    weights = np.maximum(typical, ERROR_MIN) ** -POWER
    return Verdict(bias, weights / weights.sum())


def _with_interval(verdict: Verdict, mixed: Floats) -> Verdict:
    """Where 80 % of errors were: half by their size alone, half by each side, few runs counted."""
    runs = len(mixed)
    if not runs:
        return verdict
    rank = min(math.ceil((runs + 1) * LEVEL), runs)
    even = float(np.sort(np.abs(mixed))[rank - 1])
    tail = max((1 - LEVEL) / 2 - 0.5 / runs, 0.0)
    below, above = np.quantile(-mixed, [tail, 1 - tail])
    low = min((float(below) - even) / 2, 0.0)
    high = max((float(above) + even) / 2, 0.0)
    alone = max(RUNS_ENOUGH - runs, 0) / RUNS_ENOUGH
    return replace(
        verdict,
        low=low + alone * (ALONE_LOW - low),
        high=high + alone * (ALONE_HIGH - high),
        error=float(np.median(np.abs(np.expm1(mixed)))),
    )


def between(verdicts: Verdicts, fraction: float) -> Verdict:
    """The verdict for a run this far on: between those of the stages about it.

    After the last stage errors shrink with what is left.
    """
    last = STAGES[-1]
    if fraction >= last:
        shrunk = max(1.0 - fraction, 0.0) / (1.0 - last)
        end = verdicts[last]
        error = None if end.error is None else end.error * shrunk
        return Verdict(end.bias * shrunk, end.weights, end.low * shrunk, end.high * shrunk, error)
    place = max(number for number, stage in enumerate(STAGES) if stage <= max(fraction, 0.0))
    before, after = STAGES[place], STAGES[place + 1]
    share = (max(fraction, 0.0) - before) / (after - before)
    return _mix(verdicts[before], verdicts[after], share)


def _mix(one: Verdict, other: Verdict, share: float) -> Verdict:
    error = None
    if one.error is not None and other.error is not None:
        error = one.error + share * (other.error - one.error)
    return Verdict(
        one.bias + share * (other.bias - one.bias),
        one.weights + share * (other.weights - one.weights),
        one.low + share * (other.low - one.low),
        one.high + share * (other.high - one.high),
        error,
    )


def chosen(weights: Floats, share_min: float = 0.1) -> str:
    """The candidates that count, heaviest first, for people."""
    order: Sequence[int] = np.argsort(-weights, kind="stable").tolist()
    named = [CANDIDATES[place] for place in order if weights[place] >= share_min]
    return " + ".join(named or [CANDIDATES[order[0]]])
