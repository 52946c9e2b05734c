"""Period: the time span that the page is about, in spite of clocks that are years off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.cli.report.scales import TimeBuckets, time_buckets
from tocsin.cli.report.source import Source
from tocsin.tables.schemas import MOMENT

OUTLIER_SHARE = 0.05  # so much may lie far outside: one host in twenty with a wrong clock
NEAR = 0.25  # of the period's length: what is no farther off still belongs to it
BUCKETS_MAX = 60  # more columns than that cannot be distinguished

_SOURCES = (("activity_usage", "attempts"), ("host_usage", "samples"))


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """The period in buckets, and how much of everything lies outside of it."""

    buckets: TimeBuckets
    outside: int
    what: str  # attempt, sample or run

    def where(self, column: str) -> Any:
        """A filter: within the period."""
        start, end = (pa.scalar(each, MOMENT) for each in (self.buckets.start, self.buckets.end))
        return (pc.field(column) >= start) & (pc.field(column) < end)

    def with_bucket(self, table: pa.Table, column: str) -> pa.Table:
        """The rows with the number of their bucket instead of the moment."""
        step_us = int(self.buckets.step_s * 1_000_000)
        start_us = int(self.buckets.start.timestamp() * 1_000_000)
        since = pc.subtract(table[column].cast(MOMENT).cast(pa.int64()), start_us)
        return table.append_column("bucket", pc.divide(since, step_us))


def report_period(source: Source) -> ReportPeriod | None:
    """The period of the attempts, or of host samples, or of the runs; None without any."""
    for name, weight in _SOURCES:
        by_hour = source.grouped(name, ["hour"], [(weight, "sum")])
        found = _main_period(by_hour, "hour", f"{weight}_sum", weight.removesuffix("s"))
        if found is not None:
            return found
    runs = source.grouped("runs", ["started"], [("run", "count")], shape=_by_hour)
    return _main_period(runs, "started", "run_count", "run")


def _by_hour(table: pa.Table) -> pa.Table:
    hours = pc.floor_temporal(table["started"], unit="hour")
    return table.set_column(table.column_names.index("started"), "started", hours)


def _main_period(by_hour: pa.Table, column: str, weight: str, what: str) -> ReportPeriod | None:
    known = by_hour.filter(pc.field(column).is_valid() & (pc.field(weight) > 0))
    if not known.num_rows:
        return None
    known = known.sort_by(column)
    hours: list[datetime] = known[column].to_pylist()
    weights: list[int] = known[weight].to_pylist()
    first, last = _within(hours, weights)
    outside = sum(
        each for hour, each in zip(hours, weights, strict=True) if not first <= hour <= last
    )
    return ReportPeriod(time_buckets(first, last, BUCKETS_MAX), outside, what)


def _within(hours: list[datetime], weights: list[int]) -> tuple[datetime, datetime]:
    allowed = sum(weights) * OUTLIER_SHARE / 2
    low, high = 0, len(hours) - 1
    taken = weights[low]
    while taken <= allowed and low < high:
        low += 1
        taken += weights[low]
    taken = weights[high]
    while taken <= allowed and high > low:
        high -= 1
        taken += weights[high]
    slack = max((hours[high] - hours[low]) * NEAR, timedelta(days=1))
    while low > 0 and hours[low] - hours[low - 1] <= slack:
        low -= 1
    while high < len(hours) - 1 and hours[high + 1] - hours[high] <= slack:
        high += 1
    return hours[low], hours[high]
