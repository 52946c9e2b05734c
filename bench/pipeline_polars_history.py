"""Estimates and evolution, by Polars: what past runs say of those under way, and of versions."""

from __future__ import annotations

from typing import Final

import polars as pl

from pipeline_polars_derive import count_of

UNDER_WAY: Final = ["running", "idle", "suspended"]
ENDED: Final = ["succeeded", "failed", "cancelled", "skipped", "cached"]
PAST_MAX: Final = 200
ENOUGH: Final = 5
QUANTILES: Final = {"remaining_low_s": 0.1, "remaining_s": 0.5, "remaining_high_s": 0.9}
US_PER_S: Final = 1e6
NAMES_MAX: Final = 100
CHANGE_CHARS_MAX: Final = 300
GREW: Final = 1.1
SHRANK: Final = 0.9
CLASSES: Final = ("slower", "faster", "added", "removed")


# Estimates


def estimates(runs: pl.LazyFrame, attempts: pl.LazyFrame, now: pl.Expr) -> pl.LazyFrame:
    under_way = runs.filter(pl.col("state").is_in(UNDER_WAY))
    ends = attempts.filter(pl.col("last"), pl.col("state").is_in(ENDED)).select("run", "ended")
    past = _past(runs, under_way)
    live = _live(under_way, ends, past, now)
    told = live.join(_weighed(_points(live, past, _stages(past, ends))), on="run", how="left")
    return _shown(told, now)


def _past(runs: pl.LazyFrame, under_way: pl.LazyFrame) -> pl.LazyFrame:
    """The latest completed runs of each workflow that is under way, and of each version."""
    return (
        runs.filter(
            pl.col("state") == "completed",
            pl.col("started").is_not_null(),
            pl.col("ended").is_not_null(),
        )
        .join(under_way.select("workflow").unique(), on="workflow", how="semi")
        .sort(["ended", "run"], descending=[True, False])
        .select(
            *("workflow", "version", pl.col("run").alias("past")),
            began=pl.col("started").to_physical(),
            finished=pl.col("ended").to_physical(),
            of_version=pl.int_range(pl.len()).over("workflow", "version"),
            of_any=pl.int_range(pl.len()).over("workflow"),
        )
        .filter((pl.col("of_version") < PAST_MAX) | (pl.col("of_any") < PAST_MAX))
    )


def _live(
    under_way: pl.LazyFrame, ends: pl.LazyFrame, past: pl.LazyFrame, now: pl.Expr
) -> pl.LazyFrame:
    last_ends = ends.group_by("run").agg(last_end=pl.col("ended").max())
    known = past.group_by("workflow", "version").agg(is_same=pl.len() >= ENOUGH)
    begun = pl.coalesce("started", "created")
    done = pl.sum_horizontal(f"n_{state}" for state in ENDED)
    joined = (
        under_way.join(last_ends, on="run", how="left")
        .join(known, on=["workflow", "version"], how="left")
        .with_columns(begun=begun, done=done)
    )
    since = pl.max_horizontal("last_end", "begun")
    waited = (now - since).dt.total_microseconds().fill_null(0)
    elapsed = (now - pl.col("begun")).dt.total_microseconds().fill_null(0)
    return joined.select(
        *("run", "workflow", "version", "begun", "done"),
        total=pl.max_horizontal("planned", "known", "done"),
        elapsed_s=pl.max_horizontal(elapsed, 0) / US_PER_S,
        waited=pl.max_horizontal(waited, 0),
        is_same=pl.col("is_same").fill_null(False),
    )


def _stages(past: pl.LazyFrame, ends: pl.LazyFrame) -> pl.LazyFrame:
    """For each past run, when so many of its activities had ended, and when the next one did."""
    ended = ends.join(past, left_on="run", right_on="past").select(
        past="run",
        end=pl.coalesce(pl.col("ended").to_physical(), "began"),
        one=pl.lit(1, pl.Int64),
    )
    begun = past.select("past", end="began", one=pl.lit(0, pl.Int64))
    return (
        pl.concat([begun, ended])
        .sort("past", "one", "end")
        .with_columns(
            stage=pl.int_range(pl.len()).over("past"),
            next_end=pl.col("end").shift(-1).over("past"),
            size=pl.col("one").sum().over("past"),
        )
    )


