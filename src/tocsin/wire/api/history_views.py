"""What the API answers about the past and what is to come: histories and estimates, as types."""

from __future__ import annotations

from tocsin.wire.api.run_views import ActivityInfo, View


class LearnedInfo(View, frozen=True, kw_only=True):
    """The pipeline's tables behind an answer. Every event up to `through` is in them; with `since`
    or `until`, of those that were received from then on, or before then.

    `attempts` of them went into the answer, those of `other_versions` for want of their own.
    `problem` is why there are none to be used, or none newer.
    """

    version: int | None
    made: str | None
    age_s: float | None
    through: int | None
    since: str | None
    until: str | None
    old: bool
    attempts: int
    other_versions: list[str]
    problem: str | None


class EstimateInfo(View, frozen=True, kw_only=True):
    """The time left with an 80 % interval, as seconds and as times of the broker's clock.

    `learned` is null if nobody has made tables.
    """

    remaining_s: float
    low_s: float
    high_s: float
    total_s: float | None
    eta: str | None
    eta_low: str | None
    eta_high: str | None
    method: str
    reason: str
    past_runs: int
    past_error: float | None
    critical_path: list[str]
    learned: LearnedInfo | None


class HistogramInfo(View, frozen=True, kw_only=True):
    """One edge more than counts."""

    edges: list[float]
    counts: list[int]


class HistoryPartInfo(View, frozen=True, kw_only=True):
    """A part of a history; its attempts ended from `first` to `last`."""

    count: int
    failed: int
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    first: str | None
    last: str | None


class StatsInfo(View, frozen=True, kw_only=True):
    """One version of an activity in one workflow, as it is in the pipeline's tables."""

    workflow: str
    version: str
    runs: int
    count: int
    failed: int
    cancelled: int
    mean_s: float | None
    stddev_s: float | None
    min_s: float | None
    p10_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    max_s: float | None
    histogram: HistogramInfo
    busy_s: float | None
    wasted_s: float | None
    mean_waited_s: float | None
    mean_cpu_s: float | None
    mean_memory_bytes: float | None
    max_memory_bytes: float | None
    mean_input_bytes: float | None
    first: str | None
    last: str | None


class CostModelInfo(View, frozen=True, kw_only=True):
    """`target` = intercept + slope * bytes of input; without a slope it is the mean."""

    workflow: str
    version: str
    target: str
    count: int
    intercept: float | None
    slope: float | None
    r2: float | None
    rmse: float | None
    median_error: float | None
    input_min: float | None
    input_max: float | None
    mean: float | None


class HistoryInfo(View, frozen=True, kw_only=True):
    """How a type of activity went: durations are of attempts that succeeded.

    With the pipeline's tables it has two parts: what is in `tables`, and what came `since`, or
    outside of their window. Where `exact` is false, quantiles and bins are put together from those
    of several, and are close.
    """

    type: str
    count: int
    failed: int
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    histogram: HistogramInfo
    versions: list[str]
    recent: list[ActivityInfo]
    exact: bool
    learned: LearnedInfo | None
    tables: HistoryPartInfo | None
    since: HistoryPartInfo | None
    by_version: list[StatsInfo]
    cost_models: list[CostModelInfo]
