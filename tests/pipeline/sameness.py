"""Two makings of the tables, compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.published import read_table

ORDER = {
    "events": ["seq"],
    "activities": ["run", "id", "attempt"],
    "runs": ["run"],
    "activity_stats": ["workflow", "activity", "version"],
    "cost_models": ["workflow", "activity", "version", "target"],
    "estimates": ["run"],
    "failures": ["run", "id", "attempt"],
    "evolution": ["workflow", "version"],
    "host_usage": ["host", "hour"],
    "activity_usage": ["workflow", "activity", "hour"],
    "deliveries": ["subscription"],
    "discoveries": ["model", "request"],
    "quarantine": ["file", "seq", "reason", "excerpt"],
}


def rows(tables: Path, name: str) -> pa.Table:
    return read_table(tables, name).sort_by([(column, "ascending") for column in ORDER[name]])


def assert_same(one: pa.Table, other: pa.Table, name: str) -> None:
    """Equal, but for the last digit of what was summed up in another order."""
    assert one.num_rows == other.num_rows, name
    for column in one.column_names:
        left, right = one[column].combine_chunks(), other[column].combine_chunks()
        if pa.types.is_floating(left.type):
            apart = pc.max(pc.abs(pc.subtract(left, right))).as_py() or 0.0
            size = pc.max(pc.abs(left)).as_py() or 0.0
            assert left.null_count == right.null_count, f"{name}.{column}"
            assert apart <= 1e-9 * max(1.0, size), f"{name}.{column}"
        else:
            assert left.equals(right), f"{name}.{column}"