def _points(live: pl.LazyFrame, past: pl.LazyFrame, stages: pl.LazyFrame) -> pl.LazyFrame:
    """For each run, what was left in each past run when that was as far."""
    sizes = stages.filter(pl.col("stage") == 0).select("past", "size")
    of_past = past.join(sizes, on="past")
    same = live.filter("is_same").join(
        of_past.filter(pl.col("of_version") < PAST_MAX), on=["workflow", "version"]
    )
    others = live.filter(~pl.col("is_same")).join(
        of_past.filter(pl.col("of_any") < PAST_MAX).drop("version"), on="workflow"
    )
    pairs = pl.concat([same, others], how="diagonal")
    is_as_large = pl.col("total") == pl.col("size")
    share = (pl.col("done") * pl.col("size") / pl.col("total")).floor()
    share = pl.when(pl.col("total") > 0).then(share).otherwise(0).cast(pl.Int64)
    stage = pl.when(is_as_large).then(pl.col("done")).otherwise(share)
    at_stage = pairs.with_columns(stage=pl.min_horizontal(stage, "size")).join(
        stages.select("past", "stage", "end", "next_end"), on=["past", "stage"]
    )
    left = pl.col("finished") - pl.col("end") - pl.col("waited")
    lasted = pl.coalesce("next_end", "finished") - pl.col("end")
    return at_stage.select(
        "run",
        left=pl.max_horizontal(left, 0) / US_PER_S,
        is_alike=lasted >= pl.col("waited"),
        is_as_large=is_as_large,
    )


def _weighed(points: pl.LazyFrame) -> pl.LazyFrame:
    alike = pl.when("is_alike").then(pl.col("left"))
    counted = points.group_by("run").agg(
        n=pl.len().cast(pl.Int64),
        alike=count_of(pl.col("is_alike")),
        as_large=count_of(pl.col("is_as_large")),
        **{f"all_{name}": pl.col("left").quantile(q, "linear") for name, q in QUANTILES.items()},
        **{f"alike_{name}": alike.quantile(q, "linear") for name, q in QUANTILES.items()},
    )
    is_enough = pl.col("alike") >= ENOUGH
    chosen = {
        name: pl.when(is_enough).then(f"alike_{name}").otherwise(f"all_{name}")
        for name in QUANTILES
    }
    is_known = chosen["remaining_high_s"] > 0
    return counted.select(
        "run",
        is_enough=is_enough,
        runs=pl.when(is_enough).then("alike").otherwise("n"),
        is_as_large=pl.col("as_large") * 2 >= pl.col("n"),
        **{name: pl.when(is_known).then(value) for name, value in chosen.items()},
    )


def _shown(told: pl.LazyFrame, now: pl.Expr) -> pl.LazyFrame:
    whose = pl.when("is_same").then(pl.lit("of this version")).otherwise(pl.lit("of any version"))
    when = (
        pl.when("is_as_large")
        .then(pl.lit("as many activities"))
        .otherwise(pl.lit("the same share of activities"))
    )
    waited = pl.when("is_enough").then(pl.lit(" and the next took as long")).otherwise(pl.lit(""))
    over = (
        pl.when(pl.col("remaining_s").is_null())
        .then(pl.lit("; nearly all were over by now"))
        .otherwise(pl.lit(""))
    )
    words = pl.format(
        "completed runs {}: {}, when {} had ended{}{}", whose, pl.col("runs"), when, waited, over
    )
    after = pl.duration(microseconds=(pl.col("remaining_s") * US_PER_S).round().cast(pl.Int64))
    return told.with_columns(
        started="begun",
        as_of=now,
        ends=now + after,
        basis=pl.when(pl.col("runs") > 0)
        .then(words)
        .otherwise(pl.lit("no run of this workflow has completed")),
        runs=pl.col("runs").fill_null(0),
    )


# Evolution


def evolution(runs: pl.LazyFrame, stats: pl.LazyFrame, told: pl.LazyFrame) -> pl.LazyFrame:
    """`told` are the messages about versions, each once."""
    versions = _linked(_versions(runs, told))
    before = versions.select("workflow", previous="version", p50_before="p50_s")
    key = ["workflow", "version"]
    joined = (
        versions.join(before, on=["workflow", "previous"], how="left")
        .join(_changes(told), on=key, how="left", nulls_equal=True)
        .join(_compared(versions, stats), on=key, how="left", nulls_equal=True)
    )
    none = pl.lit([], pl.List(pl.String))
    return joined.with_columns(
        *(pl.col(name).fill_null(none) for name in ("changes", *CLASSES)),
        ratio=pl.when(pl.col("p50_before") > 0).then(pl.col("p50_s") / pl.col("p50_before")),
    )


