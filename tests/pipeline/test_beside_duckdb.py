"""Our tables beside DuckDB's, which come from the raw events, by the benchmark's own comparison."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tocsin.pipeline.job import Job, run
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.published import read_table
from tocsin.tables.schemas import TABLES

pytest.importorskip("duckdb")

BENCH = Path(__file__).parents[2] / "bench"
PLAN = Plan(12_000, seed=3, broken=0.002, duplicates=0.03, broken_files=True)

pytestmark = pytest.mark.slow


def _script(name: str, **places: Path) -> subprocess.CompletedProcess[str]:
    named = [word for option, place in places.items() for word in (f"--{option}", str(place))]
    command = [sys.executable, str(BENCH / f"{name}.py"), *named]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def both(ready: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Our tables, and DuckDB's, of one archive."""
    place = tmp_path_factory.mktemp("beside")
    archive, ours, theirs = place / "archive", place / "ours", place / "theirs"
    synthesize(PLAN, archive, lambda rows: None)
    run(ready, Job(str(archive), ours))
    made = _script("pipeline_duckdb", archive=archive, tables=theirs)
    assert made.returncode == 0, made.stderr
    return ours, theirs


def test_every_table_is_as_duckdb_makes_it(both: tuple[Path, Path]) -> None:
    ours, theirs = both

    said = _script("pipeline_check", ours=ours, theirs=theirs)

    assert said.returncode == 0, said.stdout
    assert said.stdout.count(": ok, ") == len(TABLES)
    # Of empty tables anything is true.
    assert all(read_table(ours, name).num_rows for name in TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_one_value_that_is_changed_is_found_and_named(
    both: tuple[Path, Path], table: str, tmp_path: Path
) -> None:
    ours, theirs = both
    changed, column = tmp_path / "changed", _WHICH[table]
    shutil.copytree(ours, changed, symlinks=False, ignore=shutil.ignore_patterns("_state", ".*"))
    rows = read_table(ours, table)
    for path in (changed / table).glob("*.parquet"):
        path.unlink()
    pq.write_table(_with_another_value(rows, column), changed / table / "part-0.parquet")

    said = _script("pipeline_check", ours=changed, theirs=theirs)

    assert said.returncode == 1, said.stdout
    assert f"columns: {column} in 1\n" in said.stdout
    assert said.stdout.count(": ok, ") == len(TABLES) - 1


_WHICH = {
    "events": "topic",
    "activities": "host",
    "runs": "state",
    "activity_stats": "p90_s",
    "cost_models": "slope",
    "estimates": "remaining_s",
    "failures": "error",
    "evolution": "runs",
    "host_usage": "attempts",
    "activity_usage": "busy_s",
    "deliveries": "delivered",
    "discoveries": "count",
    "quarantine": "excerpt",
}


def _with_another_value(rows: pa.Table, column: str) -> pa.Table:
    """The rows, of which one has something else in this column."""
    place = pc.index(pc.is_valid(rows[column]), True).as_py()
    values = rows[column].to_pylist()
    values[place] = f"{values[place]}!" if isinstance(values[place], str) else values[place] + 1
    field = rows.schema.field(column)
    return rows.set_column(rows.schema.get_field_index(column), field, pa.array(values, field.type))
