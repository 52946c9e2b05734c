"""Slower than usual: an alert with a stated rate of false alarms, from order statistics alone.

Of n past durations and one more like them, the one more is the largest with chance 1 / (n + 1),
whatever their distribution. So the limit is a past duration that is exceeded by few enough, and
with less history than the rate needs there is no alert at all. Activities of one run are alike
(one machine, one day), so the limit is also one that no single past run exceeded more often, and
some of what runs differ by is added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.durations import duration_text
from tocsin.monitor.estimate.shape import Floats

FALSE_ALARM_RATE = 0.01
RUNS_MIN = 3
RUN_RATE = 0.1  # of whole runs there are few: 1 % would need 99 of them
ALLOWANCE = 0.2  # of the standard deviation between runs; 0 gave 0.7 % false alarms, 1 gave 0.01 %
SLOPE_MAX = 1.5
SLOPE_PRIOR = 1.0
SECONDS_MIN = 1e-3


@dataclass(frozen=True, slots=True)
class PastDuration:
    """How long an activity took in a past run; `input_bytes` if they are known."""

    seconds: float
    run: str
    version: str = ""
    input_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DurationLimit:
    """What is usual for an activity: beyond the limit is slower than all but few."""

    limit_log: float
    slope: float
    middle_log: float
    durations: int
    runs: int
    rate: float

    def limit_s(self, input_bytes: int | None = None) -> float:
        """The time after which an activity with so much input is slower than usual."""
        return math.exp(self.limit_log + self.slope * _size(input_bytes))

    def usual_s(self, input_bytes: int | None = None) -> float:
        return math.exp(self.middle_log + self.slope * _size(input_bytes))


@dataclass(frozen=True, slots=True)
class SlowAlert:
    """An activity that takes longer than usual."""

    took_s: float
    limit_s: float
    usual_s: float
    why: str


def usual(
    past: Sequence[PastDuration], version: str = "", rate: float = FALSE_ALARM_RATE
) -> DurationLimit | None:
    """What is usual for an activity of this version; None if there is too little history.

    At most `rate` of normal activities are beyond the limit.
    """
    same = [
        each
        for each in past
        if each.version == version and math.isfinite(each.seconds) and each.seconds >= 0
    ]
    runs: dict[str, list[int]] = {}
    for number, each in enumerate(same):
        runs.setdefault(each.run, []).append(number)
    above = math.floor(rate * (len(same) + 1))
    if above < 1 or len(runs) < RUNS_MIN:
        return None
    logs = np.log(np.maximum([each.seconds for each in same], SECONDS_MIN))
    slope = _slope(logs, same, runs)
    rest = logs - slope * np.array([_size(each.input_bytes) for each in same])
    pooled = float(np.sort(rest)[len(rest) - above])
    by_run = [rest[numbers] for numbers in runs.values()]
    highest = max(float(np.quantile(values, 1 - rate)) for values in by_run)
    between = float(np.std([np.median(values) for values in by_run], ddof=1))
    return DurationLimit(
        limit_log=max(pooled, highest) + ALLOWANCE * between,
        slope=slope,
        middle_log=float(np.median(rest)),
        durations=len(same),
        runs=len(runs),
        rate=rate,
    )


def slower(
    known: DurationLimit | None, took_s: float, input_bytes: int | None = None
) -> SlowAlert | None:
    """The alert for an activity that has taken, or takes already, so many seconds; or None."""
    if known is None or not took_s > known.limit_s(input_bytes):
        return None
    limit_s, usual_s = known.limit_s(input_bytes), known.usual_s(input_bytes)
    why = (
        f"It has taken {duration_text(took_s)}; usual is {duration_text(usual_s)}. Fewer than "
        f"{known.rate:.0%} of {known.durations:,} in {known.runs} past runs took more than "
        f"{duration_text(limit_s)}."
    )
    return SlowAlert(took_s, limit_s, usual_s, why)


def run_alert(
    ratios: Sequence[float], estimated_s: float, took_s: float, rate: float = RUN_RATE
) -> SlowAlert | None:
    """The alert for a run that takes, or took, longer than it was estimated to before its start.

    `ratios` are real over estimated totals of past runs, each estimated without itself
    (`estimate.past_ratios`). With fewer than the rate needs there is no alert.
    """
    valid = sorted(ratio for ratio in ratios if math.isfinite(ratio) and ratio > 0)
    above = math.floor(rate * (len(valid) + 1))
    if above < 1 or not estimated_s > 0:
        return None
    limit_s = estimated_s * max(valid[len(valid) - above], 1.0)
    if not took_s > limit_s:
        return None
    why = (
        f"The run has taken {duration_text(took_s)}; {duration_text(estimated_s)} were estimated "
        f"before its start. At most {rate:.0%} of {len(valid)} past runs took more than "
        f"{limit_s / estimated_s:.1f} times their estimate."
    )
    return SlowAlert(took_s, limit_s, estimated_s, why)


def _size(input_bytes: int | None) -> float:
    return math.log1p(input_bytes) if input_bytes is not None and input_bytes > 0 else 0.0


def _slope(logs: Floats, past: Sequence[PastDuration], runs: Mapping[str, Sequence[int]]) -> float:
    """How durations grow with input inside runs, both in logarithms; 0 where sizes are missing."""
    if any(each.input_bytes is None for each in past):
        return 0.0
    sizes = np.array([_size(each.input_bytes) for each in past])
    squares = products = 0.0
    for numbers in runs.values():
        beside = sizes[list(numbers)] - sizes[list(numbers)].mean()
        squares += float(beside @ beside)
        products += float(beside @ (logs[list(numbers)] - logs[list(numbers)].mean()))
    return min(max(products / (squares + SLOPE_PRIOR), 0.0), SLOPE_MAX)
