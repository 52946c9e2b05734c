"""Attempts: from folded cells to one row an attempt, as `monitor.states` reads a folded row."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tocsin.monitor.rules import ENDING
from tocsin.monitor.states import (
    SAME_MOMENT_S_MAX,
    WORDS_CHARS_MAX,
    ZONE_SLACK_S,
    ZONE_STEP_S,
    ZONE_STEPS,
)
from tocsin.monitor.views import INHERITED
from tocsin.pipeline.fold.rules import cell_is_stamped, unpacked
from tocsin.tables.schemas import USED

US_PER_S: Final = 1_000_000
STANDS: Final = "stands"  # a column: the state of an attempt, in a word
# As in `monitor.faults`, in Java's words: what differs between two occurrences of the same.
_VARIES: Final = r"(?iU)0x[0-9a-f]+|[0-9a-f]{8,}|\d+|/[^\s'\":,]+"
_LINES: Final = r"\r\n|[\n\r\u000B\f\u001C-\u001E\u0085\u2028\u2029]"
_AROUND: Final = r"(?U)^\s+|\s+$"


def seconds_between(first: Column, second: Column) -> Column:
    return (F.unix_micros(second) - F.unix_micros(first)) / F.lit(US_PER_S)


def is_zone_apart(seconds: Column, slack_s: float = ZONE_SLACK_S) -> Column:
    """True if two times differ as if one of them were in another zone; never null."""
    apart = F.abs(seconds)
    steps = F.round(apart / ZONE_STEP_S)
    fits = F.abs(apart - steps * ZONE_STEP_S) <= slack_s
    return F.coalesce(steps.between(ZONE_STEPS.start, ZONE_STEPS.stop - 1) & fits, F.lit(False))


def value(name: str) -> Column:
    """What a cell says, whichever way it merges."""
    return F.col(f"{name}.value") if cell_is_stamped(name) else F.col(name)


def attempt_rows(cells: DataFrame, *beside: Column) -> DataFrame:
    """One row an attempt: its state, times and what it used, but for what its run says of it.

    The cells come grouped by (run, activity), as `fold` leaves them: the windows need no shuffle.
    `beside` are further columns, made of the cells as they are.
    """
    return _timed(_inherited(cells)).select(
        *beside,
        "run",
        F.col("activity").alias("id"),
        "attempt",
        "last",
        F.col(STANDS).alias("state"),
        F.col(_shared("type")).getField("value").alias("type"),
        F.col(_shared("version")).getField("value").alias("version"),
        "queued",
        F.col("began").alias("started"),
        F.col("over_at").alias("ended"),
        "duration_s",
        F.when(
            F.col("began") >= F.col("queued"), seconds_between(F.col("queued"), F.col("began"))
        ).alias("waited_s"),
        *(
            value(name).alias(name)
            for name in ("host", "exit_code", "error", "trace", "command", "log_file", "job")
        ),
        F.col(_shared("container")).getField("value").alias("container"),
        _fault().alias("fault"),
        *(F.col(_shared(name)).alias(name) for name in ("inputs", "outputs", "parents")),
        *(value(name).alias(name) for name in ("input_bytes", "output_bytes")),
        F.col(_shared("external_bytes")).getField("value").alias("external_bytes"),
        "skewed",
        F.col("settled.seq").alias("settled_seq"),
        *(value(name).alias(name) for name in USED),
    )


def _shared(name: str) -> str:
    """The column of what all attempts of an activity have in common."""
    return f"shared_{name}"


def _inherited(cells: DataFrame) -> DataFrame:
    """What is true of every attempt, as the latest of those up to this one has it.

    Both windows go by the same order, so that Spark passes over the rows once.
    """
    in_order = Window.partitionBy("hash", "run", "activity").orderBy("attempt")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    inherited = [name for name in INHERITED if name not in ("type", "open")]
    columns = {_shared(name): F.last(name, ignorenulls=True).over(so_far) for name in inherited}
    columns[_shared("type")] = F.max("type").over(whole)
    columns["last"] = F.lead("attempt").over(in_order).isNull()
    return cells.withColumns(columns)


def _timed(cells: DataFrame) -> DataFrame:
    began = F.coalesce("started", "told_start.value")
    reported_end = F.when(F.col("started").isNull(), F.col("told_end.value"))
    over_at = F.when(F.col("ended").isNotNull(), F.coalesce(reported_end, "ended"))
    skewed = is_zone_apart(seconds_between(F.col("started"), F.col("started_last"))) | (
        is_zone_apart(seconds_between(F.col("ended_first"), F.col("ended")))
    )
    rows = cells.withColumns(
        {
            "settled": unpacked("state"),
            "reported_s": F.when(value("told_duration_s") >= 0, value("told_duration_s")),
            "began": began,
            "over_at": over_at,
            "skewed": skewed,
        }
    )
    pair = _same_clock()
    first_end = F.coalesce("ended_first", "over_at")
    is_again = (first_end < F.col("started_last")) & (F.col("started_last") <= F.col("over_at"))
    both = F.col("began").isNotNull() & F.col("over_at").isNotNull()
    rows = rows.withColumn("pair", F.when(F.col("skewed") & both, pair))
    rows = rows.withColumns(
        {
            "began": F.when(F.col("pair").isNotNull(), F.col("pair.start"))
            .when(~F.col("skewed") & is_again, F.col("started_last"))
            .when(F.col("skewed") & ~both & is_again, F.col("started_last"))
            .otherwise(F.col("began")),
            "over_at": F.coalesce("pair.end", "over_at"),
        }
    )
    own = F.when(
        F.col("over_at") >= F.col("began"), seconds_between(F.col("began"), F.col("over_at"))
    )
    rows = rows.withColumn("own_s", own)
    is_reported = F.col("reported_s").isNotNull() & F.col("over_at").isNotNull()
    early_s = seconds_between(F.col("over_at"), F.col("began"))
    same_moment = F.when((early_s > 0) & (early_s <= SAME_MOMENT_S_MAX), F.lit(0.0))
    is_off = is_reported & is_zone_apart(F.col("own_s") - F.col("reported_s"))
    return rows.withColumns(
        {
            "duration_s": F.when(
                is_off | (is_reported & F.col("own_s").isNull()), F.col("reported_s")
            ).otherwise(F.coalesce("own_s", same_moment)),
            "skewed": F.col("skewed") | is_off,
            STANDS: _state(),
        }
    )


def _same_clock() -> Column:
    """Of the reported starts and ends, the two that are nearest to each other."""
    starts = (F.col("began"), F.coalesce("started_last", "began"))
    ends = (F.coalesce("ended_first", "over_at"), F.col("over_at"))
    pairs = F.array(
        *(
            F.struct(
                (F.unix_micros(end) - F.unix_micros(start)).alias("apart"),
                start.alias("start"),
                end.alias("end"),
            )
            for start in starts
            for end in ends
        )
    )
    return F.array_min(F.filter(pairs, lambda pair: pair.apart >= 0))


def _state() -> Column:
    state = F.col("settled.state")
    let_go = F.col("queued_last") > F.coalesce("held_last", "settled.at")
    only_ended = (F.col("settled.phase") == ENDING) & (value("exit_code") != 0)
    return (
        F.when(state.isNull(), F.lit("planned"))
        .when((state == "held") & let_go, F.lit("queued"))
        .when((state == "succeeded") & only_ended, F.lit("failed"))
        .otherwise(state)
    )


def _fault() -> Column:
    """A number that is the same for failures of the same kind of activity for the same reason."""
    error = F.when(value("error") != "", value("error"))
    words = F.coalesce(error, value("trace"), value("log"), F.lit(""))
    lines = F.filter(F.split(words, _LINES), lambda line: F.regexp_replace(line, _AROUND, "") != "")
    line = F.when(error.isNotNull(), F.try_element_at(lines, F.lit(1))).otherwise(
        F.try_element_at(lines, F.lit(-1))
    )
    short = F.substring(F.coalesce(line, F.lit("")), 1, WORDS_CHARS_MAX)
    plain = F.lower(F.regexp_replace(F.regexp_replace(short, _VARIES, "#"), _AROUND, ""))
    exit_code = F.coalesce(value("exit_code").cast("string"), F.lit("None"))
    kind = F.coalesce(F.col(_shared("type")).getField("value"), F.lit(""))
    text = F.concat_ws("\0", kind, exit_code, plain)
    return F.when(F.col(STANDS).isin("failed", "retrying"), F.crc32(F.encode(text, "utf-8")))
