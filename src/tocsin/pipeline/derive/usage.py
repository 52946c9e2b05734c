"""Usage: what hosts and activities took, hour by hour.

What an attempt used is reported when it ends, and counted in that hour. Of hosts that an agent
watches, its samples are the measure of processors and memory; of others, what attempts reported.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.pipeline.spark.schemas import FAILED, RAN, fitted, measured

# What `tocsin agent` publishes, by type; see tocsin.agent.
LOAD: Final = "http://www.gridforum.org/Performance/Events/UptimeCPULoad"
CPU: Final = "urn:tocsin:host:1/CPUUsage"
MEMORY: Final = "urn:tocsin:host:1/MemoryUsage"
DISK: Final = "urn:tocsin:host:1/DiskIO"
WATCHED: Final = (LOAD, CPU, MEMORY, DISK)
HOST: Final = "HostName"

_USED: Final = {
    "cpu_s": "use_CpuSeconds",
    "read_bytes": "use_IoReadBytes",
    "written_bytes": "use_IoWriteBytes",
}


def host_usage(messages: DataFrame, activities: DataFrame) -> DataFrame:
    """One row for each host and hour in which an attempt ended there, or a sample came."""
    attempts = (
        _ended(activities)
        .where(F.col("host") != "")
        .groupBy("host", "hour")
        .agg(
            F.count(F.lit(1)).alias("attempts"),
            F.sum("duration_s").alias("busy_s"),
            *(F.sum(measured(column)).alias(name) for name, column in _USED.items()),
            F.avg(measured("use_CpuPercent")).alias("reported_mean_cpu"),
            F.max(measured("use_CpuPercent")).alias("reported_max_cpu"),
            F.avg(measured("use_MemoryPeak")).alias("reported_mean_memory"),
            F.max(measured("use_MemoryPeak")).alias("reported_max_memory"),
        )
    )
    joined = attempts.join(_watched(messages), on=["host", "hour"], how="full")
    return fitted(
        joined.select(
            "host",
            "hour",
            F.coalesce("samples", F.lit(0)).alias("samples"),
            F.coalesce("attempts", F.lit(0)).alias("attempts"),
            F.coalesce("busy_s", F.lit(0.0)).alias("busy_s"),
            F.coalesce("seen_mean_cpu", "reported_mean_cpu").alias("mean_cpu_percent"),
            F.coalesce("seen_max_cpu", "reported_max_cpu").alias("max_cpu_percent"),
            F.coalesce("seen_mean_memory", "reported_mean_memory").alias("mean_memory_bytes"),
            F.coalesce("seen_max_memory", "reported_max_memory").alias("max_memory_bytes"),
            "cpu_s",
            F.coalesce("seen_read", "read_bytes").alias("read_bytes"),
            F.coalesce("seen_written", "written_bytes").alias("written_bytes"),
            "mean_load",
        ),
        "host_usage",
    )


def activity_usage(activities: DataFrame) -> DataFrame:
    """One row for each activity and hour in which an attempt of it ended."""
    hourly = (
        _ended(activities)
        .groupBy("workflow", "activity", "hour")
        .agg(
            F.count(F.lit(1)).alias("attempts"),
            F.count_if(F.col("state").isin(*FAILED)).alias("failed"),
            F.coalesce(F.sum("duration_s"), F.lit(0.0)).alias("busy_s"),
            *(F.sum(measured(column)).alias(name) for name, column in _USED.items()),
            F.avg(measured("use_MemoryPeak")).alias("mean_memory_bytes"),
            F.max(measured("use_MemoryPeak")).alias("max_memory_bytes"),
        )
    )
    return fitted(hourly, "activity_usage")


def _ended(activities: DataFrame) -> DataFrame:
    ended = F.col("state").isin(*RAN) & F.col("ended").isNotNull()
    return activities.where(ended).withColumn("hour", F.date_trunc("hour", "ended"))


def _watched(messages: DataFrame) -> DataFrame:
    """Agents' reports by host and hour. A disk's rate, times how long it held, is what moved."""
    kind = F.col("type")
    memory = _number("Total") - _number("Available")
    taken = F.coalesce(memory, _number("Used"))
    samples = messages.where(kind.isin(*WATCHED)).select(
        "type", "at", F.try_parse_json("attributes").alias("said")
    )
    read = samples.select(
        _text(HOST).alias("host"),
        F.date_trunc("hour", "at").alias("hour"),
        F.when(kind == LOAD, _number("Load1")).alias("load"),
        F.when(kind == CPU, _number("Usage")).alias("cpu"),
        F.when(kind == MEMORY, taken).alias("memory"),
        F.when(kind == DISK, _number("ReadRate") * _number("Interval")).alias("read"),
        F.when(kind == DISK, _number("WriteRate") * _number("Interval")).alias("written"),
    )
    return (
        read.where(F.col("host") != "")
        .groupBy("host", "hour")
        .agg(
            F.count(F.lit(1)).alias("samples"),
            F.avg("load").alias("mean_load"),
            F.avg("cpu").alias("seen_mean_cpu"),
            F.max("cpu").alias("seen_max_cpu"),
            F.avg("memory").alias("seen_mean_memory"),
            F.max("memory").alias("seen_max_memory"),
            F.sum("read").alias("seen_read"),
            F.sum("written").alias("seen_written"),
        )
    )


def _text(name: str) -> Column:
    return _either(name, "string")


def _number(name: str) -> Column:
    """A value by name; null if it is no finite number."""
    value = _either(name, "double")
    return F.when(F.abs(value) < F.lit(float("inf")), value)


def _either(name: str, kind: str) -> Column:
    """A value comes as an object with its unit, or plain."""
    said = F.col("said")
    return F.coalesce(
        F.try_variant_get(said, f"$.{name}.value", kind), F.try_variant_get(said, f"$.{name}", kind)
    )
