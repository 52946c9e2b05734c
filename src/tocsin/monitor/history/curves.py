"""The history of an activity from two sources: the pipeline's tables, and what happened since.

Of attempts in the tables quantiles and bins are known, and no longer each duration. One row of the
tables alone is shown as it is; with others, or with later attempts, the curves through what is
known are added up, and the quantiles of the sum are close but not exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.event.instant import rfc3339_or_none
from tocsin.monitor.history.summary import HistoryPart, edges_between
from tocsin.monitor.history.tables import StatsRow

Floats = NDArray[np.float64]

GRID_MAX: Final = 2_000  # durations at which curves are added up
RANKS_TOLD: Final = (0.5, 0.9, 0.99)


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
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
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
    return Curve(count, mean_s, np.maximum.accumulate(values), shares)


def curve_of(durations_s: Sequence[float]) -> Curve | None:
    if not durations_s:
        return None
    values = np.sort(np.asarray(durations_s, dtype=float))
    if len(values) == 1:
        values = np.repeat(values, 2)
    shares = np.linspace(0.0, 1.0, len(values))
    return Curve(len(durations_s), float(values.mean()), values, shares)


def distribution_of_row(row: StatsRow) -> Whole:
    """A row as it is."""
    bins = row.bins()
    edges = (*(each.low_s for each in bins), *(each.high_s for each in bins[-1:]))
    counts = tuple(each.count for each in bins)
    return Whole(row.mean_s, row.p50_s, row.p90_s, row.p99_s, edges, counts)


def added(curves: Sequence[Curve]) -> Whole:
    """All of them together: close to the curve of their durations."""
    if not curves:
        return Whole()
    count = sum(each.count for each in curves)
    grid = np.unique(np.concatenate([each.values for each in curves]))
    if len(grid) > GRID_MAX:
        grid = grid[np.linspace(0, len(grid) - 1, GRID_MAX).astype(int)]
    edges = np.array(edges_between(float(grid[0]), float(grid[-1])))
    p50_s, p90_s, p99_s = np.interp(RANKS_TOLD, _shares(curves, grid, count), grid).tolist()
    mean_s = sum(each.mean_s * each.count for each in curves) / count
    return Whole(
        round(mean_s, 6),
        round(p50_s, 6),
        round(p90_s, 6),
        round(p99_s, 6),
        tuple(round(float(edge), 6) for edge in edges),
        _whole_numbers(count * np.diff(_shares(curves, edges, count)), count),
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


def _whole_numbers(parts: Floats, total: int) -> tuple[int, ...]:
    """As whole numbers with the same sum: those that lose most by rounding get one more."""
    floors = np.floor(parts).astype(int)
    missing = total - int(floors.sum())
    most = np.argsort(floors - parts, kind="stable")[: max(missing, 0)]
    floors[most] += 1
    return tuple(floors.tolist())


def part_of_rows(rows: Sequence[StatsRow], whole: Whole) -> HistoryPart:
    """From the tables alone."""
    first = [row.first_ended_ns for row in rows if row.first_ended_ns is not None]
    last = [row.last_ended_ns for row in rows if row.last_ended_ns is not None]
    return HistoryPart(
        sum(row.count for row in rows),
        sum(row.failed for row in rows),
        whole.mean_s,
        whole.p50_s,
        whole.p90_s,
        whole.p99_s,
        rfc3339_or_none(min(first, default=None)),
        rfc3339_or_none(max(last, default=None)),
    )
