"""Use over time, deliveries and discoveries, by Polars."""

from __future__ import annotations

from typing import Final

import polars as pl

from pipeline_polars_derive import FAILED, RAN, count_of, measured, total

LOAD: Final = "http://www.gridforum.org/Performance/Events/UptimeCPULoad"
CPU: Final = "urn:tocsin:host:1/CPUUsage"
MEMORY: Final = "urn:tocsin:host:1/MemoryUsage"
DISK: Final = "urn:tocsin:host:1/DiskIO"
COUNTERS: Final = ("delivered", "failed_attempts", "dead", "dropped")
BEHIND_MIN: Final = 100
US_PER_HOUR: Final = 3.6e9


def host_usage(attempts: pl.LazyFrame, events: pl.LazyFrame) -> pl.LazyFrame:
    """By host and hour: what attempts that ended told, and what agents saw."""
    ran = attempts.filter(
        pl.col("state").is_in(RAN), pl.col("ended").is_not_null(), pl.col("host").is_not_null()
    )
    told = ran.group_by("host", pl.col("ended").dt.truncate("1h").alias("hour")).agg(
        attempts=pl.len().cast(pl.Int64),
        busy_s=pl.col("duration_s").sum(),
        cpu_s=total(measured("use_CpuSeconds")),
        read_bytes=total(measured("use_IoReadBytes")),
        written_bytes=total(measured("use_IoWriteBytes")),
        told_mean_cpu=measured("use_CpuPercent").mean(),
        told_max_cpu=measured("use_CpuPercent").max(),
        told_mean_memory=measured("use_MemoryPeak").mean(),
        told_max_memory=measured("use_MemoryPeak").max(),
    )
    joined = told.join(_watched(events), on=["host", "hour"], how="full", coalesce=True)
    return joined.with_columns(
        *(pl.col(name).fill_null(0) for name in ("samples", "attempts", "busy_s")),
        mean_cpu_percent=pl.coalesce("mean_cpu", "told_mean_cpu"),
        max_cpu_percent=pl.coalesce("max_cpu", "told_max_cpu"),
        mean_memory_bytes=pl.coalesce("mean_memory", "told_mean_memory"),
        max_memory_bytes=pl.coalesce("max_memory", "told_max_memory"),
        read_bytes=pl.coalesce("read", "read_bytes"),
        written_bytes=pl.coalesce("written", "written_bytes"),
    )


def _watched(events: pl.LazyFrame) -> pl.LazyFrame:
    kind = pl.col("type")
    used = pl.coalesce(_number("Total") - _number("Available"), _number("Used"))
    samples = events.filter(kind.is_in([LOAD, CPU, MEMORY, DISK])).select(
        host=_text("HostName"),
        hour=pl.col("at").dt.truncate("1h"),
        load=pl.when(kind == LOAD).then(_number("Load1")),
        cpu=pl.when(kind == CPU).then(_number("Usage")),
        memory=pl.when(kind == MEMORY).then(used),
        read=pl.when(kind == DISK).then(_number("ReadRate") * _number("Interval")),
        written=pl.when(kind == DISK).then(_number("WriteRate") * _number("Interval")),
    )
    return (
        samples.filter(pl.col("host").is_not_null())
        .group_by("host", "hour")
        .agg(
            samples=pl.len().cast(pl.Int64),
            mean_load=pl.col("load").mean(),
            mean_cpu=pl.col("cpu").mean(),
            max_cpu=pl.col("cpu").max(),
            mean_memory=pl.col("memory").mean(),
            max_memory=pl.col("memory").max(),
            read=total(pl.col("read")),
            written=total(pl.col("written")),
        )
    )


def _text(name: str) -> pl.Expr:
    """An attribute comes plain, or as an object with its unit."""
    attributes = pl.col("attributes")
    return pl.coalesce(
        attributes.str.json_path_match(f"$.{name}.value"),
        attributes.str.json_path_match(f"$.{name}"),
    )


def _number(name: str) -> pl.Expr:
    return _text(name).cast(pl.Float64, strict=False)


def activity_usage(attempts: pl.LazyFrame) -> pl.LazyFrame:
    ran = attempts.filter(pl.col("state").is_in(RAN), pl.col("ended").is_not_null())
    hour = pl.col("ended").dt.truncate("1h").alias("hour")
    return ran.group_by("workflow", "activity", hour).agg(
        attempts=pl.len().cast(pl.Int64),
        failed=count_of(pl.col("state").is_in(FAILED)),
        busy_s=pl.col("duration_s").sum(),
        cpu_s=total(measured("use_CpuSeconds")),
        mean_memory_bytes=measured("use_MemoryPeak").mean(),
        max_memory_bytes=measured("use_MemoryPeak").max(),
        read_bytes=total(measured("use_IoReadBytes")),
        written_bytes=total(measured("use_IoWriteBytes")),
    )


