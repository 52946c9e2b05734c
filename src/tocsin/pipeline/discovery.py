"""The records of an evaluation of discovery in Spark: one row a setting, as in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

NS_PER_MS = 1_000_000


def summarised(records: DataFrame, by: Sequence[str], summed: Sequence[str]) -> DataFrame:
    """Counts, mean times and sums of the records of each setting."""
    return records.groupBy(*by).agg(
        F.count(F.lit(1)).alias("requests"),
        F.count("last_result_ns").alias("valid"),
        F.sum(F.col("shared").cast("long")).alias("shared"),
        F.avg(_ms("finished_ns")).alias("completed_ms"),
        F.avg(_ms("last_result_ns")).alias("last_result_ms"),
        *(F.sum(name).alias(name) for name in summed),
    )


def _ms(until: str) -> Column:
    return (F.col(until) - F.col("issued_ns")) / F.lit(NS_PER_MS)