def _versions(runs: pl.LazyFrame, told: pl.LazyFrame) -> pl.LazyFrame:
    done = pl.when(pl.col("state") == "completed").then(pl.col("duration_s"))
    of_runs = runs.select(
        *("workflow", "version", "state"),
        begin=pl.coalesce("started", "created", "last_event"),
        end=pl.coalesce("last_event", "ended", "started"),
        lasted=done,
    )
    is_saved = pl.col("concept").is_in(["VersionSaved", "VersionForked"])
    of_messages = told.select(
        *("workflow", "version"),
        begin="at",
        end="at",
        saved_seq=pl.when(is_saved).then(pl.col("seq")),
        recorded="previous",
    )
    state, lasted = pl.col("state"), pl.col("lasted")
    both = pl.concat([of_runs, of_messages], how="diagonal")
    return both.group_by("workflow", "version").agg(
        first_seen=pl.col("begin").min(),
        last_seen=pl.col("end").max(),
        runs=state.count().cast(pl.Int64),
        completed=count_of(state == "completed"),
        failed=count_of(state == "failed"),
        mean_s=lasted.mean(),
        p50_s=lasted.quantile(0.5, "linear"),
        p90_s=lasted.quantile(0.9, "linear"),
        saved_seq=pl.col("saved_seq").max(),
        recorded=pl.col("recorded").max_by("saved_seq"),
    )


def _linked(versions: pl.LazyFrame) -> pl.LazyFrame:
    """Each with the one before: as it was recorded, or else the one that was seen before it."""
    recorded = pl.col("recorded")
    is_another = (recorded != pl.col("version")) & (recorded != "")
    return versions.sort("workflow", "first_seen", "version").with_columns(
        previous=pl.when(pl.col("saved_seq").is_null())
        .then(pl.col("version").shift(1).over("workflow").replace("", None))
        .when(is_another)
        .then(recorded)
    )


def _changes(told: pl.LazyFrame) -> pl.LazyFrame:
    detail = pl.col("detail")
    what, was, now = (detail.str.json_path_match(f"$.{name}") for name in ("what", "was", "is"))
    moved = pl.when(was.is_not_null() | now.is_not_null()).then(
        pl.concat_str(was.fill_null("nothing"), pl.lit(" -> "), now.fill_null("nothing"))
    )
    said = pl.concat_str(what, moved, separator=", ", ignore_nulls=True)
    said = pl.when(said != "").then(said)
    subject = pl.concat_str("concept", "activity", separator=" ", ignore_nulls=True)
    words = pl.concat_str(subject, pl.coalesce(said, detail), separator=": ", ignore_nulls=True)
    return (
        told.filter(pl.col("concept") != "VersionSaved")
        .sort("seq")
        .group_by("workflow", "version", maintain_order=True)
        .agg(changes=words.str.slice(0, CHANGE_CHARS_MAX).head(NAMES_MAX))
    )


def _compared(versions: pl.LazyFrame, stats: pl.LazyFrame) -> pl.LazyFrame:
    """The activities that a version has otherwise than the one before; where both ran."""
    key = ["workflow", "version"]
    ran = stats.select(key).unique()
    both = (
        versions.filter(pl.col("previous").is_not_null())
        .select(*key, "previous")
        .join(ran, on=key, how="semi")
        .join(ran, left_on=["workflow", "previous"], right_on=key, how="semi")
    )
    medians = stats.select(*key, "activity", "p50_s")
    has = both.join(medians, on=key).select(*key, "activity", now="p50_s", is_now=pl.lit(True))
    had = both.join(medians, left_on=["workflow", "previous"], right_on=key).select(
        *key, "activity", then="p50_s", was_then=pl.lit(True)
    )
    ratio = pl.when(pl.col("then") > 0).then(pl.col("now") / pl.col("then"))
    name = (
        pl.when(pl.col("was_then").is_null())
        .then(pl.lit("added"))
        .when(pl.col("is_now").is_null())
        .then(pl.lit("removed"))
        .when(pl.col("ratio") >= GREW)
        .then(pl.lit("slower"))
        .when(pl.col("ratio") <= SHRANK)
        .then(pl.lit("faster"))
    )
    rank = pl.when(pl.col("ratio") >= 1).then(-pl.col("ratio"))
    classed = (
        has.join(had, on=[*key, "activity"], how="full", coalesce=True)
        .with_columns(ratio=ratio)
        .with_columns(name=name, rank=rank.otherwise(pl.col("ratio").fill_null(0.0)))
        .sort("rank", "activity")
    )
    lists = {
        each: pl.col("activity").filter(pl.col("name") == each).head(NAMES_MAX) for each in CLASSES
    }
    return classed.group_by(key, maintain_order=True).agg(**lists)
