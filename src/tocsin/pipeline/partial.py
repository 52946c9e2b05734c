"""Partial: some events of the archive, made into one part of the tables' state."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from tocsin.monitor.rules import Entity
from tocsin.pipeline.attempts import attempt_rows
from tocsin.pipeline.clean import (
    LATE_S,
    events_of,
    keys_of,
    notes_of,
    reason,
    reason_at_a_glance,
    repetitions,
    set_aside,
)
from tocsin.pipeline.fold import HASH, cell_schema, cells_of, folded
from tocsin.pipeline.state import Partial, PartialFacts, State
from tocsin.pipeline.together import together

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
CELLS: Final = "cells"
_JSON: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX", "timeZone": "UTC"}
ENTITIES: Final[dict[str, Entity]] = {"attempts": "activity", "runs": "run"}


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file of the archive that could not be read."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Input:
    """The records of the archive that shall become a part."""

    records: DataFrame
    first: int
    last: int
    now: datetime
    bad_files: Sequence[BadFile] = ()
    file: str = "''"
    """An expression for the file that a record is from."""
    counts: dict[str, int] = field(default_factory=dict)
    aside: DataFrame | None = None
    """Rows of the quarantine besides: messages that are no events."""
    positions: Mapping[str, int] = field(default_factory=dict)
    """Where to go on afterwards, by partition."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How the work and its results are divided."""

    partitions: int
    """Of a shuffle."""
    files: int
    """Of events, in one part."""


def make_partial(spark: SparkSession, state: State, input: Input, sizes: Sizes) -> Partial:
    """Clean, fold and keep. Returns the part, on disk; if that fails, nothing is left of it."""
    place = state.new_place()
    try:
        return state.keep(place, _made(spark, state, input, sizes, place))
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)  # where the disk is full, its room is needed
        raise


def _made(
    spark: SparkSession, state: State, input: Input, sizes: Sizes, place: Path
) -> PartialFacts:
    records, file = _without_repeated_seq(input)
    glanced = records.where(reason_at_a_glance(F.lit(input.now)).isNull())
    seen = Observation()

    def fold(name: str, entity: Entity) -> dict[str, int]:
        cells = folded(cells_of(glanced, entity), entity, sizes.partitions)
        write_cells(cells, entity, place / name)
        return {}

    work: list[Callable[[], dict[str, int]]] = [
        lambda: _clean(spark, state, input, (records, file), place, sizes, seen),
        *(partial(fold, name, entity) for name, entity in ENTITIES.items()),
    ]
    cleaned = together(work)[0]
    found = seen.get
    counts = {**input.counts, **cleaned, "events": found["events"], "late": found["late"]}
    as_of = _moment(found["as_of_us"])
    return PartialFacts(input.first, input.last, as_of, counts, dict(input.positions))


def _clean(
    spark: SparkSession,
    state: State,
    input: Input,
    named: tuple[DataFrame, str],
    place: Path,
    sizes: Sizes,
    seen: Observation,
) -> dict[str, int]:
    """Set aside what cannot be used, and write the rest, each event once. Returns what it met."""
    records, file = named
    judged = records.withColumn("reason", reason(F.lit(input.now)))
    bad = set_aside(judged.where("reason IS NOT NULL").withColumn("file", F.expr(file)))
    others = _as_rows(spark, bad, input.bad_files)
    if input.aside is not None:
        others = others.unionByName(input.aside)
    write(bad.unionByName(others), place / "quarantine", 1)
    aside = spark.read.schema(bad.schema).parquet(str(place / "quarantine"))
    glanced = records.where(reason_at_a_glance(F.lit(input.now)).isNull())
    usable = glanced.join(aside.select("seq").where("seq > 0"), "seq", "left_anti")
    keys = keys_of(usable)
    write(keys, place / "keys", sizes.files)
    former = [each for each in state.partials() if each.facts.last < input.first]
    repeated = repetitions(
        spark.read.schema(keys.schema).parquet(str(place / "keys")),
        read(spark, former, "keys") if former else None,
    ).persist()
    try:
        clean = judged.where("reason IS NULL").drop("reason")
        events = events_of(clean, repeated).observe(
            seen,
            F.count("*").alias("events"),
            F.count_if(F.col("late_s") > LATE_S).alias("late"),
            F.max(F.unix_micros("received")).alias("as_of_us"),
        )
        write(events, place / "events", sizes.files)
        once = usable.join(repeated, "seq", "left_anti")
        write(notes_of(once), place / "notes", sizes.files)
        return {"duplicates": repeated.count(), "set_aside": aside.count()}
    finally:
        repeated.unpersist()


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def write_cells(cells: DataFrame, entity: Entity, out: Path) -> None:
    """Write cells; of attempts, also how they stand, which is what is read of them mostly."""
    if entity == "activity":
        named = [name for name in cells.columns if name != HASH]
        rows = attempt_rows(cells.withColumn(CELLS, F.struct(*named)), HASH, CELLS)
        # Two hundred columns, most of them null, would take longer to write than to make. As text
        # they are one, and are read again only for attempts of which more is told.
        cells = rows.withColumn(CELLS, F.to_json(CELLS, _JSON))
    write(cells, out, None)


def attempt_cells(frame: DataFrame) -> DataFrame:
    """The cells of attempts, as they were before they were written."""
    return frame.select(F.from_json(CELLS, cell_schema("activity"), _JSON).alias(CELLS)).select(
        f"{CELLS}.*"
    )


def write(frame: DataFrame, out: Path, files: int | None) -> None:
    """As Parquet; in so many files at most, or as the partitions are."""
    if files is not None:
        frame = frame.coalesce(files)
    frame.write.mode("overwrite").parquet(str(out))


def read(spark: SparkSession, partials: Sequence[Partial], name: str) -> DataFrame:
    """One of the tables of some parts, as one."""
    return spark.read.parquet(*(str(each.directory / name) for each in partials))


def _without_repeated_seq(input: Input) -> tuple[DataFrame, str]:
    """A number stands for one record only. A bitmap shows at a glance whether that holds.

    Returns the records, and what tells the file of each.
    """
    records, number = input.records, F.col("seq")
    spread = (
        records.where("seq > 0")
        .groupBy(F.bitmap_bucket_number(number).alias("bucket"))
        .agg(
            F.count("*").alias("rows"),
            F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position(number))).alias("numbers"),
        )
    )
    crowded = [each.bucket for each in spread.where("rows > numbers").collect()]
    if not crowded:
        return records, input.file
    named = records.withColumn("file", F.expr(input.file))
    is_crowded = F.coalesce(F.bitmap_bucket_number(number).isin(crowded), F.lit(False))
    # Of several, one that can be used keeps the number.
    is_bad = reason(F.lit(input.now)).isNotNull()
    order = Window.partitionBy("seq").orderBy(is_bad, "received", "source", "id")
    some = named.where(is_crowded).withColumn("place", F.row_number().over(order))
    # Without a number of its own, which is what `reason` sets aside.
    own = F.when(F.col("place") == 1, number).otherwise(F.lit(None))
    return named.where(~is_crowded).unionByName(some.withColumn("seq", own).drop("place")), "file"


def _as_rows(spark: SparkSession, like: DataFrame, bad: Sequence[BadFile]) -> DataFrame:
    rows = [{"file": each.path, "reason": each.reason} for each in bad]
    return spark.createDataFrame(rows, like.schema)
