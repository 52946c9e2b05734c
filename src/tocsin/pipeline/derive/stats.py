"""Statistics of each activity and version: counts, exact quantiles, a histogram."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tocsin.pipeline.derive.schemas import (
    FAILED,
    KIND,
    RAN,
    SUCCEEDED,
    fitted,
    measured,
    same,
)

QUANTILES: Final = {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}
BINS: Final = 20
# What is shorter is as long as this where a logarithm is taken: clocks tell no less.
SHORTEST_S: Final = 1e-6


def activity_stats(activities: DataFrame) -> DataFrame:
    """One row for each activity and version of which an attempt ended."""
    ran = activities.where(F.col("state").isin(*RAN))
    counted, spread, runs = _counted(ran), _spread(ran), _runs(ran)
    joined = counted.alias("c").join(runs.alias("r"), same("c", "r", KIND), "left")
    joined = joined.select("c.*", "r.runs").alias("c")
    joined = joined.join(spread.alias("s"), same("c", "s", KIND), "left")
    return fitted(joined.select("c.*", *(f"s.{name}" for name in _SPREAD)), "activity_stats")


_SPREAD: Final = (*QUANTILES, "histogram")


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


def _runs(ran: DataFrame) -> DataFrame:
    # Counted apart: a distinct count among other aggregates would carry all of them through its
    # own exchange, one row for each run.
    return ran.select(*KIND, "run").distinct().groupBy(*KIND).agg(F.count("run").alias("runs"))


def _spread(ran: DataFrame) -> DataFrame:
    """Quantiles and histogram of what succeeded.

    Equal durations are counted first, so that what is sorted is the different ones: a kind with
    many attempts is small by then, and what is left may spill.
    """
    values = (
        ran.where((F.col("state") == SUCCEEDED) & F.col("duration_s").isNotNull())
        .groupBy(*KIND, F.col("duration_s").alias("value"))
        .agg(F.count(F.lit(1)).alias("times"))
    )
    ranked = _ranked(values)
    by_bin = ranked.groupBy(*KIND, "low", "high", _bin().alias("bin")).agg(
        F.sum("times").alias("times"),
        *(
            F.min(F.when(F.col("through") > _place(share, side), F.col("value"))).alias(
                f"{name}_{side}"
            )
            for name, share in QUANTILES.items()
            for side in ("floor", "ceil")
        ),
        F.max("total").alias("total"),
    )
    return (
        by_bin.groupBy(*KIND, "low", "high")
        .agg(
            F.map_from_entries(F.collect_list(F.struct("bin", "times"))).alias("times"),
            F.max("total").alias("total"),
            *(
                F.min(f"{name}_{side}").alias(f"{name}_{side}")
                for name in QUANTILES
                for side in ("floor", "ceil")
            ),
        )
        .select(
            *KIND,
            *(_between(name, share).alias(name) for name, share in QUANTILES.items()),
            _histogram().alias("histogram"),
        )
    )


def _ranked(values: DataFrame) -> DataFrame:
    """Each different value with how many there are up to it, and in all."""
    whole = Window.partitionBy(*KIND)
    upward = whole.orderBy("value").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    all_of_it = whole.orderBy("value").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    return values.select(
        "*",
        F.sum("times").over(upward).alias("through"),
        F.sum("times").over(all_of_it).alias("total"),
        F.min("value").over(all_of_it).alias("low"),
        F.max("value").over(all_of_it).alias("high"),
    )


def _place(share: float, side: str) -> Column:
    """The place of a quantile among the sorted, counted from nought."""
    place = (F.col("total") - 1) * F.lit(share)
    return F.floor(place) if side == "floor" else F.ceil(place)


def _between(name: str, share: float) -> Column:
    """Linear between the two neighbours."""
    part = (F.col("total") - 1) * F.lit(share) - _place(share, "floor")
    below, above = F.col(f"{name}_floor"), F.col(f"{name}_ceil")
    return below + (above - below) * part


def _edge(number: Column) -> Column:
    """Where a bin begins; the first and the last edge are the extremes themselves."""
    low, high = F.greatest("low", F.lit(SHORTEST_S)), F.greatest("high", F.lit(SHORTEST_S))
    inner = low * F.pow(high / low, number / F.lit(float(BINS)))
    return F.when(number == 0, F.col("low")).when(number == BINS, F.col("high")).otherwise(inner)


def _bin() -> Column:
    """Which bin the value is in. A value on an edge is in the bin that begins there."""
    low, high = F.greatest("low", F.lit(SHORTEST_S)), F.greatest("high", F.lit(SHORTEST_S))
    value = F.greatest("value", F.lit(SHORTEST_S))
    guess = F.floor(F.try_divide(F.log(value / low), F.log(high / low)) * BINS)
    guess = F.least(F.greatest(guess, F.lit(0)), F.lit(BINS - 1)).cast("int")
    # A logarithm is rounded; the edges that are told are not to be contradicted.
    value = F.col("value")
    placed = (
        F.when((guess > 0) & (value < _edge(guess)), guess - 1)
        .when((guess < BINS - 1) & (value >= _edge(guess + 1)), guess + 1)
        .otherwise(guess)
    )
    return F.when(low < high, placed).otherwise(F.lit(0))


def _histogram() -> Column:
    low, high = F.greatest("low", F.lit(SHORTEST_S)), F.greatest("high", F.lit(SHORTEST_S))
    last = F.when(low < high, F.lit(BINS - 1)).otherwise(F.lit(0))

    def one(number: Column) -> Column:
        return F.struct(
            F.when(number == 0, F.col("low")).otherwise(_edge(number)).alias("low_s"),
            F.when(number == last, F.col("high")).otherwise(_edge(number + 1)).alias("high_s"),
            F.coalesce(F.try_element_at(F.col("times"), number), F.lit(0)).alias("count"),
        )

    return F.transform(F.sequence(F.lit(0), last), one)
