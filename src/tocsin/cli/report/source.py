"""Source: the published tables, read a few columns at a time and never whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tocsin.tables.published import Published, files_of, unreadable
from tocsin.tables.schemas import TABLES

PARTIALS_ROWS_MAX = 500_000  # of groups that wait to be put together
NUMBER_MAX = 1e21  # a zettabyte, and more seconds than there were
SAMPLE_ROWS_MAX = 1_000_000  # read for a sample: a third of a second

Row = dict[str, Any]
Sums = Sequence[tuple[str, str]]  # a column, and what of it: sum, min, max or count
Shape = Callable[[pa.Table], pa.Table]

_AGAIN = {"sum": "sum", "min": "min", "max": "max", "count": "sum"}


@dataclass(frozen=True, slots=True)
class Source:
    """One version of the tables: what is read of it belongs together."""

    found: Published

    def rows(self, name: str) -> int:
        """How many rows a table has; none if it was not made."""
        facts = self.found.tables.get(name)
        return 0 if facts is None else facts.rows

    def table(self, name: str, columns: Sequence[str], where: Any = None) -> pa.Table:
        """The rows of a small table."""
        with _readable(name):
            return _plausible(self._dataset(name).to_table(columns=list(columns), filter=where))

    def grouped(
        self,
        name: str,
        keys: Sequence[str],
        sums: Sums,
        *,
        columns: Sequence[str] | None = None,
        where: Any = None,
        shape: Shape | None = None,
    ) -> pa.Table:
        """Sums by keys, over a stream of batches: the columns are keys, then `COLUMN_WHAT`.

        `columns` are those that are read, where `shape` makes the keys of others.
        """
        wanted = list(columns or dict.fromkeys([*keys, *(column for column, _ in sums)]))
        waiting: list[pa.Table] = []
        with _readable(name):
            for batch in self._dataset(name).to_batches(columns=wanted, filter=where):
                if not batch.num_rows:
                    continue
                part = _plausible(pa.Table.from_batches([batch]))
                part = shape(part) if shape else part
                waiting.append(part.group_by(list(keys)).aggregate(list(sums)))
                if sum(each.num_rows for each in waiting) > PARTIALS_ROWS_MAX:
                    waiting = [_merged(waiting, keys, sums)]
        if not waiting:
            empty = self._empty(name, wanted)
            empty = shape(empty) if shape else empty
            return empty.group_by(list(keys)).aggregate(list(sums))
        return _merged(waiting, keys, sums)

    def sample(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Row groups spread over the whole table, until `SAMPLE_ROWS_MAX` rows were read."""
        with _readable(name):
            files = [pq.ParquetFile(path) for path in files_of(self.found, name)]
        groups = [(file, number) for file in files for number in range(file.num_row_groups)]
        read = 0
        for place in _spread(len(groups)):
            if read >= SAMPLE_ROWS_MAX:
                return
            file, number = groups[place]
            known = [column for column in columns if column in file.schema_arrow.names]
            with _readable(name):
                part = file.read_row_group(number, columns=known)
            read += part.num_rows
            if len(known) == len(columns):
                yield _plausible(part)

    def _dataset(self, name: str) -> ds.Dataset:
        if name not in self.found.tables:
            return ds.dataset(TABLES[name].empty_table())
        paths = [str(path) for path in files_of(self.found, name)]
        if not paths:
            return ds.dataset(TABLES[name].empty_table())
        # Of a table that an older version made, the columns it did not know are null.
        return ds.dataset(paths, schema=TABLES[name], format="parquet")

    def _empty(self, name: str, columns: Sequence[str]) -> pa.Table:
        return TABLES[name].empty_table().select(list(columns))


def top(table: pa.Table, column: str, limit: int) -> list[Row]:
    """The rows with the most of a column; those that have none of it come last."""
    order = pc.sort_indices(table, sort_keys=[(column, "descending")])
    rows: list[Row] = table.take(order[:limit]).to_pylist()
    return rows


def total(table: pa.Table, column: str) -> float:
    """The sum of a column, 0 if there is nothing."""
    found = pc.sum(table[column]).as_py()
    return float(found or 0)


def any_of(column: str, values: Sequence[str]) -> Any:
    """A filter: the column is one of these."""
    return pc.field(column).isin(pa.array(list(values), pa.string()))


def _plausible(table: pa.Table) -> pa.Table:
    """The rows with null for numbers that are none, or that no sum could hold."""
    for place, column in enumerate(table.schema):
        if pa.types.is_floating(column.type):
            is_valid = pc.less(pc.abs(table[column.name]), NUMBER_MAX)
            if not pc.all(is_valid).as_py():
                cleaned = pc.if_else(is_valid, table[column.name], pa.scalar(None, column.type))
                table = table.set_column(place, column, cleaned)
    return table


def _merged(waiting: list[pa.Table], keys: Sequence[str], sums: Sums) -> pa.Table:
    again = [(f"{column}_{what}", _AGAIN[what]) for column, what in sums]
    whole = pa.concat_tables(waiting).group_by(list(keys)).aggregate(again)
    names = {f"{name}_{what}": name for name, what in again}
    return whole.rename_columns([names.get(name, name) for name in whole.column_names])


def _spread(count: int) -> Iterator[int]:
    """Every number below `count` once, such that however many are taken, they lie far apart."""
    if count:
        yield 0
    marks = [0, count]
    while len(marks) <= count:
        between = [(low + high) // 2 for low, high in pairwise(marks) if high - low > 1]
        yield from between
        marks = sorted([*marks, *between])


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise unreadable(f"the table {name}", error) from error
