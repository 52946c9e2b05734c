"""Records of runs as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from tocsin.monitor.records import ActivityRecord, HistoryRecord, RunRecord

# What lists leave out, because only one run's own page shows it.
DETAILS: Final = frozenset(
    {
        *("error", "trace", "working_directory", "command", "log", "exit_code", "resources"),
        *("anomaly_list", "alerts", "parameters", "files", "plan"),
    }
)

_encode = msgspec.json.Encoder().encode


def as_json(shown: Mapping[str, Any], status: int = 200) -> Response:
    """Nothing here is worth a cache's while."""
    return Response(_encode(shown), status, {"cache-control": "no-store"}, "application/json")


def run_shown(record: RunRecord, *, whole: bool = False) -> dict[str, Any]:
    shown = {name: getattr(record, name) for name in record.__slots__}
    return shown if whole else {name: shown[name] for name in shown if name not in DETAILS}


def activity_shown(record: ActivityRecord) -> dict[str, Any]:
    shown = {name: getattr(record, name) for name in record.__slots__}
    shown["tries"] = [activity_shown(each) for each in record.tries]
    return shown


def history_shown(record: HistoryRecord) -> dict[str, Any]:
    shown = {name: getattr(record, name) for name in record.__slots__}
    edges, counts = shown.pop("edges"), shown.pop("counts")
    shown["recent"] = [activity_shown(each) for each in record.recent]
    return {**shown, "histogram": {"edges": edges, "counts": counts}}
