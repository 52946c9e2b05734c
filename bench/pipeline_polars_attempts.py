"""Attempts and runs by Polars, read off folded cells as `monitor.states` and `showing` do it."""

from __future__ import annotations

from typing import Final
from zlib import crc32

import polars as pl

import pipeline_fold_polars as fold
from tocsin.archive.tables import USE, USED
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.monitor.records import ACTIVITY_STATES, ENDED_RUN
from tocsin.monitor.rules import ENDING, PEAKS, SUMMED
from tocsin.monitor.states import (
    CLOCK_OFF_S_MIN,
    DELAY_S_MAX,
    HEARTBEAT_S_MAX,
    HEARTBEATS_MISSED_MAX,
    WORDS_CHARS_MAX,
    ZONE_SLACK_S,
    ZONE_STEP_S,
    ZONE_STEPS,
)
from tocsin.monitor.views import planned_counts

MOMENT: Final = pl.Datetime("us", "UTC")
UNREADABLE: Final = pl.lit(fold.UNREADABLE_US).cast(MOMENT)
ENDED: Final = sorted(ENDED_RUN)
ATTEMPT: Final = ("run", "id", "attempt")
INHERITED: Final = ("version", "container", "external_bytes", "inputs", "outputs", "parents")
_VARIES: Final = r"(?i)0x[0-9a-f]+|[0-9a-f]{8,}|\d+|/[^\s'\":,]+"
_LINES: Final = "\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"


def seconds_between(first: pl.Expr, second: pl.Expr) -> pl.Expr:
    return (second - first).dt.total_microseconds() / 1e6


def is_clock_off(delay_s: pl.Expr) -> pl.Expr:
    """True if an event was dated by a wrong clock, rather than late."""
    zones = is_zone_apart(delay_s, DELAY_S_MAX) & (delay_s > 0)
    return zones | (delay_s >= CLOCK_OFF_S_MIN)


def is_zone_apart(seconds: pl.Expr, slack_s: float = ZONE_SLACK_S) -> pl.Expr:
    """True if two times differ as if one of them were in another zone; never null."""
    apart = seconds.abs()
    steps = (apart / ZONE_STEP_S).round()
    fits = (apart - steps * ZONE_STEP_S).abs() <= slack_s
    return (steps.is_between(ZONE_STEPS.start, ZONE_STEPS.stop - 1) & fits).fill_null(False)


def whole_attempts(cells: pl.LazyFrame) -> pl.LazyFrame:
    """With what an attempt has from those before it; only those tried again have any."""
    repeated = cells.group_by("run", "id").len().filter(pl.col("len") > 1).drop("len")
    once = cells.join(repeated, on=["run", "id"], how="anti").with_columns(last=pl.lit(True))
    again = cells.join(repeated, on=["run", "id"], how="semi").sort(*ATTEMPT)
    of_activity = ("run", "id")
    again = again.with_columns(
        *(pl.col(name).forward_fill().over(of_activity) for name in INHERITED),
        type=pl.col("type").max_by("type_ord").over(of_activity),
        last=pl.col("attempt") == pl.col("attempt").max().over(of_activity),
    )
    return pl.concat([once, again], how="diagonal")