def deliveries(samples: pl.LazyFrame, letters: pl.LazyFrame) -> pl.LazyFrame:
    """How each subscription is served; counters begin at nought again when a broker does."""
    col = pl.col
    at_us = col("at").to_physical()
    grown = samples.sort("subscription", "at").with_columns(
        *(_growth(name).alias(f"more_{name}") for name in COUNTERS),
        is_first=pl.int_range(pl.len()).over("subscription") == 0,
        is_later=at_us > (at_us.min().over("subscription") + at_us.max().over("subscription")) / 2,
    )
    behind = col("behind")
    last = {name: col(name).last() for name in ("sink", "protocol", "state", "sink_state")}
    counted = grown.group_by("subscription", maintain_order=True).agg(
        first_seen=col("at").min(),
        last_seen=col("at").max(),
        samples=pl.len().cast(pl.Int64),
        **{name: col(f"more_{name}").sum() for name in COUNTERS},
        grown_delivered=pl.when(~col("is_first")).then(col("more_delivered")).sum(),
        **last,
        behind=behind.last(),
        max_behind=behind.max(),
        mean_behind=behind.mean(),
        later_behind=pl.when(col("is_later")).then(behind).mean(),
        earlier_behind=pl.when(~col("is_later")).then(behind).mean(),
        last_error=col("last_error").last(ignore_nulls=True),
    )
    joined = counted.join(_given_up(letters), on="subscription", how="full", coalesce=True)
    hours = (col("last_seen") - col("first_seen")).dt.total_microseconds() / US_PER_HOUR
    tries = col("delivered") + col("failed_attempts")
    falls_back = col("earlier_behind").is_null() | (col("later_behind") >= col("earlier_behind"))
    return joined.with_columns(
        per_hour=pl.when(hours > 0).then(col("grown_delivered") / hours),
        failing_share=pl.when(tries > 0).then(col("failed_attempts") / tries),
        slow=((behind >= BEHIND_MIN) & falls_back).fill_null(False),
    ).with_columns(
        *(pl.coalesce(name, f"letter_{name}").alias(name) for name in _KNOWN_OF_LETTERS),
        *(col(name).fill_null(0) for name in ("samples", *COUNTERS)),
        col("reasons").fill_null(pl.lit([], pl.List(_REASON))),
    )


_KNOWN_OF_LETTERS: Final = ("sink", "first_seen", "last_seen")
_REASON: Final = pl.Struct({"reason": pl.String, "count": pl.Int64})


def _growth(name: str) -> pl.Expr:
    before = pl.col(name).shift(1).over("subscription")
    now = pl.col(name)
    return pl.when(now >= before).then(now - before).otherwise(now)


def _given_up(letters: pl.LazyFrame) -> pl.LazyFrame:
    by_reason = letters.group_by("subscription", "reason").agg(
        count=pl.col("id").n_unique().cast(pl.Int64),
        first=pl.col("at").min(),
        last=pl.col("at").max(),
        sink=pl.col("sink").max_by("at"),
    )
    ordered = by_reason.sort(["count", "reason"], descending=[True, False])
    return ordered.group_by("subscription", maintain_order=True).agg(
        reasons=pl.struct("reason", "count"),
        letter_sink=pl.col("sink").max_by("last"),
        letter_first_seen=pl.col("first").min(),
        letter_last_seen=pl.col("last").max(),
    )


def discoveries(samples: pl.LazyFrame) -> pl.LazyFrame:
    col = pl.col
    return samples.group_by("model", "request").agg(
        count=pl.len().cast(pl.Int64),
        empty=count_of(col("found") == 0),
        mean_found=col("found").mean(),
        mean_s=col("seconds").mean(),
        p50_s=col("seconds").quantile(0.5, "linear"),
        p90_s=col("seconds").quantile(0.9, "linear"),
        max_s=col("seconds").max(),
        mean_brokers=col("brokers").mean(),
        mean_messages=col("messages").mean(),
        shared=col("shared").sum(),
        first_seen=col("at").min(),
        last_seen=col("at").max(),
    )
