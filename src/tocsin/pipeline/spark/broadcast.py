"""Broadcast: small tables that are kept in memory and sent to every task.

Joined in any other way, every one of the many rows would be written, sorted and read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

ROWS_MAX: Final = 2_000_000  # some 100 MB in each process that has them
LISTED_MAX: Final = 20_000  # numbers that a condition may name: some 200 kB of text

Keep = Callable[[DataFrame], DataFrame]


@contextmanager
def broadcast_rows() -> Iterator[Keep]:
    """A function that keeps rows, made once, until this ends. If they turn out to be too many, a
    join treats them as any."""
    with ExitStack() as kept:

        def keep(rows: DataFrame) -> DataFrame:
            rows = rows.persist()
            kept.callback(rows.unpersist)
            return F.broadcast(rows) if rows.count() <= ROWS_MAX else rows

        yield keep


def without(many: DataFrame, few_numbers: DataFrame) -> DataFrame:
    """The rows whose number is not among these.

    Where they can be named in a condition, that is a look at each row; a join makes a copy of it,
    with all its columns.
    """
    found = few_numbers.limit(LISTED_MAX + 1).collect()
    if len(found) > LISTED_MAX:
        return many.join(few_numbers, "seq", "left_anti")
    return many.where(f"seq NOT IN ({listed(each.seq for each in found)})") if found else many


def listed(numbers: Iterable[int]) -> str:
    """As a condition names them."""
    return ", ".join(f"{each}L" for each in numbers)
