"""Estimates: how long each run under way still takes, from past runs at the same point.

A past run is looked at when as many of its activities had ended (or the same share, if it has
another number of them) and it had waited as long for the next end as this run has by now. Where
too few past runs waited that long, all of them count, less the time that was waited. If nearly all
were over by then, the past does not show what is left, and there is no estimate.
"""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tocsin.monitor.end_states import ENDED_ACTIVITY
from tocsin.pipeline.spark.schemas import fitted

UNDER_WAY: Final = ("running", "idle", "suspended")
ENOUGH: Final = 5  # past runs from which quantiles are worth showing
# The latest runs are the best guide to the next, and bound what is looked at for each.
PAST_MAX: Final = 200
QUANTILES: Final = (0.1, 0.5, 0.9)
_SCOPE: Final = ("workflow", "scope")
US_PER_S: Final = 1e6


def estimates(runs: DataFrame, activities: DataFrame, as_of: datetime) -> DataFrame:
    """One row for each run under way at that moment, a run without a past included."""
    now_s = F.lit(as_of.timestamp())
    under_way = runs.where(F.col("state").isin(*UNDER_WAY))
    past = _past(runs, under_way)
    live = _live(under_way, activities, past, now_s)
    points = _points(live, past, _stages(past, activities))
    estimated = live.join(_quantiles(points), on="run", how="left")
    return fitted(_shown(estimated, as_of), "estimates")


def _seconds(name: str) -> Column:
    return F.unix_micros(name) / F.lit(US_PER_S)


def _past(runs: DataFrame, under_way: DataFrame) -> DataFrame:
    """The latest completed runs of each workflow that is under way, and of each version of it."""
    latest = F.desc("ended"), F.asc("run")
    by_version = Window.partitionBy("workflow", "version")
    completed = runs.where(
        (F.col("state") == "completed")
        & (F.col("workflow") != "")
        & F.col("started").isNotNull()
        & F.col("ended").isNotNull()
    ).join(under_way.select("workflow").distinct(), on="workflow", how="left_semi")
    ranked = completed.select(
        "workflow",
        "version",
        F.col("run").alias("past"),
        _seconds("started").alias("began"),
        _seconds("ended").alias("finished"),
        F.row_number().over(by_version.orderBy(*latest)).alias("of_version"),
        F.row_number().over(Window.partitionBy("workflow").orderBy(*latest)).alias("of_any"),
    )
    return ranked.where((F.col("of_version") <= PAST_MAX) | (F.col("of_any") <= PAST_MAX))


def _live(under_way: DataFrame, activities: DataFrame, past: DataFrame, now_s: Column) -> DataFrame:
    """Runs under way: how far they are, since when nothing ended, and whose past is theirs."""
    done = reduce(
        Column.__add__,
        (F.coalesce(f"n_{state}", F.lit(0)) for state in sorted(ENDED_ACTIVITY)),
    )
    ends = (
        _ended(activities)
        .join(under_way.select("run"), on="run", how="left_semi")
        .groupBy("run")
        .agg(F.max("ended").alias("last_end"))
    )
    known = past.groupBy("workflow", "version").agg(F.count("past").alias("of_same"))
    joined = under_way.join(ends, on="run", how="left").join(
        known, on=["workflow", "version"], how="left"
    )
    begun = F.coalesce("started", "created")
    waited = now_s - F.greatest(_seconds("last_end"), F.unix_micros(begun) / F.lit(US_PER_S))
    is_same = F.coalesce((F.col("of_same") >= ENOUGH) & (F.col("version") != ""), F.lit(False))
    return joined.select(
        "run",
        "workflow",
        "version",
        begun.alias("started"),
        F.greatest(now_s - F.unix_micros(begun) / F.lit(US_PER_S), F.lit(0.0)).alias("elapsed_s"),
        done.alias("done"),
        F.greatest("planned", "known", done).alias("total"),
        F.greatest(F.coalesce(waited, F.lit(0.0)), F.lit(0.0)).alias("waited"),
        F.when(is_same, F.col("version")).otherwise("").alias("scope"),
        is_same.alias("is_same"),
    )


def _ended(activities: DataFrame) -> DataFrame:
    """Activities that came to an end, once each, whatever the attempts."""
    return activities.where(F.col("last") & F.col("state").isin(*sorted(ENDED_ACTIVITY))).select(
        "run", "ended"
    )


