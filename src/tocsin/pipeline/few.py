"""Few: rows that are few, kept in memory and sent to where the many are.

Joined in any other way, every one of the many rows would be written, sorted and read again.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ROWS_MAX: Final = 2_000_000  # some 100 MB in each process that has them


class Few:
    """Keeps rows as long as it is open."""

    def __init__(self) -> None:
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Few:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._kept:
            each.unpersist()

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows, made once. If they turn out to be too many, a join treats them as any."""
        rows = rows.persist()
        self._kept.append(rows)
        return F.broadcast(rows) if rows.count() <= ROWS_MAX else rows
