"""Estimates of runs as the API answers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tocsin.errors import NothingToEstimate
from tocsin.event.instant import NS_PER_S, rfc3339, seconds_between
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.states import run_started_ns
from tocsin.monitor.views import RunFacts
from tocsin.wire.api.history_views import EstimateInfo, LearnedInfo

if TYPE_CHECKING:  # with numpy
    from tocsin.monitor.estimate import Estimate

PACE_LOW: Final = 0.5  # of what the pace alone says, where nothing else is known
PACE_HIGH: Final = 2.0


def estimate_by_pace(facts: RunFacts, now_ns: int) -> Estimate:
    """A run that is too large to be worked out: it is estimated by how fast its activities end."""
    from tocsin.monitor.estimate import Estimate

    row, counts = facts.row, facts.counts
    elapsed_s = max(0.0, seconds_between(began_ns(row, now_ns), now_ns))
    ended = sum(counts.get(each, 0) for each in ("succeeded", "failed", "skipped", "cached"))
    total = max(sum(counts.values()), latest(row, "planned_total") or 0)
    if not ended:
        raise NothingToEstimate(
            "none of the run's activities has ended yet", remedy="Ask again when some have."
        )
    remaining_s = elapsed_s * (total - ended) / ended
    reason = f"{ended:,} of {total:,} activities ended in {elapsed_s:,.0f} s"
    return Estimate(
        total_s=elapsed_s + remaining_s,
        remaining_s=remaining_s,
        low_s=remaining_s * PACE_LOW,
        high_s=remaining_s * PACE_HIGH,
        method="pace",
        reason=reason,
        critical_path=(),
        past_runs=0,
        past_error=None,
    )


def began_ns(row: Row, now_ns: int) -> int:
    """When it began, unless that is in the future: then, when its first event came."""
    started_ns = run_started_ns(row)
    if started_ns is None or started_ns > now_ns:
        started_ns = row.get("first_received", now_ns)
    return started_ns


def estimate_view(
    found: Estimate, now_ns: int, names: Sequence[str], learned: LearnedInfo | None
) -> EstimateInfo:
    """Seconds, and times by the broker's clock. `names` are those of the tasks."""
    past_error = found.past_error
    return EstimateInfo(
        remaining_s=round(float(found.remaining_s), 3),
        low_s=round(float(found.low_s), 3),
        high_s=round(float(found.high_s), 3),
        total_s=round(float(found.total_s), 3),
        eta=_at(now_ns, found.remaining_s),
        eta_low=_at(now_ns, found.low_s),
        eta_high=_at(now_ns, found.high_s),
        method=found.method,
        reason=found.reason,
        past_runs=found.past_runs,
        past_error=None if past_error is None else float(past_error),
        critical_path=[names[each] for each in found.critical_path if each < len(names)],
        learned=learned,
    )


def _at(now_ns: int, seconds: float) -> str | None:
    if not seconds < 1e9:
        return None
    return rfc3339(now_ns + int(seconds * NS_PER_S))


def ended_view(row: Row, state: str, learned: LearnedInfo | None) -> EstimateInfo:
    """Of a run that has ended: when that was."""
    started_ns, ended_ns = run_started_ns(row), row.get("ended")
    took_s = None
    if started_ns is not None and ended_ns is not None and ended_ns >= started_ns:
        took_s = seconds_between(started_ns, ended_ns)
    ended = None if ended_ns is None else rfc3339(ended_ns)
    return EstimateInfo(
        remaining_s=0.0,
        low_s=0.0,
        high_s=0.0,
        total_s=took_s,
        eta=ended,
        eta_low=ended,
        eta_high=ended,
        method="ended",
        reason=f"The run is {state}.",
        past_runs=0,
        past_error=None,
        critical_path=[],
        learned=learned,
    )