def timed_attempts(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """Their own states, starts, ends and durations."""
    col, state = pl.col, pl.col("state")
    told_end = pl.when(col("started").is_null()).then(_readable("told_end"))
    rows = attempts.with_columns(
        phase=fold.phase_in(state),
        moment=fold.moment_in(state),
        named=fold.state_in(state, "activity"),
        settled_seq=fold.seq_in(state),
        began=pl.coalesce("started", _readable("told_start")),
        over_at=pl.when(col("ended").is_not_null()).then(pl.coalesce(told_end, "ended")),
        told_s=pl.when(col("told_duration_s") >= 0).then(col("told_duration_s")),
        two_zones=is_zone_apart(seconds_between(col("started"), col("started_last")))
        | is_zone_apart(seconds_between(col("ended_first"), col("ended"))),
    )
    both = col("began").is_not_null() & col("over_at").is_not_null()
    first_end = pl.coalesce("ended_first", "over_at")
    again = (first_end < col("started_last")) & (col("started_last") <= col("over_at"))
    rows = rows.with_columns(
        is_mended=col("two_zones") & both, is_again=again.fill_null(False), pair=_nearest()
    )
    is_paired = col("is_mended") & col("pair").is_not_null()
    rows = rows.with_columns(
        began=pl.when(is_paired)
        .then(col("pair").struct.field("start"))
        .when(~col("is_mended") & col("is_again"))
        .then("started_last")
        .otherwise("began"),
        over_at=pl.when(is_paired).then(col("pair").struct.field("end")).otherwise("over_at"),
    )
    own_s = seconds_between(col("began"), col("over_at"))
    rows = rows.with_columns(own_s=pl.when(col("over_at") >= col("began")).then(own_s))
    has_told = col("told_s").is_not_null() & col("over_at").is_not_null()
    is_off = has_told & is_zone_apart(col("own_s") - col("told_s"))
    return rows.with_columns(
        duration_s=pl.when(is_off | (has_told & col("own_s").is_null()))
        .then("told_s")
        .otherwise("own_s"),
        skewed=col("two_zones") | is_off,
        own_state=_own_state(),
    )


def _readable(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != UNREADABLE).then(pl.col(name))


def _nearest() -> pl.Expr:
    """Of the starts and ends told, the two that are nearest to each other."""
    began, over_at = pl.col("began"), pl.col("over_at")
    starts = (began, pl.coalesce("started_last", "began"))
    ends = (pl.coalesce("ended_first", "over_at"), over_at)
    best = pl.lit(None, pl.Struct({"apart": pl.Int64, "start": MOMENT, "end": MOMENT}))
    for start in starts:
        for end in ends:
            apart = (end - start).dt.total_microseconds()
            pair = pl.struct(apart.alias("apart"), start.alias("start"), end.alias("end"))
            had = best.struct.field("apart")
            closer = (
                had.is_null()
                | (apart < had)
                | ((apart == had) & (start < best.struct.field("start")))
            )
            best = pl.when((apart >= 0) & closer).then(pair).otherwise(best)
    return best


def _own_state() -> pl.Expr:
    named = pl.col("named")
    let_go = pl.col("queued_last") > pl.coalesce("held_last", "moment")
    only_ended = (pl.col("phase") == ENDING) & (pl.col("exit_code") != 0)
    return (
        pl.when(named.is_null())
        .then(pl.lit("planned"))
        .when((named == "held") & let_go)
        .then(pl.lit("queued"))
        .when((named == "succeeded") & only_ended)
        .then(pl.lit("failed"))
        .otherwise(named)
    )


def faults(attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The number of each failure's kind, by attempt."""
    failed = attempts.filter(pl.col("own_state").is_in(["failed", "retrying"]))
    error = pl.when(pl.col("error") != "").then(pl.col("error"))
    words = pl.coalesce(error, "trace", "log", pl.lit(""))
    lines = (
        words.str.replace_all(_LINES, "\n")
        .str.split("\n")
        .list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))
    )
    line = pl.when(error.is_not_null()).then(lines.list.first()).otherwise(lines.list.last())
    plain = line.fill_null("").str.slice(0, WORDS_CHARS_MAX).str.replace_all(_VARIES, "#")
    exit_code = pl.col("exit_code").cast(pl.String).fill_null("None")
    text = pl.concat_str(
        pl.col("type").fill_null(""),
        exit_code,
        plain.str.strip_chars().str.to_lowercase(),
        separator="\0",
    )
    told = failed.select(*ATTEMPT, words=text)
    # Once for each way of failing, and not for each failure.
    numbers = told.select(pl.col("words").unique()).with_columns(
        fault=pl.col("words").map_elements(
            lambda each: crc32(each.encode(errors="replace")), return_dtype=pl.Int64
        )
    )
    return told.join(numbers, on="words").drop("words")


def told_runs(cells: pl.LazyFrame, now: pl.Expr) -> pl.LazyFrame:
    """Runs, but for what their activities add up to."""
    col, state = pl.col, pl.col("state")
    rows = cells.with_columns(
        began=pl.coalesce("started", "active_first"),
        phase=fold.phase_in(state),
        moment=fold.moment_in(state),
        named=fold.state_in(state, "run"),
        settled_seq=fold.seq_in(state),
    )
    restarted = (
        ~is_zone_apart(seconds_between(col("started"), col("started_last")))
        & (col("started") < col("ended"))
        & (col("ended") < col("started_last"))
        & (col("phase") >= ENDING)
    )
    busy = col("active_last") > pl.coalesce("idle_last", "moment")
    rows = rows.with_columns(
        told_state=pl.when(col("named").is_null())
        .then(pl.lit("created"))
        .when(restarted | ((col("named") == "idle") & busy))
        .then(pl.lit("running"))
        .otherwise("named")
    )
    beat_s = col("heartbeat_s")
    beats = (beat_s > 0) & (beat_s <= HEARTBEAT_S_MAX)
    allowed_s = pl.when(beats).then(beat_s * HEARTBEATS_MISSED_MAX)
    allowed_s = allowed_s.otherwise(MonitorOptions().silence_s)
    silent = seconds_between(col("last_received"), now) > allowed_s
    may_be_silent = col("told_state").is_in(ENDED) | (
        (col("told_state") == "suspended") & beat_s.is_null()
    )
    rows = rows.with_columns(
        shown=pl.when(~may_be_silent & silent).then(pl.lit("lost")).otherwise("told_state")
    )
    is_over = col("shown").is_in(ENDED)
    until = (
        pl.when(is_over)
        .then(pl.coalesce("ended", "began"))
        .when(col("shown") == "lost")
        .then(pl.coalesce("last_event", "began"))
        .otherwise(now)
    )
    texts = ("workflow", "version", "engine", "engine_version", "user", "host")
    return rows.select(
        "run",
        *(col(name).fill_null("") for name in texts),
        *("created", "last_event", "parent", "error", "exit_code", "command"),
        *("working_directory", "parameters", "has_plan", "settled_seq"),
        state="shown",
        started="began",
        ended=pl.when(is_over).then("ended"),
        duration_s=pl.when(until >= col("began")).then(seconds_between(col("began"), until)),
        announced=pl.when(col("planned_total") >= 0)
        .then("planned_total")
        .otherwise(col("planned_counts").map_elements(_counted, return_dtype=pl.Int64)),
        told_progress="progress",
        **{f"own_{name}": col(name) for name in USED},
    )


