"""Partial: some events of the archive, made into one part of the tables' state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tocsin.archive.last_event import LastEvent
from tocsin.monitor.rules import Entity
from tocsin.pipeline.fold.cells import write_cells
from tocsin.pipeline.fold.clean import (
    LATE_S,
    as_judged,
    events_of,
    is_clock_off,
    keys_of,
    notes_of,
    reason,
    repetitions,
    set_aside,
)
from tocsin.pipeline.fold.generations import TURNS, split_generations, turns_before, turns_of
from tocsin.pipeline.fold.row_numbers import ROW, misnumbered, numbered, unnumbered
from tocsin.pipeline.fold.rules import cells_of, folded
from tocsin.pipeline.locations import on_this_disk
from tocsin.pipeline.partials.dedup_index import seen_before
from tocsin.pipeline.spark.broadcast import Keep, broadcast_rows, without
from tocsin.pipeline.spark.parallel import run_parallel
from tocsin.pipeline.spark.parquet import write, write_one_file
from tocsin.pipeline.spark.schemas import spark_schema
from tocsin.pipeline.state import Partial, PartialFacts, State
from tocsin.tables.schemas import QUARANTINE

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# With it, the next part would begin in the middle of this one, or this one would change the last.
NOT_ITS_NUMBER: Final = "its sequence number is not in its file"


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
    row: str
    """An expression that differs between records with the same number."""
    bad_files: Sequence[BadFile] = ()
    file: str = "''"
    """One for the file that a record is from."""
    late_s: float = LATE_S
    """An event that comes so long after it happened counts as late."""
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
    """Clean, fold and keep. Returns the part, on disk."""
    with state.new_directory() as directory, broadcast_rows() as keep:
        return state.keep(directory, _made(spark, state, input, sizes, directory, keep))


def _made(
    spark: SparkSession, state: State, input: Input, sizes: Sizes, directory: Path, keep: Keep
) -> PartialFacts:
    records = input.records.withColumns({"file": F.expr(input.file), ROW: F.expr(input.row)})
    wrong = misnumbered(as_judged(records), keep)
    is_its_own = F.col("seq").between(input.first, input.last)
    why = F.coalesce(reason(), F.when(~is_its_own, F.lit(NOT_ITS_NUMBER)))
    judged = unnumbered(as_judged(records), wrong).withColumn("reason", why)
    bad = set_aside(judged.where("reason IS NOT NULL"))
    others = quarantined(spark, input.bad_files)
    if input.aside is not None:
        others = others.unionByName(input.aside)
    write_one_file(bad.unionByName(others), directory / "quarantine")
    aside = spark.read.schema(bad.schema).parquet(on_this_disk(directory / "quarantine"))
    # By their numbers: to judge them again, each step would read all that they are judged by.
    numbers = keep(aside.select("seq").where("seq > 0"))
    usable = without(numbered(records, wrong).where("seq > 0"), numbers)
    usable = _by_generation(spark, state, input, usable, directory)
    seen = Observation()

    def fold(name: str, entity: Entity, plans: DataFrame | None = None) -> dict[str, int]:
        cells = folded(cells_of(usable, entity, plans), entity, sizes.partitions)
        write_cells(cells, entity, directory / name)
        return {}

    met, _ = run_parallel(
        [
            lambda: _write_once(spark, state, input, usable, directory, sizes, seen, keep),
            lambda: fold("runs", "run"),
        ]
    )
    notes = spark.read.schema(notes_of(usable).schema).parquet(on_this_disk(directory / "notes"))
    fold("attempts", "activity", notes)
    found = seen.get
    counts = {
        **input.counts,
        **met,
        "set_aside": aside.count(),
        "events": found["events"],
        "late": found["late"],
        "clock_off": found["clock_off"],
    }
    as_of = _as_of(found["by_now_us"], found["last_us"], input.now)
    last = found["last"]
    return PartialFacts(
        input.first,
        input.last,
        as_of,
        counts,
        dict(input.positions),
        None if last is None else LastEvent(last["seq"], last["source"], last["id"]),
    )


def _by_generation(
    spark: SparkSession, state: State, input: Input, usable: DataFrame, directory: Path
) -> DataFrame:
    """What can be used, where a run id that was used again names each of its runs."""
    turns = turns_of(usable)
    write_one_file(turns, directory / TURNS)
    own = spark.read.schema(turns.schema).parquet(on_this_disk(directory / TURNS))
    former = [each for each in state.partials() if each.facts.last < input.first]
    return split_generations(usable, [own, *turns_before(spark, former)])


def _write_once(
    spark: SparkSession,
    state: State,
    input: Input,
    usable: DataFrame,
    directory: Path,
    sizes: Sizes,
    seen: Observation,
    keep: Keep,
) -> dict[str, int]:
    """Write what can be used, each event once. Returns what it met."""
    keys = keys_of(usable)
    write(keys, directory / "keys", sizes.files)
    former = [each for each in state.partials() if each.facts.last < input.first]
    repeated = repetitions(
        spark.read.schema(keys.schema).parquet(on_this_disk(directory / "keys")),
        seen_before(spark, directory / "keys", former, keep),
        keep,
    )
    once = usable.join(repeated, "seq", "left_anti")
    received_us = F.unix_micros("received")
    events = events_of(once).observe(
        seen,
        F.count("*").alias("events"),
        F.count_if(F.col("late_s") > input.late_s).alias("late"),
        F.count_if(is_clock_off()).alias("clock_off"),
        F.max(F.when(F.col("received") <= F.lit(input.now), received_us)).alias("by_now_us"),
        F.max_by(received_us, "seq").alias("last_us"),
        F.max_by(F.struct("seq", "source", "id"), "seq").alias("last"),
    )
    write(events, directory / "events", sizes.files)
    write(notes_of(once), directory / "notes", sizes.files)
    return {"duplicates": repeated.count()}


def _as_of(by_now_us: int | None, last_us: int | None, now: datetime) -> datetime | None:
    """When the youngest event was received, as far as that can be.

    A single time that is ahead makes nobody late. But the broker's times never go back: once its
    clock was ahead, so is all that follows, and what came last came now.
    """
    if last_us is not None and EPOCH + timedelta(microseconds=last_us) > now:
        return now
    return None if by_now_us is None else EPOCH + timedelta(microseconds=by_now_us)


def quarantined(spark: SparkSession, bad: Sequence[BadFile]) -> DataFrame:
    """Files as the quarantine shows them."""
    rows = [{"file": each.path, "reason": each.reason} for each in bad]
    return spark.createDataFrame(rows, spark_schema(QUARANTINE))
