"""Runs: from folded cells to one row a run, as `monitor.states` and `monitor.showing` read one."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.monitor.end_states import ENDED_RUN
from tocsin.monitor.rules import ENDING, PEAKS, SUMMED
from tocsin.monitor.states import HEARTBEAT_S_MAX, HEARTBEATS_MISSED_MAX
from tocsin.pipeline.fold.attempts import is_zone_apart, seconds_between, value
from tocsin.pipeline.fold.rules import unpacked
from tocsin.tables.schemas import RUNS, USE, USED
from tocsin.wire.api.run_views import ACTIVITY_STATES

PLANNED_MAX: Final = 1_000_000_000
PROGRESS_DIGITS: Final = 4
_TEXTS: Final = (
    *("workflow", "version", "engine", "engine_version", "user", "host", "parent", "error"),
    *("exit_code", "command", "working_directory", "parameters"),
)


def run_rows(cells: DataFrame, now: datetime, silence_s: float) -> DataFrame:
    """One row a run, but for what its activities add up to: see `with_activities`."""
    rows = cells.withColumn("state", unpacked("state"))
    rows = rows.withColumns({"reported_state": _reported_state(), "began": _began()})
    rows = rows.withColumn("shown", _shown_state(F.lit(now), silence_s))
    over = F.col("shown").isin(*sorted(ENDED_RUN))
    until = (
        F.when(over, F.coalesce("ended", "began"))
        .when(F.col("shown") == "lost", F.coalesce("last_event", "began"))
        .otherwise(F.lit(now))
    )
    return rows.select(
        "run",
        *(value(name).alias(name) for name in _TEXTS),
        F.col("shown").alias("state"),
        "created",
        F.col("began").alias("started"),
        F.when(over, F.col("ended")).alias("ended"),
        F.when(until >= F.col("began"), seconds_between(F.col("began"), until)).alias("duration_s"),
        "last_event",
        _planned_total().alias("announced"),
        F.col("plan").isNotNull().alias("has_plan"),
        value("progress").alias("reported_progress"),
        F.col("state.seq").alias("settled_seq"),
        *(value(name).alias(f"own_{name}") for name in USED),
    )


def _began() -> Column:
    return F.coalesce("started", "active_first")


def _reported_state() -> Column:
    """The state that the messages report, whatever the time is."""
    zones = is_zone_apart(seconds_between(F.col("started"), F.col("started_last")))
    restarted = (
        ~zones
        & (F.col("started") < F.col("ended"))
        & (F.col("ended") < F.col("started_last"))
        & (F.col("state.phase") >= ENDING)
    )
    busy = F.col("active_last") > F.coalesce("idle_last", "state.at")
    return (
        F.when(F.col("state").isNull(), F.lit("created"))
        .when(restarted, F.lit("running"))
        .when((F.col("state.state") == "idle") & busy, F.lit("running"))
        .otherwise(F.col("state.state"))
    )


def _shown_state(now: Column, silence_s: float) -> Column:
    """The state at this time: lost if no message came for too long."""
    beat_s = value("heartbeat_s")
    beats = (beat_s > 0) & (beat_s <= HEARTBEAT_S_MAX)
    allowed_s = F.when(beats, beat_s * HEARTBEATS_MISSED_MAX).otherwise(F.lit(float(silence_s)))
    silent_s = seconds_between(F.col("last_received"), now)
    state = F.col("reported_state")
    may_be_silent = state.isin(*sorted(ENDED_RUN)) | (
        (state == "suspended") & F.col("heartbeat_s").isNull()
    )
    return F.when(~may_be_silent & (silent_s > allowed_s), F.lit("lost")).otherwise(state)


def _planned_total() -> Column:
    counts = F.from_json(value("planned_counts"), "map<string,bigint>")
    fit = F.filter(F.map_values(counts), lambda each: each.between(0, PLANNED_MAX))
    by_type = F.aggregate(fit, F.lit(0).cast("long"), lambda total, each: total + each)
    total = value("planned_total")
    return F.when(total >= 0, total).otherwise(F.when(F.size(fit) > 0, by_type))


def with_runs(attempts: DataFrame, runs: DataFrame) -> DataFrame:
    """The attempts as their runs let them stand: nothing runs in what has ended."""
    known = runs.select(
        "run",
        F.col("state").alias("run_state"),
        F.coalesce("workflow", F.lit("")).alias("workflow"),
        F.col("version").alias("run_version"),
    )
    joined = attempts.join(known, "run", "left")
    state, run_state = F.col("state"), F.col("run_state")
    over = run_state.isin(*sorted(ENDED_RUN))
    adrift = state.isin("running", "held")
    stands = (
        F.when(~F.col("last") & state.isin("running", "queued", "held"), F.lit("retrying"))
        .when(~F.col("last"), state)
        .when(over & (state == "retrying"), F.lit("failed"))
        .when(over & adrift, F.lit("lost"))
        .when((run_state == "lost") & (adrift | (state == "retrying")), F.lit("lost"))
        .otherwise(state)
    )
    version = F.when(F.col("version") != "", F.col("version"))
    return joined.withColumns(
        {
            "state": stands,
            "activity": F.coalesce(F.when(F.col("type") != "", F.col("type")), F.col("id")),
            "version": F.coalesce(version, "run_version", F.lit("")),
        }
    )


def with_activities(runs: DataFrame, activities: DataFrame) -> DataFrame:
    """The runs, with what their activities add up to."""
    failed = F.col("state").isin("failed", "retrying", "cancelled")
    sums = [
        F.count_if(F.col("last") & (F.col("state") == state)).alias(f"n_{state}")
        for state in ACTIVITY_STATES
    ]
    used = [
        (F.sum if name.removeprefix(USE) in SUMMED else F.max)(name).alias(name)
        for name in USED
        if name.removeprefix(USE) in SUMMED | PEAKS
    ]
    by_run = activities.groupBy("run").agg(
        F.count_if("last").alias("known"),
        *sums,
        F.sum("duration_s").alias("busy_s"),
        F.sum(F.when(failed, F.col("duration_s"))).alias("wasted_s"),
        *used,
    )
    # Counted apart, where they are few: a distinct count among others would carry all of those.
    tried_again = activities.where(F.col("fault").isNotNull() & ~F.col("last"))
    retried = tried_again.groupBy("run").agg(F.countDistinct("id").alias("retried"))
    joined = (
        runs.join(by_run, "run", "left")
        .join(retried, "run", "left")
        .na.fill(0, ["known", "retried", *(f"n_{state}" for state in ACTIVITY_STATES)])
    )
    total = F.coalesce("announced", F.when(F.col("has_plan"), F.col("known")))
    joined = joined.withColumn("planned", total).withColumn("progress", _progress())
    summed = {name for name in USED if name.removeprefix(USE) in SUMMED | PEAKS}
    columns = {
        name: F.coalesce(f"own_{name}", name) if name in summed else F.col(f"own_{name}")
        for name in USED
    }
    filled = ("workflow", "version", "engine", "engine_version", "user", "host")
    texts = {name: F.coalesce(name, F.lit("")) for name in filled}
    return joined.withColumns(columns | texts).select(*RUNS.names)


def _progress() -> Column:
    """As `monitor.showing` has it: what failed is not done, and what was not announced no share."""
    state = F.col("state")
    good = F.col("n_succeeded") + F.col("n_cached")
    is_hurt = state.isin("failed", "aborted") | (F.col("n_failed") + F.col("n_cancelled") > 0)
    done = F.when(is_hurt & (state != "completed"), good).otherwise(good + F.col("n_skipped"))
    whole = F.greatest(F.coalesce("planned", F.lit(0)), "known")
    reported = F.when(F.col("reported_progress").between(0, 1), F.col("reported_progress"))
    return (
        F.when((state == "completed") & (F.col("n_lost") == 0), F.lit(1.0))
        .when(F.col("planned").isNull() & (state != "completed"), reported)
        .when(whole > 0, F.bround(done / whole, PROGRESS_DIGITS))
    )
