"""Deliveries: how each subscription is served, from samples of counters that may start again."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from tocsin.pipeline.spark.schemas import fitted

COUNTERS: Final = ("delivered", "failed_attempts", "dead", "dropped")
LAST: Final = ("sink", "protocol", "state", "sink_state", "behind")
SECONDS_AN_HOUR: Final = 3_600.0
# Slow: it is behind, by this many events at least, and more so in the later half of its samples.
BEHIND_MIN: Final = 100


def deliveries(samples: DataFrame, letters: DataFrame) -> DataFrame:
    """One row for each subscription that was ever looked at, or had an event given up."""
    counted = _counted(samples)
    joined = counted.join(_reasons(letters), on="subscription", how="full")
    hours = (F.unix_micros("last_seen") - F.unix_micros("first_seen")) / F.lit(
        SECONDS_AN_HOUR * 1e6
    )
    tries = F.col("delivered") + F.col("failed_attempts")
    return fitted(
        joined.select(
            "subscription",
            *(_known(name).alias(name) for name in ("sink", "first_seen", "last_seen")),
            *(name for name in LAST if name != "sink"),
            *(F.coalesce(name, F.lit(0)).alias(name) for name in ("samples", *COUNTERS)),
            "max_behind",
            "mean_behind",
            F.try_divide(F.col("grown_delivered"), hours).alias("per_hour"),
            F.try_divide(F.col("failed_attempts"), tries).alias("failing_share"),
            F.coalesce(_is_slow(), F.lit(False)).alias("slow"),
            "last_error",
            F.coalesce(
                "reasons", F.array().cast("array<struct<reason:string,count:bigint>>")
            ).alias("reasons"),
        ),
        "deliveries",
    )


def _known(name: str) -> Column:
    return F.coalesce(name, f"letter_{name}")


def _counted(samples: DataFrame) -> DataFrame:
    """What the counters counted, over restarts of the broker; and how it stood at the end."""
    in_time = Window.partitionBy("subscription").orderBy("at")
    whole = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    half = F.unix_micros(F.min("at").over(whole)) / 2 + F.unix_micros(F.max("at").over(whole)) / 2
    grown = samples.select(
        "*",
        *(_growth(name, in_time).alias(f"more_{name}") for name in COUNTERS),
        F.lag("at").over(in_time).isNull().alias("is_first"),
        (F.unix_micros("at") > half).alias("is_later"),
    )
    last = F.struct("at", *LAST)
    error = F.when(F.col("last_error").isNotNull(), F.struct("at", "last_error"))
    behind = F.col("behind")
    return (
        grown.groupBy("subscription")
        .agg(
            F.min("at").alias("first_seen"),
            F.max("at").alias("last_seen"),
            F.count(F.lit(1)).alias("samples"),
            *(F.sum(f"more_{name}").alias(name) for name in COUNTERS),
            F.sum(F.when(~F.col("is_first"), F.col("more_delivered"))).alias("grown_delivered"),
            F.max("behind").alias("max_behind"),
            F.avg("behind").alias("mean_behind"),
            F.avg(F.when(F.col("is_later"), behind)).alias("later_behind"),
            F.avg(F.when(~F.col("is_later"), behind)).alias("earlier_behind"),
            F.max(last).alias("last"),
            F.max(error).alias("error"),
        )
        .select("*", *(f"last.{name}" for name in LAST), "error.last_error")
    )


def _growth(name: str, in_time: WindowSpec) -> Column:
    """By how much the counter grew since the sample before. A smaller one began at nought."""
    now, then = F.col(name), F.lag(name).over(in_time)
    return F.when(now >= then, now - then).otherwise(now)


def _is_slow() -> Column:
    grows = F.col("earlier_behind").isNull() | (F.col("later_behind") >= F.col("earlier_behind"))
    return (F.col("behind") >= BEHIND_MIN) & grows


def _reasons(letters: DataFrame) -> DataFrame:
    """Why events were given up, the most frequent reason first."""
    counted = letters.groupBy("subscription", "reason").agg(
        F.countDistinct("id").alias("count"),
        F.max(F.struct("at", "sink")).alias("last"),
        F.min("at").alias("first"),
    )
    # Sorted by (-count, reason): arrays of structs are sorted by their members in turn.
    ordered = F.array_sort(
        F.collect_list(F.struct((-F.col("count")).alias("order"), "reason", "count"))
    )
    return counted.groupBy("subscription").agg(
        F.transform(ordered, lambda each: F.struct(each.reason, each["count"])).alias("reasons"),
        F.max("last").getField("sink").alias("letter_sink"),
        F.min("first").alias("letter_first_seen"),
        F.max("last").getField("at").alias("letter_last_seen"),
    )
