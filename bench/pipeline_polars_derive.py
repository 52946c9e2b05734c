"""What follows from attempts and events, by Polars: statistics, models of cost, failures."""

from __future__ import annotations

from typing import Final

import polars as pl

KIND: Final = ("workflow", "activity", "version")
RAN: Final = ["succeeded", "failed", "retrying", "cancelled"]
FAILED: Final = ["failed", "retrying"]
QUANTILES: Final = {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99}
BINS: Final = 20
SHORTEST_S: Final = 1e-6
BEFORE_MAX: Final = 10
MEASURE_MAX: Final = 1e100
PAIRS_MIN: Final = 3
FREE_MIN: Final = 1e-9
TARGETS: Final = {
    "duration_s": "duration_s",
    "cpu_s": "use_CpuSeconds",
    "memory_bytes": "use_MemoryPeak",
    "read_bytes": "use_IoReadBytes",
    "written_bytes": "use_IoWriteBytes",
}


def measured(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64)
    return pl.when(value.abs() <= MEASURE_MAX).then(value)


def count_of(condition: pl.Expr) -> pl.Expr:
    return condition.sum().cast(pl.Int64)


def total(values: pl.Expr) -> pl.Expr:
    """The sum, or null where there is nothing to add up."""
    return pl.when(values.count() > 0).then(values.sum())


# Statistics


def activity_stats(attempts: pl.LazyFrame) -> pl.LazyFrame:
    col, state = pl.col, pl.col("state")
    good = pl.when(state == "succeeded").then(col("duration_s"))
    ran = attempts.filter(state.is_in(RAN)).with_columns(good_s=good)
    good = col("good_s")
    counted = ran.group_by(KIND).agg(
        runs=col("run").n_unique().cast(pl.Int64),
        count=pl.len().cast(pl.Int64),
        failed=count_of(state.is_in(FAILED)),
        cancelled=count_of(state == "cancelled"),
        mean_s=good.mean(),
        stddev_s=good.std(),
        min_s=good.min(),
        max_s=good.max(),
        **{name: good.quantile(share, "linear") for name, share in QUANTILES.items()},
        busy_s=total(col("duration_s")),
        wasted_s=pl.when(state != "succeeded").then(col("duration_s")).sum(),
        mean_waited_s=col("waited_s").mean(),
        mean_cpu_s=measured("use_CpuSeconds").mean(),
        mean_memory_bytes=measured("use_MemoryPeak").mean(),
        max_memory_bytes=measured("use_MemoryPeak").max(),
        mean_read_bytes=measured("use_IoReadBytes").mean(),
        mean_written_bytes=measured("use_IoWriteBytes").mean(),
        mean_input_bytes=col("input_bytes").mean(),
        first_ended=col("ended").min(),
        last_ended=col("ended").max(),
    )
    return counted.join(_histograms(ran, counted), on=KIND, how="left")


def _edge(number: pl.Expr) -> pl.Expr:
    low = pl.max_horizontal("min_s", pl.lit(SHORTEST_S))
    high = pl.max_horizontal("max_s", pl.lit(SHORTEST_S))
    inner = low * (high / low) ** (number / BINS)
    return pl.when(number == 0).then("min_s").when(number == BINS).then("max_s").otherwise(inner)


def _histograms(ran: pl.LazyFrame, counted: pl.LazyFrame) -> pl.LazyFrame:
    low = pl.max_horizontal("min_s", pl.lit(SHORTEST_S))
    high = pl.max_horizontal("max_s", pl.lit(SHORTEST_S))
    value = pl.max_horizontal("good_s", pl.lit(SHORTEST_S))
    extremes = counted.select(*KIND, "min_s", "max_s").filter(pl.col("min_s").is_not_null())
    guess = ((value / low).log() / (high / low).log() * BINS).floor().clip(0, BINS - 1)
    placed = ran.select(*KIND, "good_s").drop_nulls("good_s").join(extremes, on=KIND)
    placed = placed.with_columns(near=pl.when(low < high).then(guess).otherwise(0).cast(pl.Int32))
    near, good = pl.col("near"), pl.col("good_s")
    placed = placed.with_columns(
        bin=pl.when(low >= high)
        .then(0)
        .when((near > 0) & (good < _edge(near)))
        .then(near - 1)
        .when((near < BINS - 1) & (good >= _edge(near + 1)))
        .then(near + 1)
        .otherwise(near)
    )
    times = placed.group_by(*KIND, "bin").agg(count=pl.len().cast(pl.Int64))
    last = pl.when(low < high).then(BINS - 1).otherwise(0)
    number = pl.col("bin")
    bins = (
        extremes.with_columns(bin=pl.int_ranges(0, last + 1, dtype=pl.Int32))
        .explode("bin")
        .join(times, on=[*KIND, "bin"], how="left")
        .with_columns(
            low_s=_edge(number),
            high_s=pl.when(number == last).then("max_s").otherwise(_edge(number + 1)),
            count=pl.col("count").fill_null(0),
        )
    )
    return (
        bins.sort(*KIND, "bin")
        .group_by(KIND, maintain_order=True)
        .agg(histogram=pl.struct("low_s", "high_s", "count"))
    )


# Models of cost


