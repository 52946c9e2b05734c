"""The stream: the same work, batch after batch as events come, with a checkpoint.

Spark's stream says how far the archive has come, and keeps that in a checkpoint; what is new up to
there is taken in as a run does it, and becomes a part of the state, whole or not at all. If the
process is killed, Spark gives the batch again from the same offsets; what is in the state already
is known by its sequence numbers and left alone. Since cells merge in any order, no event comes too
late to count: the watermark only says from when on an event is called late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from tocsin.pipeline.job import Job, Taken, is_behind, make_tables, start_over, take_in
from tocsin.pipeline.locations import is_broker, is_directory, on_this_disk
from tocsin.pipeline.source import register
from tocsin.pipeline.spark.spark_errors import readable_errors
from tocsin.pipeline.state import CHECKPOINT, State

LOOK_S: Final = 1
SAMPLES_S: Final = 300.0  # between two looks for samples alone; they are written every ten minutes
# What Spark says of a checkpoint that was cut short: of its offsets, its commits, its name.
BROKEN_CHECKPOINT: Final = ("ncomplete log file", "alformed", "log version", "StreamMetadata")


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, and how much at a time."""

    trigger_s: float = 5.0
    refresh_s: float = 30.0
    """So long after events came, the tables have them at the latest, but for the time it takes."""
    rows_max: int = 1_000_000
    watermark_s: float = 600.0
    once: bool = False
    """End when what is there now is done."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What was just done."""

    kind: str
    """`batch`, or `tables`."""
    through: int
    events: int
    took_s: float
    age_s: float | None
    """How long ago the youngest of the events was received."""
    version: int | None = None


OnProgress = Callable[[Progress], None]


def _nothing_more() -> None:
    """What is done about a new edition if nobody says."""


