"""Records of runs as the types that the API answers with."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from tocsin.event.instant import rfc3339_or_none
from tocsin.monitor.history.summary import HistoryRecord
from tocsin.monitor.history.tables import StatsRow
from tocsin.monitor.records import ActivityRecord, FailureRecord
from tocsin.wire.api.history_views import HistogramInfo, HistoryInfo, StatsInfo
from tocsin.wire.api.run_views import FailureInfo

S = TypeVar("S", bound=msgspec.Struct)


def shown_as(kind: type[S], record: Any) -> S:
    """The record, or a mapping, as this type, member by member."""
    return msgspec.convert(record, kind, from_attributes=True)


def failure_info(record: FailureRecord) -> FailureInfo:
    names = ActivityRecord.__slots__
    members = {name: getattr(record.activity, name) for name in names}
    more = ("seen_before", "before", "recovered")
    return shown_as(FailureInfo, {**members, **{name: getattr(record, name) for name in more}})


def history_info(record: HistoryRecord) -> HistoryInfo:
    members = {name: getattr(record, name) for name in HistoryRecord.__slots__}
    edges, counts = members.pop("edges"), members.pop("counts")
    by_version = [_stats_info(row) for row in members.pop("by_version")]
    return shown_as(
        HistoryInfo,
        {
            **members,
            "histogram": HistogramInfo(edges=list(edges), counts=list(counts)),
            "exact": members.pop("is_exact"),
            "by_version": by_version,
        },
    )


def _stats_info(row: StatsRow) -> StatsInfo:
    bins = row.bins()
    edges = [*(each.low_s for each in bins), *(each.high_s for each in bins[-1:])]
    told = {
        "histogram": HistogramInfo(edges=edges, counts=[each.count for each in bins]),
        "first": rfc3339_or_none(row.first_ended_ns),
        "last": rfc3339_or_none(row.last_ended_ns),
    }
    names = (name for name in StatsInfo.__struct_fields__ if name not in told)
    return shown_as(StatsInfo, {**{name: getattr(row, name) for name in names}, **told})