def cost_models(attempts: pl.LazyFrame) -> pl.LazyFrame:
    good = attempts.filter(pl.col("state") == "succeeded").select(
        *KIND,
        x=pl.col("input_bytes").cast(pl.Float64),
        **{target: measured(column) for target, column in TARGETS.items()},
    )
    return pl.concat([_cost_model(good, target) for target in TARGETS])


def _cost_model(good: pl.LazyFrame, target: str) -> pl.LazyFrame:
    values = good.select(*KIND, "x", y=target).filter(pl.col("y").is_not_null())
    col = pl.col
    pair = col("x").is_not_null()
    of_pairs = values.group_by(KIND).agg(
        n=pl.len().cast(pl.Int64),
        mean=col("y").mean(),
        pairs=count_of(pair),
        center=col("x").mean(),
        height=pl.when(pair).then(col("y")).mean(),
        input_min=col("x").min(),
        input_max=col("x").max(),
    )
    # In two passes: differences from the means, and not of sums of squares.
    off_x, off_y = col("x") - col("center"), col("y") - col("height")
    spread = (
        values.filter(pair)
        .join(of_pairs, on=KIND)
        .group_by(KIND)
        .agg(
            sxx=(off_x * off_x).sum(),
            sxy=(off_x * off_y).sum(),
            syy=(off_y * off_y).sum(),
        )
    )
    is_line = (col("pairs") >= PAIRS_MIN) & (col("input_min") < col("input_max"))
    lines = of_pairs.join(spread, on=KIND, how="left").with_columns(
        is_line=(is_line & (col("sxx") > 0)).fill_null(False)
    )
    is_line, slope = col("is_line"), col("sxy") / col("sxx")
    squared = pl.min_horizontal(col("sxy") * (slope / col("syy")), pl.lit(1.0))
    lines = lines.with_columns(
        count=pl.when(is_line).then("pairs").otherwise("n"),
        slope=pl.when(is_line).then(slope),
        intercept=pl.when(is_line).then(col("height") - slope * col("center")).otherwise("mean"),
        r2=pl.when(is_line & (col("syy") > 0)).then(squared),
    )
    found = lines.join(_errors(values, lines), on=KIND, how="left")
    return found.select(
        *KIND,
        pl.lit(target).alias("target"),
        *("count", "intercept", "slope", "r2", "rmse", "median_error"),
        *("input_min", "input_max", "mean"),
    )


def _errors(values: pl.LazyFrame, lines: pl.LazyFrame) -> pl.LazyFrame:
    """By how much the line through all others misses each value."""
    col, off = pl.col, pl.col("x") - pl.col("center")
    leverage = 1 / col("count") + pl.when("is_line").then(off * (off / col("sxx"))).otherwise(0.0)
    residual = col("y") - col("intercept") - (col("slope") * col("x")).fill_null(0.0)
    missed = (
        values.join(lines, on=KIND)
        .filter(~col("is_line") | col("x").is_not_null())
        .with_columns(free=1 - leverage, residual=residual)
        .filter(col("free") > FREE_MIN)
        .select(*KIND, "y", miss=col("residual") / col("free"))
    )
    share = pl.when(col("y") > 0).then(col("miss").abs() / col("y"))
    return missed.group_by(KIND).agg(
        rmse=(col("miss") * col("miss")).mean().sqrt(), median_error=share.median()
    )


# Failures


def failures(attempts: pl.LazyFrame, events: pl.LazyFrame) -> pl.LazyFrame:
    """Each failure, with the last events of its run before it."""
    is_told = pl.col("fault").is_not_null()
    failed = (
        attempts.filter(pl.col("state").is_in(FAILED))
        .with_columns(seq="settled_seq")
        .sort("seq", "run", "id", "attempt")
        .with_columns(
            seen=pl.when(is_told).then(pl.len().over("fault")).otherwise(1).cast(pl.Int64),
            seen_before=pl.when(is_told).then(pl.int_range(pl.len()).over("fault")).otherwise(0),
            first_seen=pl.when(is_told)
            .then(pl.col("ended").min().over("fault"))
            .otherwise(pl.col("ended")),
        )
    )
    runs = failed.select("run").unique()
    numbered = (
        events.select("run", "seq", "at", "type", "activity")
        .join(runs, on="run", how="semi")
        .sort("run", "seq")
        .with_columns(number=pl.int_range(pl.len()).over("run"))
    )
    key = ("run", "id", "attempt")
    places = (
        failed.select(*key, "seq")
        .sort("seq")
        .join_asof(
            numbered.select("run", "seq", "number").sort("seq"),
            on="seq",
            by="run",
            strategy="backward",
            allow_exact_matches=False,
            check_sortedness=False,  # it cannot be checked by group
        )
        .filter(pl.col("number").is_not_null())
    )
    first = pl.max_horizontal(pl.col("number") - (BEFORE_MAX - 1), 0)
    context = (
        places.select(*key, number=pl.int_ranges(first, pl.col("number") + 1))
        .explode("number")
        .join(numbered, on=["run", "number"])
        .sort("seq")
        .group_by(key, maintain_order=True)
        .agg(before=pl.struct("seq", "at", "type", "activity"))
    )
    empty = pl.lit([], pl.List(_EVENT))
    joined = failed.join(context, on=key, how="left")
    return joined.with_columns(before=pl.col("before").fill_null(empty))


_EVENT: Final = pl.Struct(
    {
        "seq": pl.Int64,
        "at": pl.Datetime("us", "UTC"),
        "type": pl.String,
        "activity": pl.String,
    }
)
