"""Two makings of the tables, compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.tables.published import read_table

DIGITS = 1e-9  # of a number; and of what is smaller than one, so much at all

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
    """Equal row by row, but for the last digits of what was summed up in another order."""
    assert one.num_rows == other.num_rows, name
    for column in one.column_names:
        left, right = one[column].combine_chunks(), other[column].combine_chunks()
        if pa.types.is_floating(left.type):
            assert left.is_null().equals(right.is_null()), f"{name}.{column}"
            apart, size = pc.abs(pc.subtract(left, right)), pc.abs(left)
            allowed = pc.add(pc.multiply(size, DIGITS), DIGITS)
            far = pc.filter(left, pc.greater(apart, allowed))
            assert len(far) == 0, f"{name}.{column}: {far[:3]}"
        else:
            assert left.equals(right), f"{name}.{column}"
