"""Learned: what the pipeline's tables say of activities, for estimates and histories.

The tables know more than the monitor: every run of the archive, and not the last ones alone. What
is read here stays as it was made; `through` says up to which event of the log that is. Tables may
be of a window: then only what was received within it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tocsin.event.instant import NS_PER_S

Key = tuple[str, str]
"""A workflow, and an activity of it."""

DURATION: Final = "duration_s"  # the target of the cost models that estimates are made from
LINE_COUNT_MIN: Final = 5  # attempts below which a straight line is chance
SECONDS_MIN: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Bin:
    """How many attempts took so long: from `low_s` to below `high_s`."""

    low_s: float
    high_s: float
    count: int


def _no_bins() -> tuple[Bin, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class StatsRow:
    """How one version of an activity went. Times are of the attempts that succeeded."""

    workflow: str
    activity: str
    version: str
    runs: int = 0
    count: int = 0
    failed: int = 0
    cancelled: int = 0
    mean_s: float | None = None
    stddev_s: float | None = None
    min_s: float | None = None
    p10_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    max_s: float | None = None
    busy_s: float | None = None
    wasted_s: float | None = None
    mean_waited_s: float | None = None
    mean_cpu_s: float | None = None
    mean_memory_bytes: float | None = None
    max_memory_bytes: float | None = None
    mean_input_bytes: float | None = None
    first_ended_ns: int | None = None
    last_ended_ns: int | None = None
    bins: Callable[[], tuple[Bin, ...]] = _no_bins
    """The histogram; read when somebody wants to see it."""

    @property
    def succeeded(self) -> int:
        return max(self.count - self.failed - self.cancelled, 0)


@dataclass(frozen=True, slots=True)
class CostModel:
    """A straight line over the bytes of input. Without a slope, the mean."""

    workflow: str
    activity: str
    version: str
    target: str
    count: int = 0
    intercept: float | None = None
    slope: float | None = None
    r2: float | None = None
    rmse: float | None = None
    median_error: float | None = None
    input_min: float | None = None
    input_max: float | None = None
    mean: float | None = None

    def at(self, input_bytes: float) -> float | None:
        """The value at this size. Sizes below all that were seen count as the least of them, and
        a line that falls is not followed beyond the greatest."""
        if self.slope is None or self.intercept is None:
            return self.intercept if self.mean is None else self.mean
        size = max(input_bytes, self.input_min or 0.0)
        if self.slope <= 0 and self.input_max is not None:
            size = min(size, self.input_max)
        return self.intercept + self.slope * size


@dataclass(frozen=True, slots=True)
class Expected:
    """What the tables say of an activity at hand: in its version, or else in the latest other."""

    stats: StatsRow
    line: CostModel | None
    """How its time follows its input, if that errs less than the mean does."""
    is_same_version: bool

    def seconds(self, input_bytes: float | None) -> float | None:
        """How long it takes with so much input; the median, if nobody knows how much that is."""
        if self.line is not None and input_bytes is not None and math.isfinite(input_bytes):
            fitted_s = self.line.at(input_bytes)
            if fitted_s is not None:
                return max(fitted_s, self.stats.min_s or 0.0, SECONDS_MIN)
        middle_s = self.stats.p50_s if self.stats.p50_s is not None else self.stats.mean_s
        return None if middle_s is None else max(middle_s, SECONDS_MIN)


@dataclass(frozen=True, slots=True)
class LearnedTables:
    """One version of the tables."""

    version: int
    made_ns: int
    through: int
    """Every event of the log up to this one is in."""
    stats: Mapping[Key, Sequence[StatsRow]]
    models: Mapping[Key, Sequence[CostModel]]
    workflows: Mapping[str, Sequence[str]]
    """In which workflows each activity is."""
    since_ns: int | None = None
    """What was received before is not in."""
    until_ns: int | None = None
    """What was received then or later is not in."""

    def may_hold(self, settled_seq: int, last_received_ns: int | None) -> bool:
        """False if the tables do not have what this event settled, of which the last event came
        then: it came after them, or outside of their window."""
        if settled_seq > self.through:
            return False
        if last_received_ns is None:
            return True
        is_before = self.since_ns is not None and last_received_ns < self.since_ns
        is_after = self.until_ns is not None and last_received_ns >= self.until_ns
        return not (is_before or is_after)

    def age_s(self, now_ns: int) -> float:
        return max(0.0, (now_ns - self.made_ns) / NS_PER_S)

    def rows(
        self, activity: str, *, workflow: str | None = None, version: str | None = None
    ) -> list[StatsRow]:
        """What is known of an activity, in all workflows and versions or in these."""
        among = self.workflows.get(activity, ()) if workflow is None else (workflow,)
        found = [row for name in among for row in self.stats.get((name, activity), ())]
        return [row for row in found if version is None or row.version == version]

    def cost_models(
        self, activity: str, *, workflow: str | None = None, version: str | None = None
    ) -> list[CostModel]:
        among = self.workflows.get(activity, ()) if workflow is None else (workflow,)
        found = [each for name in among for each in self.models.get((name, activity), ())]
        return [each for each in found if version is None or each.version == version]

    def expected(self, workflow: str, activity: str, version: str) -> Expected | None:
        """What is to be expected of an activity; None if the tables have no time of it."""
        rows = [row for row in self.stats.get((workflow, activity), ()) if row.p50_s is not None]
        if not rows:
            return None
        same = [row for row in rows if row.version == version]
        row = max(same or rows, key=lambda each: (each.last_ended_ns or 0, each.version))
        return Expected(row, self._line(row), bool(same))

    def _line(self, row: StatsRow) -> CostModel | None:
        for each in self.models.get((row.workflow, row.activity), ()):
            if each.version == row.version and each.target == DURATION and _is_better(each, row):
                return each
        return None


def _is_better(line: CostModel, row: StatsRow) -> bool:
    """Whether a line errs less than the mean would, each value predicted from the others."""
    if line.slope is None or line.intercept is None or line.count < LINE_COUNT_MIN:
        return False
    return line.rmse is not None and row.stddev_s is not None and line.rmse < row.stddev_s


@dataclass(frozen=True, slots=True)
class TablesStatus:
    """What there is of the tables now. Neither: nobody has made any."""

    learned: LearnedTables | None = None
    problem: str | None = None
    """Why those that are there are not used, or why older ones are."""


@dataclass(frozen=True, slots=True)
class WorkflowTables:
    """The tables as one estimate looks at them: for this workflow, and at this time."""

    learned: LearnedTables
    workflow: str
    now_ns: int

    def expected(self, activity: str, version: str) -> Expected | None:
        return self.learned.expected(self.workflow, activity, version)

    def age_s(self, row: StatsRow) -> float:
        """How long ago it was that an attempt of this row ended; at least, when it was written."""
        ended_ns = row.last_ended_ns
        if ended_ns is None or ended_ns > self.now_ns:
            ended_ns = self.learned.made_ns
        return max(0.0, (self.now_ns - ended_ns) / NS_PER_S)
