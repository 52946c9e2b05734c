"""The files of an evaluation: raw records as Parquet, and their summary by Spark or by Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.sim.discovery.experiment import RECORD_TYPES, SETTING_COLUMNS, Outcome, Record
from tocsin.sim.discovery.summary import SUMMED, Row, summarise

RECORDS = "records.parquet"
RUNS = "runs.parquet"

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def write_records(path: Path, records: Sequence[Record]) -> None:
    """One row a request of a run."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in RECORD_TYPES.items()])
    pq.write_table(pa.Table.from_pylist(list(records), schema), path, compression="zstd")


def read_records(path: Path) -> list[Record]:
    rows: list[Record] = pq.read_table(path).to_pylist()
    return rows


def run_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row a run: its setting, and what belongs to no request of it."""
    return [
        {
            **asdict(each.setting),
            "advertisement_hops": each.advertisement_hops,
            "update_hops": each.update_hops,
            "connections": each.connections,
        }
        for each in outcomes
    ]


def write_runs(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows)), path, compression="zstd")


def summarised_by_python(path: Path) -> list[Row]:
    return summarise(read_records(path))


def summarised_by_spark(path: Path) -> list[Row]:
    """The same by Spark. Raises SparkMissing or JavaMissing."""
    # After the session's module: it says what to install if there is no Spark.
    from tocsin.pipeline.discovery import summarised
    from tocsin.pipeline.spark.session import session

    spark = session("local[*]", purpose="fast")
    found = summarised(spark.read.parquet(str(path)), SETTING_COLUMNS, SUMMED).collect()
    rows = [row.asDict() for row in found]
    return sorted(rows, key=lambda row: tuple(row[name] for name in SETTING_COLUMNS))


def can_use_spark() -> bool:
    """Whether Spark and a Java are here."""
    from tocsin.errors.spark import JavaMissing, SparkMissing

    try:
        from tocsin.pipeline.spark import session  # noqa: F401
        from tocsin.pipeline.spark.java import find_java

        find_java()
    except (JavaMissing, SparkMissing):
        return False
    return True