class StreamJob:
    """A pipeline that keeps up, until it is stopped."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        pace: Pace,
        on_progress: OnProgress,
        send: Callable[[], None] = _nothing_more,
    ) -> None:
        self._spark = spark
        self._job = replace(job, rows_max=pace.rows_max, late_s=pace.watermark_s)
        self._pace = pace
        self._on_progress = on_progress
        self._send = send
        self._state = State(job.tables)
        self._turn = threading.Lock()  # a batch and a new edition do not meet
        self._pending_since: float | None = None
        self._rests_until = 0.0
        self._samples_at = time.monotonic() + SAMPLES_S
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End after the batch under way. May be called from a signal."""
        self._stopping.set()

    def run(self) -> None:
        """Keep up until stopped; with `once`, until everything is done."""
        with readable_errors(), self._state.held():
            if self._job.rebuild:
                start_over(self._spark, self._state, self._job)
            self._state.agree_on(self._job.window)
            if is_behind(self._spark, self._state, self._job):
                # Whoever took it in was killed before the tables had it.
                self._pending_since = time.monotonic()
            self._send()  # what another run made, and could not send
            if is_directory(self._job.archive) or is_broker(self._job.archive):
                self._follow()
            else:
                self._ask_again_and_again()
            if self._pending_since is not None:
                self._refresh()

    def _follow(self) -> None:
        """As a stream of Spark's."""
        try:
            self._watched()
        except PySparkException as error:
            if not any(words in str(error) for words in BROKEN_CHECKPOINT):
                raise
            # Spark does not wait for the disk when it writes one. The state does, and says it all.
            self._state.forget_checkpoint()
            self._watched()

    def _watched(self) -> None:
        # What Spark gave when we were asked to stop was not taken, and is not given again.
        while self._state.has_checkpoint() and not self._stopping.is_set():
            if self._take_new().is_all:
                break
            self._refresh_if_due()
        query = self._start()
        try:
            self._watch(query)
        finally:
            if query.isActive:
                query.stop()

    def _ask_again_and_again(self) -> None:
        """As the job does, for what our source does not read. The state is all that it goes by."""
        while not self._stopping.is_set():
            taken = self._take_new()
            if taken.is_all and self._pace.once:
                return
            self._refresh_if_due()
            if not taken.is_news:
                self._stopping.wait(self._pace.trigger_s)

    def _take_new(self) -> Taken:
        """Make one part of what is new."""
        begun_s = time.monotonic()
        with self._turn:
            before = self._state.through()
            taken = take_in(self._spark, self._state, self._job, lambda step: None)
            parts = self._state.partials()
            if not parts or parts[-1].facts.last == before:
                return Taken()
            if self._pending_since is None:
                self._pending_since = begun_s
        facts, took_s = parts[-1].facts, time.monotonic() - begun_s
        age_s = None if facts.as_of is None else (datetime.now(UTC) - facts.as_of).total_seconds()
        events = facts.counts.get("events", 0)
        self._on_progress(Progress("batch", facts.last, events, took_s, age_s))
        return taken

    def _start(self) -> StreamingQuery:
        register(self._spark)
        # What was folded by other means is not read again. With a checkpoint Spark knows better,
        # and what it gives twice is left alone.
        events = (
            self._spark.readStream.format("tocsin")
            .option("columns", "seq, at")
            .option("after", self._state.through())
            .option("rows_per_trigger", self._pace.rows_max)
            .option("nulls", "keep")
            .option("bad_files", "skip")
            .option("holes", "skip")
            .load(self._job.archive)
            .withWatermark("at", f"{self._pace.watermark_s:.0f} seconds")
        )
        writer = (
            events.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", on_this_disk(self._state.directory / CHECKPOINT))
            .queryName("tocsin")
        )
        if self._pace.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self._pace.trigger_s} seconds").start()

    def _take(self, batch: DataFrame, _number: int) -> None:
        """Take in what a batch announces, unless the state has it."""
        found = batch.agg(F.max("seq")).first()
        # Without a number: nothing but files that cannot be read, which are to be named.
        last = self._through() + 1 if found is None or found[0] is None else found[0]
        while self._through() < last:
            if self._stopping.is_set() or not self._take_new().is_news:
                return

    def _through(self) -> int:
        with self._turn:  # while parts become one, some are gone
            return self._state.through()

    def _watch(self, query: StreamingQuery) -> None:
        while not query.awaitTermination(LOOK_S):
            if not self._stopping.is_set():
                self._refresh_if_due()
            # Spark would break off a batch: it is waited for, and the next one does not begin.
            elif not query.status["isTriggerActive"]:
                return

    def _refresh_if_due(self) -> None:
        """Not while what is there is taken in once: nobody waits for what is known to be old."""
        now_s = time.monotonic()
        if self._pace.once or now_s < self._rests_until:
            return
        if self._pending_since is None and now_s >= self._samples_at:
            self._samples_at = now_s + SAMPLES_S
            self._look_for_samples(now_s)
        since = self._pending_since
        if since is not None and now_s - since >= self._pace.refresh_s:
            self._refresh()

    def _look_for_samples(self, now_s: float) -> None:
        """Of subscriptions and questions there may be news when there are no events."""
        with self._turn:
            if is_behind(self._spark, self._state, self._job):
                self._pending_since = now_s

    def _refresh(self) -> None:
        """A new edition of the tables, of all that was taken so far."""
        begun_s = time.monotonic()
        with self._turn:
            manifest = make_tables(self._spark, self._state, self._job, lambda step: None)
            self._pending_since = None
            self._send()
        took_s = time.monotonic() - begun_s
        # At most half of the time goes into tables, however many events there are by now.
        self._rests_until = time.monotonic() + took_s
        age_s = None
        if manifest.as_of is not None:
            age_s = (datetime.now(UTC) - manifest.as_of).total_seconds()
        events = manifest.counts.get("events", 0)
        self._on_progress(
            Progress("tables", manifest.through, events, took_s, age_s, manifest.version)
        )
