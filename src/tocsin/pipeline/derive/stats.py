"""Statistics of each activity and version: counts, exact quantiles, a histogram."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.pipeline.derive.kinds import NO, in_order, numbered, of_kind, quantile
from tocsin.pipeline.spark.schemas import FAILED, KIND, RAN, SUCCEEDED, fitted, measured

QUANTILES: Final = {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}
BINS: Final = 20
# What is shorter is as long as this where a logarithm is taken: clocks show no less.
SHORTEST_S: Final = 1e-6


def activity_stats(activities: DataFrame) -> DataFrame:
    """One row for each activity and version of which an attempt ended."""
    ran = activities.where(F.col("state").isin(*RAN))
    kinds = numbered(_counted(ran))
    succeeded = F.when(F.col("state") == SUCCEEDED, F.col("duration_s"))
    attempts = ran.select(*KIND, "run", succeeded.alias("value"))
    placed = of_kind(attempts, kinds, "min_s", "max_s")
    joined = kinds.join(_runs(placed), on=NO, how="left").join(_bins(placed), on=NO, how="left")
    ordered = F.flatten(F.transform("bins", lambda each: each["values"]))
    spread = {name: quantile("ordered", share) for name, share in QUANTILES.items()}
    complete = joined.withColumn("ordered", ordered).withColumns(
        {**spread, "histogram": F.when(F.col("bins").isNotNull(), _histogram())}
    )
    return fitted(complete, "activity_stats")


def _counted(ran: DataFrame) -> DataFrame:
    state, lasted = F.col("state"), F.col("duration_s")
    succeeded = F.when(state == SUCCEEDED, lasted)
    return ran.groupBy(*KIND).agg(
        F.count(F.lit(1)).alias("count"),
        F.count_if(state.isin(*FAILED)).alias("failed"),
        F.count_if(state == "cancelled").alias("cancelled"),
        F.avg(succeeded).alias("mean_s"),
        F.stddev_samp(succeeded).alias("stddev_s"),
        F.min(succeeded).alias("min_s"),
        F.max(succeeded).alias("max_s"),
        F.sum(lasted).alias("busy_s"),
        F.coalesce(F.sum(F.when(state != SUCCEEDED, lasted)), F.lit(0.0)).alias("wasted_s"),
        F.avg("waited_s").alias("mean_waited_s"),
        F.avg(measured("use_CpuSeconds")).alias("mean_cpu_s"),
        F.avg(measured("use_MemoryPeak")).alias("mean_memory_bytes"),
        F.max(measured("use_MemoryPeak")).alias("max_memory_bytes"),
        F.avg(measured("use_IoReadBytes")).alias("mean_read_bytes"),
        F.avg(measured("use_IoWriteBytes")).alias("mean_written_bytes"),
        F.avg("input_bytes").alias("mean_input_bytes"),
        F.min("ended").alias("first_ended"),
        F.max("ended").alias("last_ended"),
    )


def _runs(placed: DataFrame) -> DataFrame:
    # Counted apart: a distinct count among other aggregates would carry all of them through its
    # own exchange, one row for each run.
    return placed.select(NO, "run").distinct().groupBy(NO).agg(F.count("run").alias("runs"))


def _bins(placed: DataFrame) -> DataFrame:
    """The durations of what succeeded: in order within each bin, and bin after bin."""
    values = placed.where(F.col("value").isNotNull())
    by_bin = values.groupBy(NO, _bin().alias("bin")).agg(in_order(F.col("value")).alias("values"))
    bins = F.array_sort(F.collect_list(F.struct("bin", "values")))
    return by_bin.groupBy(NO).agg(bins.alias("bins"))


def _ends() -> tuple[Column, Column]:
    """The shortest and the longest, as a logarithm may be taken of them."""
    return F.greatest("min_s", F.lit(SHORTEST_S)), F.greatest("max_s", F.lit(SHORTEST_S))


def _edge(number: Column) -> Column:
    """Where a bin begins; the first and the last edge are the extremes themselves."""
    low, high = _ends()
    inner = low * F.pow(high / low, number / F.lit(float(BINS)))
    return F.when(number == 0, F.col("min_s")).when(number == BINS, F.col("max_s")).otherwise(inner)


def _bin() -> Column:
    """Which bin the value is in. A value on an edge is in the bin that begins there."""
    low, high = _ends()
    value = F.greatest("value", F.lit(SHORTEST_S))
    guess = F.floor(F.try_divide(F.log(value / low), F.log(high / low)) * BINS)
    guess = F.least(F.greatest(guess, F.lit(0)), F.lit(BINS - 1)).cast("int")
    # A logarithm is rounded; the edges that are shown are not to be contradicted.
    value = F.col("value")
    placed = (
        F.when((guess > 0) & (value < _edge(guess)), guess - 1)
        .when((guess < BINS - 1) & (value >= _edge(guess + 1)), guess + 1)
        .otherwise(guess)
    )
    return F.when(low < high, placed).otherwise(F.lit(0))


def _histogram() -> Column:
    low, high = _ends()
    times = F.map_from_entries(
        F.transform("bins", lambda each: F.struct(each.bin, F.size(each["values"])))
    )
    last = F.when(low < high, F.lit(BINS - 1)).otherwise(F.lit(0))

    def one(number: Column) -> Column:
        return F.struct(
            F.when(number == 0, F.col("min_s")).otherwise(_edge(number)).alias("low_s"),
            F.when(number == last, F.col("max_s")).otherwise(_edge(number + 1)).alias("high_s"),
            F.coalesce(F.try_element_at(times, number), F.lit(0)).alias("count"),
        )

    return F.transform(F.sequence(F.lit(0), last), one)
