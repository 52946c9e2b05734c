"""Cells: how what was folded is kept on disk, so that it can be folded further.

Of an attempt, how it stands is what is read mostly; beside it are those of its cells that have
a value. Most of these come from the last message of all: its place is written once, and a cell
without a place of its own has that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tocsin.monitor.rules import Entity
from tocsin.pipeline.fold.attempts import attempt_rows
from tocsin.pipeline.fold.rules import (
    ATTEMPT_KEY,
    HASH,
    cell_is_stamped,
    cell_schema,
    with_all_cells,
)
from tocsin.pipeline.spark.parquet import read, write
from tocsin.pipeline.state import Partial

CELLS: Final = "cells"
STAMP: Final = "stamp"
_STAMPED_WITH: Final = ("at_us", "seq")
_NO_STAMP: Final = "struct<at_us:bigint,seq:bigint>"


def write_cells(cells: DataFrame, entity: Entity, out: Path) -> None:
    """Write cells; of attempts, how they stand as well."""
    write(_attempts(cells) if entity == "activity" else with_all_cells(cells, entity), out, None)


def read_attempts(spark: SparkSession, partials: Sequence[Partial]) -> DataFrame:
    """As they were written, with those cells as well of which there was nothing then."""
    nothing = spark.createDataFrame([], cell_schema(spark, "activity"))
    return read(spark, partials, "attempts", _attempts(nothing).schema)


def attempt_cells(frame: DataFrame) -> DataFrame:
    """The cells of attempts, as they were before they were written."""
    names = frame.select(f"{CELLS}.*").columns
    cells = (_whole(name).alias(name) for name in names if name != STAMP)
    return frame.select("run", F.col("id").alias("activity"), "attempt", *cells)


def _attempts(cells: DataFrame) -> DataFrame:
    names = [name for name in cells.columns if name not in (HASH, *ATTEMPT_KEY)]
    whole = with_all_cells(cells, "activity").withColumn(STAMP, _last_stamp(names))
    kept = F.struct(STAMP, *(_short(name).alias(name) for name in names))
    return attempt_rows(whole, F.col(HASH), kept.alias(CELLS))


def _last_stamp(names: Sequence[str]) -> Column:
    """Where the last message stands that has any of these."""
    stamps = [
        F.when(F.col(name).isNotNull(), F.struct(*(f"{name}.{part}" for part in _STAMPED_WITH)))
        for name in names
        if cell_is_stamped(name)
    ]
    none = F.lit(None).cast(_NO_STAMP)
    return F.greatest(none, none, *stamps)


def _short(name: str) -> Column:
    """The cell, without a place that is the last one."""
    if not cell_is_stamped(name):
        return F.col(name)
    parts = ((F.col(f"{name}.{part}"), F.col(f"{STAMP}.{part}")) for part in _STAMPED_WITH)
    is_other = reduce(Column.__or__, (own != last for own, last in parts))
    place = (F.when(is_other, F.col(f"{name}.{part}")).alias(part) for part in _STAMPED_WITH)
    return F.when(F.col(name).isNotNull(), F.struct(*place, F.col(f"{name}.value")))


def _whole(name: str) -> Column:
    cell = F.col(f"{CELLS}.{name}")
    if not cell_is_stamped(name):
        return cell
    place = (
        F.coalesce(cell.getField(part), F.col(f"{CELLS}.{STAMP}.{part}")).alias(part)
        for part in _STAMPED_WITH
    )
    return F.when(cell.isNotNull(), F.struct(*place, cell.getField("value").alias("value")))
