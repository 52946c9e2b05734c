"""How an activity went in the past: quantiles and a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tocsin.wire.api.history_views import HistogramInfo, HistoryInfo
from tocsin.wire.api.run_views import ActivityInfo

BINS: Final = 12
LOGARITHMIC_FROM: Final = 20.0  # the longest against the shortest, where even bins say nothing

NO_BINS: Final = HistogramInfo(edges=[], counts=[])


def summary(
    kind: str,
    durations_s: Sequence[float],
    *,
    count: int,
    failed: int,
    versions: Sequence[str],
    recent: Sequence[ActivityInfo],
) -> HistoryInfo:
    """`durations_s` are of those that succeeded; `count` is of all that ended."""
    quantiles: list[float | None] = [None] * 3
    mean_s = None
    if durations_s:
        values = np.asarray(durations_s, dtype=float)
        mean_s = round(float(values.mean()), 6)
        quantiles = [round(float(q), 6) for q in np.quantile(values, (0.5, 0.9, 0.99))]
    p50_s, p90_s, p99_s = quantiles
    return HistoryInfo(
        type=kind,
        count=count,
        failed=failed,
        mean_s=mean_s,
        p50_s=p50_s,
        p90_s=p90_s,
        p99_s=p99_s,
        histogram=histogram(durations_s),
        versions=list(versions),
        recent=list(recent),
        exact=True,
        learned=None,
        tables=None,
        since=None,
        by_version=[],
        cost_models=[],
    )


def histogram(durations_s: Sequence[float]) -> HistogramInfo:
    """Wide bins grow where durations differ much."""
    if not durations_s:
        return NO_BINS
    values = np.asarray(durations_s, dtype=float)
    edges = edges_between(float(values.min()), float(values.max()))
    if len(edges) == 2:
        return HistogramInfo(edges=list(edges), counts=[len(durations_s)])
    counts, _ = np.histogram(values, bins=edges)
    return HistogramInfo(edges=[round(edge, 6) for edge in edges], counts=counts.tolist())


def edges_between(low: float, high: float) -> tuple[float, ...]:
    """Where bins begin and end; those of durations that differ much are wider at the long end."""
    if low == high:
        return low, high
    if low > 0 and high / low >= LOGARITHMIC_FROM:
        edges = np.geomspace(low, high, BINS + 1)
    else:
        edges = np.linspace(low, high, BINS + 1)
    edges[0], edges[-1] = low, high  # as they are, and not as the roots were rounded
    return tuple(edges.tolist())
