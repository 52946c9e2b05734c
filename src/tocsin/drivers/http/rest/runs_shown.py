"""Records of runs as the types that the API answers with."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from tocsin.monitor.records import ActivityRecord, FailureRecord, HistoryRecord
from tocsin.wire.api.run_views import FailureShown, HistogramShown, HistoryShown

S = TypeVar("S", bound=msgspec.Struct)


def shown_as(kind: type[S], record: Any) -> S:
    """The record, or a mapping, as this type, member by member."""
    return msgspec.convert(record, kind, from_attributes=True)


def failure_shown(record: FailureRecord) -> FailureShown:
    names = ActivityRecord.__slots__
    members = {name: getattr(record.activity, name) for name in names}
    return shown_as(
        FailureShown, {**members, "seen_before": record.seen_before, "before": record.before}
    )


def history_shown(record: HistoryRecord) -> HistoryShown:
    members = {name: getattr(record, name) for name in HistoryRecord.__slots__}
    edges, counts = members.pop("edges"), members.pop("counts")
    histogram = HistogramShown(edges=list(edges), counts=list(counts))
    return shown_as(HistoryShown, {**members, "histogram": histogram})
