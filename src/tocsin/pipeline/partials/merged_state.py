"""The state of all parts merged, and the compaction of parts.

Nearly all that was folded before does not change later. So only those attempts and runs are
folded again that a later part has news of, and the rest is taken as it is.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from tocsin.pipeline.fold.attempts import attempt_rows
from tocsin.pipeline.fold.cells import CELLS, attempt_cells, read_attempts, write_cells
from tocsin.pipeline.fold.generations import TURNS
from tocsin.pipeline.fold.rules import HASH, folded
from tocsin.pipeline.locations import on_this_disk
from tocsin.pipeline.partials.dedup_index import ordered_beside
from tocsin.pipeline.partials.partial import Sizes
from tocsin.pipeline.spark.parquet import read, write
from tocsin.pipeline.state import Partial, PartialFacts, State

_AS_ONE: Final = ("quarantine", TURNS)
PARTS_MAX: Final = 12  # beyond it some of them become one


def merged_attempts(spark: SparkSession, parts: Sequence[Partial], sizes: Sizes) -> DataFrame:
    """One row an attempt, as all parts together let it stand."""
    if len(parts) == 1:
        return read_attempts(spark, parts).drop(HASH, CELLS)
    again, untouched = _touched_by(read_attempts(spark, parts[:1]), read_attempts(spark, parts[1:]))
    rebuilt = attempt_rows(folded(attempt_cells(again), "activity", sizes.partitions))
    return untouched.drop(HASH, CELLS).unionByName(rebuilt)


def merged_runs(spark: SparkSession, parts: Sequence[Partial], sizes: Sizes) -> DataFrame:
    """The cells of every run."""
    if len(parts) == 1:
        return read(spark, parts, "runs")
    again, untouched = _touched_by(read(spark, parts[:1], "runs"), read(spark, parts[1:], "runs"))
    rebuilt = folded(again.drop(HASH), "run", sizes.partitions)
    return untouched.unionByName(rebuilt.select(*untouched.columns))


def _touched_by(first: DataFrame, later: DataFrame) -> tuple[DataFrame, DataFrame]:
    """What is to be folded again, as a later part has news of it; and the rest of the first."""
    hashes = later.select(HASH).distinct()
    again = first.join(hashes, HASH, "left_semi").unionByName(later)
    return again, first.join(hashes, HASH, "left_anti")


def due(parts: Sequence[Partial]) -> Sequence[Partial]:
    """Those at the end that should become one part; none, if there is no need.

    A part has at least as many events as all later ones together, or they become one with it: so
    what was folded is written again only when it has doubled. While parts are few, only the first
    is held to that.
    """
    events = [max(1, each.facts.counts.get("events", 0)) for each in parts]
    are_many = len(parts) > PARTS_MAX
    for index in range(len(parts) - 1):
        if sum(events[index + 1 :]) > events[index] and (index == 0 or are_many):
            return parts[index:]
    return parts[-2:] if are_many else ()


def compacted(spark: SparkSession, state: State, parts: Sequence[Partial], sizes: Sizes) -> Partial:
    """One part in place of these, which follow one another."""
    with state.new_directory() as directory:
        return state.keep(directory, _gather_all(spark, state, parts, sizes, directory))


def _gather_all(
    spark: SparkSession, state: State, parts: Sequence[Partial], sizes: Sizes, directory: Path
) -> PartialFacts:
    again, untouched = _touched_by(read_attempts(spark, parts[:1]), read_attempts(spark, parts[1:]))
    write_cells(
        folded(attempt_cells(again), "activity", sizes.partitions), "activity", directory / "a"
    )
    rebuilt = spark.read.schema(untouched.schema).parquet(on_this_disk(directory / "a"))
    write(untouched.unionByName(rebuilt), directory / "attempts", None)
    shutil.rmtree(directory / "a")
    write(merged_runs(spark, parts, sizes), directory / "runs", None)
    for name in ("keys", "quarantine", "notes", "events", TURNS):
        _gathered(spark, parts, name, directory / name, sizes)
    return PartialFacts(
        first=min(each.facts.first for each in parts),
        last=max(each.facts.last for each in parts),
        as_of=max((each.facts.as_of for each in parts if each.facts.as_of), default=None),
        counts=added(parts),
        positions=state.positions(),
        last_event=max(
            (each.facts.last_event for each in parts if each.facts.last_event), default=None
        ),
    )


def added(parts: Sequence[Partial]) -> dict[str, int]:
    """What was counted, over all parts."""
    names = sorted({name for each in parts for name in each.facts.counts})
    return {name: sum(each.facts.counts.get(name, 0) for each in parts) for name in names}


def _gathered(
    spark: SparkSession, parts: Sequence[Partial], name: str, out: Path, sizes: Sizes
) -> None:
    """The files of the first part as they are, and those of the others as few."""
    later = [each for each in parts[1:] if each.files(name)]
    if later:
        write(read(spark, later, name), out, 1 if name in _AS_ONE else sizes.files)
    else:
        out.mkdir()
    for file in parts[0].files(name):
        target = out / f"part-{uuid.uuid4().hex}.parquet"
        os.link(file, target)
        with suppress(FileNotFoundError):  # of keys, and only of those that were asked for
            os.link(ordered_beside(file), ordered_beside(target))
