"""Cost models: what an activity takes, as a straight line over the bytes of its input.

How well a line predicts is measured by leaving out each value in turn: its prediction from all
others follows from its residual and its leverage, so no second line has to be fitted.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.pipeline.derive.kinds import NO, in_order, numbered, of_kind, quantile
from tocsin.pipeline.spark.schemas import KIND, SUCCEEDED, fitted, measured

TARGETS: Final = {
    "duration_s": "duration_s",
    "cpu_s": "use_CpuSeconds",
    "memory_bytes": "use_MemoryPeak",
    "read_bytes": "use_IoReadBytes",
    "written_bytes": "use_IoWriteBytes",
}
PAIRS_MIN: Final = 3  # through two points there is always a line, and it says nothing
# A value that alone decides where the line goes cannot be predicted from the others.
FREE_MIN: Final = 1e-9
_LINE: Final = ("count", "intercept", "slope", "r2", "input_min", "input_max", "mean")
_ERRORS: Final = ("rmse", "median_error")
_FOR_ERRORS: Final = ("count", "intercept", "slope", "center", "spread")


def cost_models(activities: DataFrame) -> DataFrame:
    """One row for each activity, version and target that an attempt which succeeded reported."""
    values = activities.where(F.col("state") == SUCCEEDED).select(
        *KIND,
        F.col("input_bytes").cast("double").alias("x"),
        *(measured(column).alias(target) for target, column in TARGETS.items()),
    )
    lines = numbered(_lines(values))
    needed = (f"{target}_{name}" for target in TARGETS for name in _FOR_ERRORS)
    with_errors = lines.join(_errors(of_kind(values, lines, *needed)), on=NO, how="left")
    models = with_errors.select(*KIND, F.inline(_per_target())).where(F.col("count") > 0)
    return fitted(models, "cost_models")


def _lines(values: DataFrame) -> DataFrame:
    """One row for each kind, with the line of every target."""
    return (
        values.groupBy(*KIND)
        .agg(*(moment for target in TARGETS for moment in _moments(target)))
        .select(*KIND, *(part for target in TARGETS for part in _line(target)))
    )


def _moments(target: str) -> list[Column]:
    y, x = F.col(target), F.col("x")
    of_pairs = F.when(y.isNotNull(), x)
    return [
        each.alias(f"{target}_{name}")
        for name, each in {
            "n": F.count(y),
            "mean": F.avg(y),
            "pairs": F.regr_count(y, x),
            "center": F.regr_avgx(y, x),
            "height": F.regr_avgy(y, x),
            "sxx": F.regr_sxx(y, x),
            "sxy": F.regr_sxy(y, x),
            "syy": F.regr_syy(y, x),
            "input_min": F.min(of_pairs),
            "input_max": F.max(of_pairs),
        }.items()
    ]


def _line(target: str) -> list[Column]:
    def of(name: str) -> Column:
        return F.col(f"{target}_{name}")

    is_line = (of("pairs") >= PAIRS_MIN) & (of("input_min") < of("input_max")) & (of("sxx") > 0)
    slope = F.try_divide(of("sxy"), of("sxx"))
    squared = of("sxy") * F.try_divide(slope, of("syy"))
    parts = {
        "count": F.when(is_line, of("pairs")).otherwise(of("n")),
        "intercept": F.when(is_line, of("height") - slope * of("center")).otherwise(of("mean")),
        "slope": F.when(is_line, slope),
        "r2": F.when(is_line & (of("syy") > 0), F.least(squared, F.lit(1.0))),
        "input_min": of("input_min"),
        "input_max": of("input_max"),
        "mean": of("mean"),
        "center": F.when(is_line, of("center")),
        "spread": F.when(is_line, of("sxx")),
    }
    return [part.alias(f"{target}_{name}") for name, part in parts.items()]


def _per_target() -> Column:
    return F.array(
        *(
            F.struct(
                F.lit(target).alias("target"),
                *(F.col(f"{target}_{name}").alias(name) for name in (*_LINE, *_ERRORS)),
            )
            for target in TARGETS
        )
    )


def _errors(values: DataFrame) -> DataFrame:
    """By how much the line through all others misses each value: its square, and its share."""
    missed = values.select(
        NO, *TARGETS, *(_miss(target).alias(f"{target}_miss") for target in TARGETS)
    )
    sums = [each for target in TARGETS for each in _missed(target)]
    medians = (
        quantile(f"{target}_shares", 0.5).alias(f"{target}_median_error") for target in TARGETS
    )
    rmses = (f"{target}_rmse" for target in TARGETS)
    return missed.groupBy(NO).agg(*sums).select(NO, *rmses, *medians)


def _missed(target: str) -> list[Column]:
    y, miss = F.col(target), F.col(f"{target}_miss")
    share = F.when(y > 0, F.try_divide(F.abs(miss), y))
    return [
        F.sqrt(F.avg(miss * miss)).alias(f"{target}_rmse"),
        in_order(share).alias(f"{target}_shares"),
    ]


def _miss(target: str) -> Column:
    def of(name: str) -> Column:
        return F.col(f"{target}_{name}")

    y, off = F.col(target), F.col("x") - of("center")
    residual = y - of("intercept") - F.coalesce(of("slope") * F.col("x"), F.lit(0.0))
    leverage = F.try_divide(F.lit(1.0), of("count")) + F.coalesce(
        off * F.try_divide(off, of("spread")), F.lit(0.0)
    )
    in_line = of("slope").isNull() | F.col("x").isNotNull()
    return F.when(in_line & (1 - leverage > FREE_MIN), F.try_divide(residual, 1 - leverage))
