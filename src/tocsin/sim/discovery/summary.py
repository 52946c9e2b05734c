"""The summary of records: one row a setting, with the four measures of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tocsin.sim.discovery.experiment import SETTING_COLUMNS, Record

NS_PER_MS = 1_000_000
SUMMED = (
    "results",
    "subscription_hops",
    "publication_hops_alone",
    "publication_hops_cached",
    "publication_hops_packaged",
    "end_markers",
    "other_hops",
    "matching_operations",
    "covering_lookups",
)

Row = dict[str, Any]


def summarise(records: Iterable[Record]) -> list[Row]:
    """By setting, in the order of the settings' columns.

    `completed_ms` is the mean time to the end of the answer, over all requests; `last_result_ms`
    the mean time to the last result, over those that found something.
    """
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in SETTING_COLUMNS), []).append(record)
    return [
        {**dict(zip(SETTING_COLUMNS, key, strict=True)), **_measures(groups[key])}
        for key in sorted(groups)
    ]


def _measures(records: list[Record]) -> Row:
    completed = [_ms(each, "finished_ns") for each in records if each["finished_ns"] is not None]
    valid = [_ms(each, "last_result_ns") for each in records if each["last_result_ns"] is not None]
    return {
        "requests": len(records),
        "valid": len(valid),
        "shared": sum(each["shared"] for each in records),
        "completed_ms": _mean(completed),
        "last_result_ms": _mean(valid),
        **{name: sum(each[name] for each in records) for name in SUMMED},
    }


def _ms(record: Record, until: str) -> float:
    taken_ns: int = record[until] - record["issued_ns"]
    return taken_ns / NS_PER_MS


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
