"""What a batch of a stream takes beside the years before it: keys searched for, and keys joined.

    python bench/batches.py [--events 10M] [--batch 10000] [--rounds 3] [--json FILE]

Tables are made of an archive (`tocsin synth`), and then batches are taken in after it, one by one,
as `tocsin pipeline stream` takes them. `searched` is how it is done: what was there before is
looked up in keys that are kept in order. `joined` reads the keys of all events there ever were, as
for a batch too large to be searched for. `alone` is the same batch with nothing before it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from pathlib import Path
from typing import Final
from unittest.mock import patch

from pyspark.sql import SparkSession

import pipeline
import report
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.catalog import Catalog
from tocsin.archive.facts import FactsReader
from tocsin.archive.record import to_batch
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.ontology import built_in
from tocsin.pipeline.job import SETTINGS, Job, run, take_in
from tocsin.pipeline.partials import dedup_index as known
from tocsin.pipeline.spark.session import session
from tocsin.pipeline.state import State

RECEIVED_NS: Final = 1_790_000_000_000_000_000
FACTS_READER: Final = FactsReader(built_in())
WAYS: Final = {"searched": known.ROWS_MAX, "joined": 0}


def add(archive: Path, count: int) -> None:
    """One more file of the archive."""
    first = Catalog(archive).through() + 1
    events = [
        Stored(seq, RECEIVED_NS, Event(id=f"batch-{seq}", source="/bench", type="made", topic="t"))
        for seq in range(first, first + count)
    ]
    (segment,) = segments([to_batch(events, FACTS_READER)], first, first + count - 1)
    ArchiveWriter(str(archive), SealLimits()).write_fresh(segment)


def took_s(spark: SparkSession, state: State, job: Job, rows_max: int, count: int) -> float:
    add(Path(job.archive), count)
    with patch.object(known, "ROWS_MAX", rows_max):
        begun_s = time.perf_counter()
        take_in(spark, state, job, lambda step: None)
        return time.perf_counter() - begun_s


def batches(spark: SparkSession, job: Job, count: int, rounds: int) -> dict[str, float]:
    """The median of each way, in turns; a first turn warms up, and puts keys in order."""
    state, taken = State(job.tables), {way: list[float]() for way in WAYS}
    with state.held():
        state.agree_on(job.window)
        for number in range(rounds + 1):
            for way, rows_max in WAYS.items():
                seconds = took_s(spark, state, job, rows_max, count)
                if number:
                    taken[way].append(seconds)
    return {way: statistics.median(seconds) for way, seconds in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", default="10M", help="there before")
    parser.add_argument("--batch", type=int, default=10_000, help="events in a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="1M events before")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    events = "1M" if asked.quick else asked.events
    place = pipeline.PLACE / f"batches-{events}"
    shutil.rmtree(place, ignore_errors=True)
    made = pipeline.archive_of(events)
    shutil.copytree(made, place / "archive", copy_function=os.link)
    (place / "empty").mkdir()
    spark = session("local[2]", purpose="work", extra=SETTINGS)
    long = Job(str(place / "archive"), place / "tables")
    run(spark, long)
    beside = batches(spark, long, asked.batch, asked.rounds)
    short = Job(str(place / "empty"), place / "short")
    alone = batches(spark, short, asked.batch, asked.rounds)
    spark.stop()
    shutil.rmtree(place)
    found = {"alone": alone["searched"], **beside}
    report.table(
        ["a batch, s", "", "over alone"],
        [[way, seconds, seconds / found["alone"]] for way, seconds in found.items()],
    )
    if asked.json:
        report.write("batches", {"events": events, "batch": asked.batch, **found}, asked.json)


if __name__ == "__main__":
    main()
