"""Discoveries: what was looked for, how much was found, and how long it took."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tocsin.pipeline.spark.schemas import fitted

# Questions are asked by people and programs, not by attempts: the values of one question fit in
# memory by far, and `percentile` keeps each different one once.


def discoveries(samples: DataFrame) -> DataFrame:
    """One row for each way of finding and each question."""
    asked = samples.groupBy("model", "request").agg(
        F.count(F.lit(1)).alias("count"),
        F.count_if(F.col("found") == 0).alias("empty"),
        F.avg("found").alias("mean_found"),
        F.avg("seconds").alias("mean_s"),
        F.percentile("seconds", F.lit(0.5)).alias("p50_s"),
        F.percentile("seconds", F.lit(0.9)).alias("p90_s"),
        F.max("seconds").alias("max_s"),
        F.avg("brokers").alias("mean_brokers"),
        F.avg("messages").alias("mean_messages"),
        F.coalesce(F.sum("shared"), F.lit(0)).alias("shared"),
        F.min("at").alias("first_seen"),
        F.max("at").alias("last_seen"),
    )
    return fitted(asked, "discoveries")
