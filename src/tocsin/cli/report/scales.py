"""Scales: where a value stands on an axis, and which values are written beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
# Durations have their own round numbers.
_ROUND_S = (
    *(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0),
    *(86_400.0, 864_000.0, 8_640_000.0, 86_400_000.0),
)
_ROUND_FINE_S = (
    *(1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0, 18_000.0, 36_000.0),
    *(72_000.0, 86_400.0, 172_800.0, 432_000.0, 864_000.0),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """From values between `low` and `high` to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.is_log:
            low, high, at = math.log(low), math.log(high), math.log(max(value, 1e-300))
        bucket = 0.5 if high <= low else min(max((at - low) / (high - low), 0.0), 1.0)
        return self.start + bucket * (self.end - self.start)


def ceiling(value: float, steps: int = 4) -> tuple[float, list[float]]:
    """A round number that is no less, and the ticks from 0 up to it."""
    if not math.isfinite(value) or value <= 0:
        return 1.0, [0.0, 1.0]
    step = _nice_step(value / steps)
    last = math.ceil(value / step - 1e-9)
    return last * step, [number * step for number in range(last + 1)]


def seconds_ceiling(value_s: float, steps: int = 4) -> tuple[float, list[float]]:
    """The same where the ticks are durations: steps of 15 min rather than of 1,000 s."""
    for size_s in (86_400.0, 3_600.0, 60.0):
        if value_s >= 2 * size_s:
            high, ticks = ceiling(value_s / size_s, steps)
            return high * size_s, [tick * size_s for tick in ticks]
    return ceiling(value_s, steps)


def log_seconds_ticks(low_s: float, high_s: float, ticks_max: int = 5) -> list[float]:
    """Round durations between the two, few enough to be written side by side."""
    fine = [tick for tick in _ROUND_FINE_S if low_s <= tick <= high_s]
    if 2 <= len(fine) <= ticks_max:
        return fine
    if len(fine) < 2:
        return [low_s, high_s] if low_s < high_s else [low_s]
    coarse = [tick for tick in _ROUND_S if low_s <= tick <= high_s]
    chosen = coarse if len(coarse) >= 2 else fine
    every = math.ceil(len(chosen) / ticks_max)
    return chosen[::every]


def _nice_step(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(nice * power for nice in _NICE if nice * power >= value * 0.9999)


@dataclass(frozen=True, slots=True)
class TimeBuckets:
    """A period of time in equal buckets, each whole hours."""

    start: datetime
    step: timedelta
    count: int

    @property
    def end(self) -> datetime:
        return self.start + self.count * self.step

    @property
    def step_s(self) -> float:
        return self.step.total_seconds()

    def begins(self, bucket: int) -> datetime:
        return self.start + bucket * self.step

    def step_name(self) -> str:
        """How long a bucket is: `day`, `week`, `6 hours`."""
        hours = round(self.step_s / 3_600)
        if hours % 24:
            return "hour" if hours == 1 else f"{hours} hours"
        days = hours // 24
        return {1: "day", 7: "week"}.get(days, f"{days} days")

    def step_phrase(self) -> str:
        """The same in a sentence: `a day`, `an hour`, `6 hours`."""
        name = self.step_name()
        if name[0].isdigit():
            return name
        return f"an {name}" if name == "hour" else f"a {name}"

    def label(self, bucket: int) -> str:
        begins = self.begins(bucket)
        return f"{begins:%Y-%m-%d %H:%M}" if self.step_s < 86_400 else f"{begins:%Y-%m-%d}"


_STEP_HOURS = (1, 2, 3, 6, 12, 24, 48, 168, 336, 672, 2_016, 8_736, 87_360)


def time_buckets(first: datetime, last: datetime, count_max: int) -> TimeBuckets:
    """From the first to the last moment in at most so many buckets."""
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    whole_s = max((last - first).total_seconds(), 0.0)
    fitting = (hours for hours in _STEP_HOURS if whole_s / (hours * 3_600) <= count_max - 1)
    step = timedelta(hours=next(fitting, math.ceil(whole_s / 3_600 / (count_max - 1))))
    start = first.replace(minute=0, second=0, microsecond=0)
    if step >= timedelta(days=1):
        start = start.replace(hour=0)
    count = math.floor((last - start) / step) + 1
    return TimeBuckets(start, step, count)


def time_ticks(buckets: TimeBuckets, ticks_max: int) -> list[tuple[int, str]]:
    """Which buckets are named on the axis, and how; the year where it changes."""
    chosen = _every_nth(range(buckets.count), ticks_max)
    found: list[tuple[int, str]] = []
    year, day = None, None
    for bucket in chosen:
        begins = buckets.begins(bucket)
        if buckets.step_s < 86_400 and buckets.count * buckets.step_s <= 2 * 86_400:
            name = f"{begins:%H:%M}"
        elif begins.date() == day:  # several buckets of one day: it is named once
            continue
        else:
            name = f"{begins.day} {begins:%b}" + (f" {begins:%Y}" if begins.year != year else "")
        year, day = begins.year, begins.date()
        found.append((bucket, name))
    return found


def _every_nth(parts: Sequence[int], ticks_max: int) -> Sequence[int]:
    return parts[:: max(1, math.ceil(len(parts) / ticks_max))]
