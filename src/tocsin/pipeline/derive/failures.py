"""Failures: each with the events of the run just before, and how often the same was seen."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tocsin.pipeline.spark.schemas import FAILED, fitted

LAST_EVENTS: Final = 10
_EVENT: Final = ("seq", "at", "type", "activity")
_KEY: Final = ("run", "id", "attempt")
_FACTS: Final = (
    *("workflow", "activity", "version", "state", "ended", "duration_s", "host"),
    *("exit_code", "error", "trace", "fault"),
)


def failures(activities: DataFrame, messages: DataFrame, last_n: int = LAST_EVENTS) -> DataFrame:
    """One row for each attempt that failed.

    Of `messages` the columns run, seq, at, type and activity are looked at: the rows of `events`
    do as well, and have none twice.
    """
    failed = activities.where(F.col("state").isin(*FAILED)).select(
        *_KEY, *_FACTS, F.col("settled_seq").alias("seq")
    )
    counted = _counted(failed)
    joined = counted.join(_context(failed, messages, last_n), on=list(_KEY), how="left")
    nothing = F.array().cast("array<struct<seq:bigint,at:timestamp,type:string,activity:string>>")
    return fitted(joined.withColumn("before", F.coalesce("before", nothing)), "failures")


def _counted(failed: DataFrame) -> DataFrame:
    """How often the same fault was seen, before and in all. One that says nothing is its own."""
    has_fault = F.col("fault").isNotNull()
    # Those that say nothing are spread out: together they would be one large partition.
    same = F.coalesce("fault", F.xxhash64(*_KEY))
    whole = Window.partitionBy(same, has_fault)
    before = whole.orderBy("seq", *_KEY)
    ever = before.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return failed.select(
        "*",
        F.when(has_fault, F.count(F.lit(1)).over(ever)).otherwise(1).alias("seen"),
        F.when(has_fault, F.row_number().over(before) - 1).otherwise(0).alias("seen_before"),
        F.when(has_fault, F.min("ended").over(ever)).otherwise(F.col("ended")).alias("first_seen"),
    )


def _context(failed: DataFrame, messages: DataFrame, last_n: int) -> DataFrame:
    """For each failure the last events of its run before it, the oldest first.

    A failure is put among the events of its run as a row of its own. Backwards from the end, an
    event's distance to the failure that follows is a matter of two running numbers; only events
    that are near enough are looked at twice.
    """
    events = (
        messages.where(F.col("run").isNotNull())
        .join(failed.select("run").distinct(), on="run", how="left_semi")
        .select("run", "seq", F.struct(*_EVENT).alias("event"), F.lit(None).alias("mark"))
    )
    marks = failed.where(F.col("seq").isNotNull()).select(
        "run", "seq", F.lit(None).alias("event"), F.struct("id", "attempt").alias("mark")
    )
    # An event of the same place is the failure itself: backwards it comes before the mark.
    backwards = Window.partitionBy("run").orderBy(F.col("seq").desc(), F.col("mark").isNotNull())
    so_far = backwards.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = events.unionByName(marks).withColumn("number", F.count("event").over(so_far))
    nearest = F.max(F.when(F.col("mark").isNotNull(), F.col("number"))).over(so_far)
    near = numbered.withColumn("nearest", nearest).where(
        F.col("number") - F.col("nearest") <= last_n
    )
    ahead = Window.partitionBy("run").orderBy("number").rangeBetween(1, last_n)
    return (
        near.withColumn("before", F.collect_list("event").over(ahead))
        .where(F.col("mark").isNotNull())
        .select("run", "mark.id", "mark.attempt", F.reverse("before").alias("before"))
    )
