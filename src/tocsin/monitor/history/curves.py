"""The history of an activity from two sources: the pipeline's tables, and what happened since.

Of attempts in the tables quantiles and bins are known, and no longer each duration. One row of the
tables alone is shown as it is; with others, or with later attempts, the curves through what is
known are added up, and the quantiles of the sum are close but not exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tocsin.event.instant import rfc3339_or_none
from tocsin.monitor.history.summary import NO_BINS, edges_between
from tocsin.monitor.history.tables import CostModel, StatsRow
from tocsin.wire.api.history_views import (
    CostModelInfo,
    HistogramInfo,
    HistoryPartInfo,
    StatsInfo,
)

Floats = NDArray[np.float64]

GRID_MAX: Final = 2_000  # durations at which curves are added up
RANKS_SHOWN: Final = (0.5, 0.9, 0.99)
DURATION_S_MIN: Final = 1e-9  # durations are given to the nanosecond; less is 0


@dataclass(frozen=True, slots=True)
class Curve:
    """How many durations there are, their mean, and which share of them is below each value."""

    count: int
    mean_s: float
    values: Floats
    shares: Floats


@dataclass(frozen=True, slots=True)
class Whole:
    """All durations together."""

    mean_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    histogram: HistogramInfo = NO_BINS
    is_exact: bool = True


def curve_of_row(row: StatsRow) -> Curve | None:
    """The curve through the quantiles of a row; None if nothing of it has succeeded."""
    bins = row.bins()
    count = sum(each.count for each in bins) or row.succeeded
    mean_s = row.mean_s if row.mean_s is not None else row.p50_s
    if not count or mean_s is None:
        return None
    quantiles = ((0.0, row.min_s), (0.1, row.p10_s), (0.5, row.p50_s), (0.9, row.p90_s))
    points = [
        (share, value)
        for share, value in (*quantiles, (0.99, row.p99_s), (1.0, row.max_s))
        if value is not None
    ]
    below = 0
    for each in bins:
        below += each.count
        points.append((below / count, each.high_s))
    shares, values = np.array(sorted(points or [(0.0, mean_s), (1.0, mean_s)])).T
    return Curve(count, mean_s, np.maximum.accumulate(_to_the_nanosecond(values)), shares)


def curve_of(durations_s: Sequence[float]) -> Curve | None:
    if not durations_s:
        return None
    values = np.sort(_to_the_nanosecond(np.asarray(durations_s, dtype=float)))
    if len(values) == 1:
        values = np.repeat(values, 2)
    shares = np.linspace(0.0, 1.0, len(values))
    return Curve(len(durations_s), float(values.mean()), values, shares)


def _to_the_nanosecond(values_s: Floats) -> Floats:
    """With 0 for less than a nanosecond: the slope from 0 to a subnormal number is infinite."""
    return np.where(values_s < DURATION_S_MIN, 0.0, values_s)


def distribution_of_row(row: StatsRow) -> Whole:
    """A row as it is."""
    return Whole(row.mean_s, row.p50_s, row.p90_s, row.p99_s, histogram_of_row(row))


def histogram_of_row(row: StatsRow) -> HistogramInfo:
    bins = row.bins()
    edges = [*(each.low_s for each in bins), *(each.high_s for each in bins[-1:])]
    return HistogramInfo(edges=edges, counts=[each.count for each in bins])


def added(curves: Sequence[Curve]) -> Whole:
    """All of them together: close to the curve of their durations."""
    if not curves:
        return Whole()
    count = sum(each.count for each in curves)
    grid = np.unique(np.concatenate([each.values for each in curves]))
    if len(grid) > GRID_MAX:
        grid = grid[np.linspace(0, len(grid) - 1, GRID_MAX).astype(int)]
    edges = np.array(edges_between(float(grid[0]), float(grid[-1])))
    p50_s, p90_s, p99_s = np.interp(RANKS_SHOWN, _shares(curves, grid, count), grid).tolist()
    mean_s = sum(each.mean_s * each.count for each in curves) / count
    return Whole(
        round(mean_s, 6),
        round(p50_s, 6),
        round(p90_s, 6),
        round(p99_s, 6),
        HistogramInfo(
            edges=[round(float(edge), 6) for edge in edges],
            counts=_whole_numbers(count * np.diff(_shares(curves, edges, count)), count),
        ),
        is_exact=False,
    )


def _shares(curves: Sequence[Curve], at: Floats, count: int) -> Floats:
    """Which share of all durations is below each of these, from none to all."""
    sums = np.zeros(len(at))
    for each in curves:
        sums += each.count * np.interp(at, each.values, each.shares, left=0.0, right=1.0)
    shares = np.asarray(sums / count)
    shares[0], shares[-1] = (0.0, 1.0) if len(at) > 1 else (1.0, 1.0)
    return shares


def _whole_numbers(parts: Floats, total: int) -> list[int]:
    """As whole numbers with the same sum: those that lose most by rounding get one more."""
    floors = np.floor(parts).astype(int)
    missing = total - int(floors.sum())
    most = np.argsort(floors - parts, kind="stable")[: max(missing, 0)]
    floors[most] += 1
    found: list[int] = floors.tolist()
    return found


def part_of_rows(rows: Sequence[StatsRow], whole: Whole) -> HistoryPartInfo:
    """From the tables alone."""
    first = [row.first_ended_ns for row in rows if row.first_ended_ns is not None]
    last = [row.last_ended_ns for row in rows if row.last_ended_ns is not None]
    return HistoryPartInfo(
        count=sum(row.count for row in rows),
        failed=sum(row.failed for row in rows),
        mean_s=whole.mean_s,
        p50_s=whole.p50_s,
        p90_s=whole.p90_s,
        p99_s=whole.p99_s,
        first=rfc3339_or_none(min(first, default=None)),
        last=rfc3339_or_none(max(last, default=None)),
    )


def stats_info(row: StatsRow) -> StatsInfo:
    """One row of the tables, with its histogram."""
    derived = {
        "histogram": histogram_of_row(row),
        "first": rfc3339_or_none(row.first_ended_ns),
        "last": rfc3339_or_none(row.last_ended_ns),
    }
    names = (name for name in StatsInfo.__struct_fields__ if name not in derived)
    return msgspec.convert({**{name: getattr(row, name) for name in names}, **derived}, StatsInfo)


def cost_model_info(model: CostModel) -> CostModelInfo:
    return msgspec.convert(model, CostModelInfo, from_attributes=True)