def _stages(past: DataFrame, activities: DataFrame) -> DataFrame:
    """For each past run, when so many of its activities had ended, and when the next one did."""
    ends = (
        _ended(activities)
        .withColumnRenamed("run", "past")
        .join(past.select("past", "began"), on="past")
        .select("past", F.coalesce(_seconds("ended"), "began").alias("end"), F.lit(1).alias("one"))
    )
    begins = past.select("past", F.col("began").alias("end"), F.lit(0).alias("one"))
    in_time = Window.partitionBy("past").orderBy("one", "end")
    all_of_it = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return begins.unionByName(ends).select(
        "past",
        (F.row_number().over(in_time) - 1).alias("stage"),
        "end",
        F.lead("end").over(in_time).alias("next_end"),
        F.sum("one").over(all_of_it).alias("size"),
    )


def _points(live: DataFrame, past: DataFrame, stages: DataFrame) -> DataFrame:
    """For each run, what was left in each past run when that was as far."""
    scoped = (
        past.where((F.col("of_version") <= PAST_MAX) & (F.col("version") != ""))
        .withColumn("scope", F.col("version"))
        .unionByName(past.where(F.col("of_any") <= PAST_MAX).withColumn("scope", F.lit("")))
        .select(*_SCOPE, "past", "finished")
    )
    sizes = stages.where(F.col("stage") == 0).select("past", "size")
    pairs = live.select("run", *_SCOPE, "done", "total", "waited").join(
        scoped.join(sizes, on="past"), on=list(_SCOPE)
    )
    share = F.try_divide(F.col("done") * F.col("size"), F.col("total"))
    stage = F.when(F.col("total") == F.col("size"), F.col("done")).otherwise(
        F.floor(F.coalesce(share, F.lit(0.0)))
    )
    stage = F.least(stage, F.col("size")).cast("int")
    at_stage = pairs.withColumn("stage", stage).join(stages.drop("size"), on=["past", "stage"])
    left = F.col("finished") - F.col("end") - F.col("waited")
    lasted = F.coalesce("next_end", "finished") - F.col("end")
    return at_stage.select(
        "run",
        F.greatest(left, F.lit(0.0)).alias("left"),
        (lasted >= F.col("waited")).alias("is_alike"),
        (F.col("total") == F.col("size")).alias("is_as_large"),
    )


def _quantiles(points: DataFrame) -> DataFrame:
    # Of at most PAST_MAX values each.
    shares = F.array(*map(F.lit, QUANTILES))
    alike = F.when(F.col("is_alike"), F.col("left"))
    both = points.groupBy("run").agg(
        F.count("left").alias("all"),
        F.count(alike).alias("alike"),
        F.count_if("is_as_large").alias("as_large"),
        F.percentile("left", shares).alias("of_all"),
        F.percentile(alike, shares).alias("of_alike"),
    )
    enough = F.col("alike") >= ENOUGH
    left = F.when(enough, F.col("of_alike")).otherwise(F.col("of_all"))
    is_over = F.element_at(left, len(QUANTILES)) == 0
    return both.select(
        "run",
        enough.alias("enough"),
        F.when(enough, F.col("alike")).otherwise(F.col("all")).alias("runs"),
        (F.col("as_large") * 2 >= F.col("all")).alias("is_as_large"),
        F.when(~is_over, left).alias("left"),
    )


def _shown(estimated: DataFrame, as_of: datetime) -> DataFrame:
    left = {
        name: F.element_at("left", place)
        for place, name in enumerate(("remaining_low_s", "remaining_s", "remaining_high_s"), 1)
    }
    moment = F.lit(as_of)
    ends = F.timestamp_micros(
        F.unix_micros(moment) + F.round(left["remaining_s"] * US_PER_S).cast("long")
    )
    return estimated.select(
        "*",
        moment.alias("as_of"),
        *(column.alias(name) for name, column in left.items()),
        ends.alias("ends"),
        _basis().alias("basis"),
    ).withColumn("runs", F.coalesce("runs", F.lit(0)))


def _basis() -> Column:
    count = F.coalesce("runs", F.lit(0))
    whose = F.when(F.col("is_same"), "of this version").otherwise("of any version")
    when = F.when(F.col("is_as_large"), "as many activities").otherwise(
        "the same share of activities"
    )
    words = F.concat(
        *(F.lit("completed runs "), whose, F.lit(": "), count.cast("string")),
        *(F.lit(", when "), when, F.lit(" had ended")),
        F.when(F.col("enough"), " and the next took as long").otherwise(""),
        F.when(F.col("left").isNull(), "; nearly all were over by now").otherwise(""),
    )
    return F.when(count > 0, words).otherwise("no run of this workflow has completed")
