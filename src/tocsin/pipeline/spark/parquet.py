"""Parquet: rows of the state and of the tables, to files and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructType

from tocsin.pipeline.locations import on_this_disk
from tocsin.pipeline.state import Partial

# Words of which no two are alike: looking for those that are takes as long as to write them.
UNLIKE: Final = ("id",)


def write_one_file(frame: DataFrame, out: Path) -> None:
    """A small table, as one file: made by as many tasks as ever, and written by one."""
    write(frame.repartition(1), out, None)


def write(frame: DataFrame, out: Path, files: int | None) -> None:
    """As Parquet; in so many files at most, or as the partitions are."""
    if files is not None:
        frame = frame.coalesce(files)
    options = {f"parquet.enable.dictionary#{name}": "true" for name in _repeating(frame.schema)}
    writer = frame.write.mode("overwrite").option("parquet.enable.dictionary", "false")
    writer.options(**options).parquet(on_this_disk(out))


def read(
    spark: SparkSession, partials: Sequence[Partial], name: str, schema: StructType | None = None
) -> DataFrame:
    """One of the tables of some parts, as one; with that schema, if parts may differ in theirs."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    return reader.parquet(*(on_this_disk(each.directory / name) for each in partials))


def _repeating(schema: StructType, before: str = "") -> Iterator[str]:
    """The columns in which a value is likely to be met again: words and small numbers."""
    for each in schema:
        path = f"{before}{each.name}"
        if isinstance(each.dataType, StructType):
            yield from _repeating(each.dataType, f"{path}.")
        elif isinstance(each.dataType, StringType | IntegerType) and each.name not in UNLIKE:
            yield path
