"""How an activity went in the past: quantiles and a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tocsin.monitor.history.tables import CostModel, StatsRow
from tocsin.monitor.records import ActivityRecord
from tocsin.wire.api.history_views import LearnedInfo

BINS: Final = 12
LOGARITHMIC_FROM: Final = 20.0  # the longest against the shortest, where even bins say nothing


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """A part of a history; from when to when its attempts ended."""

    count: int = 0
    failed: int = 0
    mean_s: float | None = None
    p50_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """How an activity went in the past: over the durations of attempts that succeeded.

    With the pipeline's tables it has two parts, and no attempt is in both.
    """

    type: str
    count: int
    failed: int
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    versions: tuple[str, ...]
    recent: tuple[ActivityRecord, ...]
    is_exact: bool = True
    """False where quantiles and bins were put together from those of parts."""
    tables: HistoryPart | None = None
    since: HistoryPart | None = None
    learned: LearnedInfo | None = None
    """Which tables, and how old they are."""
    by_version: tuple[StatsRow, ...] = ()
    cost_models: tuple[CostModel, ...] = ()


def summary(
    kind: str,
    durations_s: Sequence[float],
    *,
    count: int,
    failed: int,
    versions: Sequence[str],
    recent: Sequence[ActivityRecord],
) -> HistoryRecord:
    """`durations_s` are of those that succeeded; `count` is of all that ended."""
    edges, counts = histogram(durations_s)
    quantiles: list[float | None] = [None] * 3
    mean_s = None
    if durations_s:
        values = np.asarray(durations_s, dtype=float)
        mean_s = round(float(values.mean()), 6)
        quantiles = [round(float(q), 6) for q in np.quantile(values, (0.5, 0.9, 0.99))]
    p50_s, p90_s, p99_s = quantiles
    return HistoryRecord(
        type=kind,
        count=count,
        failed=failed,
        mean_s=mean_s,
        p50_s=p50_s,
        p90_s=p90_s,
        p99_s=p99_s,
        edges=edges,
        counts=counts,
        versions=tuple(versions),
        recent=tuple(recent),
    )


def histogram(durations_s: Sequence[float]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Edges and counts, one edge more than counts; wide bins grow where durations differ much."""
    if not durations_s:
        return (), ()
    values = np.asarray(durations_s, dtype=float)
    edges = edges_between(float(values.min()), float(values.max()))
    if len(edges) == 2:
        return edges, (len(durations_s),)
    counts, _ = np.histogram(values, bins=edges)
    return tuple(round(edge, 6) for edge in edges), tuple(int(count) for count in counts)


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
