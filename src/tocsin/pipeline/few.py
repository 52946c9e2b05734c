"""Few: rows that are few, kept in memory and sent to where the many are.

Joined in any other way, every one of the many rows would be written, sorted and read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ROWS_MAX: Final = 2_000_000  # some 100 MB in each process that has them

Keep = Callable[[DataFrame], DataFrame]


@contextmanager
def few() -> Iterator[Keep]:
    """A function that keeps rows, made once, until this ends. If they turn out to be too many, a
    join treats them as any."""
    with ExitStack() as kept:

        def keep(rows: DataFrame) -> DataFrame:
            rows = rows.persist()
            kept.callback(rows.unpersist)
            return F.broadcast(rows) if rows.count() <= ROWS_MAX else rows

        yield keep
