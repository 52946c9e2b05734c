"""Are two engines' tables the same? Rows by their keys, counts and times exactly, means nearly.

python bench/pipeline_check.py --ours out/pipeline/spark-1M --theirs out/pipeline/duckdb-1M
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from tocsin.tables.schemas import TABLES

KIND: Final = ("workflow", "activity", "version")
KEYS: Final = {
    "events": ("seq", "source", "id"),
    "activities": ("run", "id", "attempt"),
    "runs": ("run",),
    "activity_stats": KIND,
    "cost_models": (*KIND, "target"),
    "estimates": ("run",),
    "failures": ("run", "id", "attempt"),
    "evolution": ("workflow", "version"),
    "host_usage": ("host", "hour"),
    "activity_usage": ("workflow", "activity", "hour"),
    "deliveries": ("subscription",),
    "discoveries": ("model", "request"),
    "quarantine": ("file", "seq", "id", "reason"),
}
NEAR: Final = 1e-9  # of sums and means, which are added up in another order
NEAR_OF: Final = {"cost_models": 1e-6}  # regressions, over differences of large numbers
# No clock here tells less, and a number of seconds since 1970 holds no less.
SECONDS_NEAR: Final = 1e-6
SHOWN_MAX: Final = 3  # differences of one column
THREADS: Final = 2
MEMORY: Final = "12GB"


@dataclass(slots=True)
class Compared:
    """How two tables of one name compare."""

    table: str
    ours: int = 0
    theirs: int = 0
    missing: int = 0
    extra: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    is_there: bool = True
    """False if one of the two has no such table."""

    @property
    def is_same(self) -> bool:
        # A row that is there twice differs from none: only the number tells.
        if not self.is_there or self.ours != self.theirs:
            return False
        return not (self.missing or self.extra or self.differing)


def _same(member: pa.Field, ours: str, theirs: str, near: float) -> str:
    """A condition that is true where the two values are the same."""
    kind = member.type
    if pa.types.is_floating(kind):
        apart = SECONDS_NEAR if member.name.endswith("_s") else 0
        close = f"abs({ours} - {theirs}) <= {near} * greatest(abs({ours}), abs({theirs}))"
        return (
            f"coalesce({close} OR abs({ours} - {theirs}) <= {apart}, "
            f"{ours} IS NULL AND {theirs} IS NULL)"
        )
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        all_same = " AND ".join(
            _same(each, f"pair[1].{each.name}", f"pair[2].{each.name}", near)
            for each in kind.value_type
        )
        pairs = f"list_zip({ours}, {theirs})"
        return (
            f"(len({ours}) IS NOT DISTINCT FROM len({theirs}) AND coalesce(list_bool_and("
            f"list_transform({pairs}, lambda pair: {all_same})), true))"
        )
    return f"({ours} IS NOT DISTINCT FROM {theirs})"


def _part_files(directory: Path, table: str) -> str:
    return str(directory / table / "*.parquet")


class Comparison:
    """Two directories of tables."""

    def __init__(self, ours: Path, theirs: Path) -> None:
        self._places = {"ours": ours, "theirs": theirs}
        self._connection = duckdb.connect()
        self._connection.execute(
            f"SET threads = {THREADS}; SET memory_limit = '{MEMORY}'; SET TimeZone = 'UTC'"
        )

    def of(self, table: str) -> Compared:
        found = Compared(table)
        for side, place in self._places.items():
            files = _part_files(place, table)
            self._connection.execute(
                f"CREATE OR REPLACE TEMP VIEW {side} AS SELECT * FROM "
                f"read_parquet('{files}', hive_partitioning = false)"
            )
        found.ours, found.theirs = (self._count(side) for side in self._places)
        if table == "events" and self._print("ours") == self._print("theirs"):
            return found
        self._join(table, found)
        return found

    def _count(self, side: str) -> int:
        return int(self._one(f"SELECT count(*) FROM {side}")[0])

    def _print(self, side: str) -> tuple[Any, ...]:
        """A number that hardly any other set of rows has: quicker than a join of all rows."""
        columns = ", ".join(f'"{name}"' for name in TABLES["events"].names)
        return self._one(f"SELECT count(*), sum(hash({columns})::HUGEINT) FROM {side}")

    def _join(self, table: str, found: Compared) -> None:
        keys, near = KEYS[table], NEAR_OF.get(table, NEAR)
        on = " AND ".join(f'o."{key}" IS NOT DISTINCT FROM t."{key}"' for key in keys)
        conditions = {
            each.name: _same(each, f'o."{each.name}"', f't."{each.name}"', near)
            for each in TABLES[table]
            if each.name not in keys
        }
        counts = ", ".join(f"count(*) FILTER (NOT {each})" for each in conditions.values())
        found.extra = self._left_over("ours AS o", "theirs AS t", on)
        found.missing = self._left_over("theirs AS t", "ours AS o", on)
        if not conditions:
            return
        differing = self._one(f"SELECT {counts} FROM ours AS o JOIN theirs AS t ON {on}")
        for (name, condition), count in zip(conditions.items(), differing, strict=True):
            if count:
                found.differing[name] = count
                found.examples += self._examples(keys, name, condition, on)
        self._name_rows("ours AS o", "theirs AS t", "o", on, keys, found)
        self._name_rows("theirs AS t", "ours AS o", "t", on, keys, found)

    def _left_over(self, side: str, other: str, on: str) -> int:
        return int(self._one(f"SELECT count(*) FROM {side} ANTI JOIN {other} ON {on}")[0])

    def _examples(self, keys: tuple[str, ...], name: str, condition: str, on: str) -> list[str]:
        shown = ", ".join(f'o."{key}"' for key in keys)
        rows = self._connection.execute(
            f'SELECT {shown}, o."{name}", t."{name}" FROM ours AS o JOIN theirs AS t ON {on} '
            f"WHERE NOT {condition} LIMIT {SHOWN_MAX}"
        ).fetchall()
        return [f"{name} of {row[:-2]}: {row[-2]!r} beside {row[-1]!r}" for row in rows]

    def _name_rows(
        self, side: str, other: str, alias: str, on: str, keys: tuple[str, ...], found: Compared
    ) -> None:
        shown = ", ".join(f'{alias}."{key}"' for key in keys)
        rows = self._connection.execute(
            f"SELECT {shown} FROM {side} ANTI JOIN {other} ON {on} LIMIT {SHOWN_MAX}"
        ).fetchall()
        word = "only ours" if alias == "o" else "only theirs"
        found.examples += [f"{word}: {row}" for row in rows]

    def _one(self, statement: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = self._connection.execute(statement).fetchone()
        assert row is not None
        return row


def compare(ours: Path, theirs: Path) -> list[Compared]:
    """Every table; prints ok or what differs. One that is not there differs."""
    comparison = Comparison(ours, theirs)
    results = []
    for table in TABLES:
        if not (ours / table).exists() or not (theirs / table).exists():
            print(f"  {table}: not there")
            results.append(Compared(table, is_there=False))
            continue
        found = comparison.of(table)
        results.append(found)
        print(f"  {table}: {_result_text(found)}")
        for example in found.examples:
            print(f"      {example[:300]}")
    return results


def _result_text(found: Compared) -> str:
    if found.is_same:
        return f"ok, {found.ours:,} rows"
    differing = ", ".join(f"{name} in {count:,}" for name, count in found.differing.items())
    return (
        f"differs; {found.ours:,} rows beside {found.theirs:,}, {found.extra:,} only here, "
        f"{found.missing:,} only there; columns: {differing or 'none'}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--theirs", type=Path, required=True)
    arguments = parser.parse_args()
    return 0 if all(each.is_same for each in compare(arguments.ours, arguments.theirs)) else 1


if __name__ == "__main__":
    sys.exit(main())