def _counted(text: str) -> int | None:
    """How many activities were announced by type, in all: JSON with names that nobody knows."""
    counts = planned_counts({"planned_counts": [0, 0, text]})
    return sum(counts.values()) if counts else None


def standing(attempts: pl.LazyFrame, runs: pl.LazyFrame) -> pl.LazyFrame:
    """The attempts as their runs let them stand: nothing runs in what has ended."""
    known = runs.select("run", "workflow", run_state="state", run_version="version")
    joined = attempts.join(known, on="run", how="left")
    own, run_state = pl.col("own_state"), pl.col("run_state")
    over = run_state.is_in(ENDED)
    adrift = own.is_in(["running", "held"])
    is_last = pl.col("last")
    state = (
        pl.when(~is_last & own.is_in(["running", "queued", "held"]))
        .then(pl.lit("retrying"))
        .when(~is_last)
        .then(own)
        .when(over & (own == "retrying"))
        .then(pl.lit("failed"))
        .when(over & adrift)
        .then(pl.lit("lost"))
        .when((run_state == "lost") & (adrift | (own == "retrying")))
        .then(pl.lit("lost"))
        .otherwise(own)
    )
    began, queued = pl.col("began"), pl.col("queued")
    return joined.with_columns(
        workflow=pl.col("workflow").fill_null(""),
        activity=pl.coalesce(pl.when(pl.col("type") != "").then(pl.col("type")), "id"),
        version=pl.coalesce(
            pl.when(pl.col("version") != "").then(pl.col("version")), "run_version", pl.lit("")
        ),
        state=state,
        started=began,
        ended="over_at",
        waited_s=pl.when(began >= queued).then(seconds_between(queued, began)),
    )


def with_activities(runs: pl.LazyFrame, attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The runs, with what their activities add up to."""
    col, last, state = pl.col, pl.col("last"), pl.col("state")
    wasted = state.is_in(["failed", "retrying", "cancelled"])
    added = [name for name in USED if name.removeprefix(USE) in SUMMED | PEAKS]
    by_run = attempts.group_by("run").agg(
        known=last.sum().cast(pl.Int64),
        retried=col("id").filter(col("fault").is_not_null() & ~last).n_unique().cast(pl.Int64),
        busy_s=_sum(col("duration_s")),
        wasted_s=_sum(pl.when(wasted).then(col("duration_s"))),
        **{f"n_{each}": (last & (state == each)).sum().cast(pl.Int64) for each in ACTIVITY_STATES},
        **{
            name: _sum(col(name)) if name.removeprefix(USE) in SUMMED else col(name).max()
            for name in added
        },
    )
    counts = ["known", "retried", *(f"n_{each}" for each in ACTIVITY_STATES)]
    joined = runs.join(by_run, on="run", how="left").with_columns(
        *(col(name).fill_null(0) for name in counts),
        *(pl.coalesce(f"own_{name}", name).alias(name) for name in added),
        *(col(f"own_{name}").alias(name) for name in USED if name not in added),
    )
    planned = pl.coalesce("announced", pl.when(col("has_plan")).then(col("known")))
    return joined.with_columns(planned=planned).with_columns(progress=_progress())


def _sum(values: pl.Expr) -> pl.Expr:
    """The sum, or null where there is nothing to add up."""
    return pl.when(values.count() > 0).then(values.sum())


def _progress() -> pl.Expr:
    col, state = pl.col, pl.col("state")
    good = col("n_succeeded") + col("n_cached")
    is_hurt = state.is_in(["failed", "aborted"]) | (col("n_failed") + col("n_cancelled") > 0)
    done = pl.when(is_hurt & (state != "completed")).then(good).otherwise(good + col("n_skipped"))
    whole = pl.max_horizontal(col("planned").fill_null(0), "known")
    told = pl.when(col("told_progress").is_between(0, 1)).then(col("told_progress"))
    return (
        pl.when((state == "completed") & (col("n_lost") == 0))
        .then(1.0)
        .when(col("planned").is_null() & (state != "completed"))
        .then(told)
        .when(whole > 0)
        .then((done / whole).round(4))
    )
