"""Quality: what must hold of the tables before anybody sees them.

A check is a sentence and a query for the rows that break it. Each is one pass over few columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tocsin.errors.pipeline import QualityFailed
from tocsin.pipeline.fold.row_numbers import crowds
from tocsin.pipeline.locations import on_this_disk
from tocsin.pipeline.spark.parallel import run_parallel
from tocsin.pipeline.spark.schemas import RAN
from tocsin.pipeline.spark.spark_errors import readable_errors
from tocsin.tables.published import Published
from tocsin.tables.published import require as require_published
from tocsin.wire.api.run_views import ACTIVITY_STATES, RUN_STATES

SHOWN_MAX: Final = 5  # rows that a failed check names
VALUE_CHARS_MAX: Final = 60

Tables = Callable[[str], DataFrame]


@dataclass(frozen=True, slots=True)
class Check:
    """A sentence about one table, and when a row breaks it; what names such a row."""

    table: str
    sentence: str
    broken: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """These columns name one row of the table."""

    table: str
    columns: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return f"{', '.join(self.columns)} name one row"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: how many rows break it, and the first of them in words."""

    table: str
    sentence: str
    count: int
    rows: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.count


def _where(table: str, sentence: str, broken: str, *columns: str) -> Check:
    return Check(table, sentence, broken, columns)


def _one_of(states: tuple[str, ...]) -> str:
    return ", ".join(f"'{state}'" for state in states)


CHECKS: Final = (
    _where(
        "events",
        "every event has an id, a source and a type",
        "id IS NULL OR source IS NULL OR type IS NULL OR seq IS NULL",
        "seq",
        "id",
    ),
    _where(
        "events",
        "no event has a negative delay",
        "late_s < 0 OR isnan(late_s)",
        "seq",
        "late_s",
    ),
    _where(
        "activities",
        "every attempt has a run, a name and a known state",
        "run IS NULL OR activity IS NULL OR state IS NULL OR "
        f"state NOT IN ({_one_of(ACTIVITY_STATES)})",
        "run",
        "id",
        "attempt",
        "state",
    ),
    _where(
        "activities",
        "no duration is negative or no number",
        "duration_s < 0 OR isnan(duration_s)",
        "run",
        "id",
        "attempt",
        "duration_s",
    ),
    _where(
        "runs",
        "every run has a known state",
        f"state IS NULL OR state NOT IN ({_one_of(RUN_STATES)})",
        "run",
        "state",
    ),
    _where(
        "runs", "progress is between 0 and 1", "progress < 0 OR progress > 1", "run", "progress"
    ),
    _where(
        "activity_stats",
        "quantiles are in order, and no more failed than ended",
        "p50_s > p90_s OR p90_s > p99_s OR min_s > p50_s OR p99_s > max_s OR failed > count",
        "workflow",
        "activity",
        "version",
        "count",
        "failed",
        "p50_s",
        "p90_s",
        "p99_s",
    ),
    _where(
        "cost_models",
        "every model has a finite intercept",
        "intercept IS NULL OR isnan(intercept) OR isnan(slope) OR rmse < 0",
        "workflow",
        "activity",
        "version",
        "target",
        "intercept",
        "slope",
    ),
    _where(
        "estimates",
        "the bounds of the time left are in order",
        "remaining_low_s > remaining_s OR remaining_s > remaining_high_s OR remaining_s < 0",
        "run",
        "remaining_low_s",
        "remaining_s",
        "remaining_high_s",
    ),
)


KEYS: Final = (
    Key("events", ("seq",)),
    Key("activities", ("run", "id", "attempt")),
    Key("runs", ("run",)),
    Key("activity_stats", ("workflow", "activity", "version")),
    Key("cost_models", ("workflow", "activity", "version", "target")),
    Key("failures", ("run", "id", "attempt")),
)
ADDS_UP: Final = "its counts add up to the attempts that ended"


def findings(tables: Tables) -> list[Finding]:
    """What every check found."""
    tested = dict.fromkeys(check.table for check in CHECKS)
    work: list[Callable[[], list[Finding]]] = [
        *(partial(_rows_hold, tables, table) for table in tested),
        *(partial(_names_one, tables, key) for key in KEYS),
        lambda: [_adds_up(tables)],
    ]
    return [each for some in run_parallel(work) for each in some]


def current_findings(spark: SparkSession, directory: Path) -> list[Finding]:
    """What every check finds in the version that stands; if newer ones were made meanwhile and its
    files are gone, in the one that stands then."""

    def checked(found: Published) -> list[Finding]:
        return findings(lambda name: spark.read.parquet(on_this_disk(found.directory / name)))

    with readable_errors():
        found = require_published(directory)
        try:
            return checked(found)
        except PySparkException:
            current = require_published(directory)
            if current.version == found.version:
                raise
        return checked(current)


def _rows_hold(tables: Tables, table: str) -> list[Finding]:
    """All checks of one table's rows, in one pass."""
    checks = [check for check in CHECKS if check.table == table]
    counts = tables(table).agg(*(F.count_if(F.expr(each.broken)) for each in checks)).first()
    assert counts is not None
    found: list[Finding] = []
    for check, count in zip(checks, counts, strict=True):
        broken = tables(table).where(check.broken).select(*check.columns)
        found.append(Finding(table, check.sentence, count, _first(broken) if count else ()))
    return found


def _names_one(tables: Tables, key: Key) -> list[Finding]:
    """Which are the same is asked only if any may be."""
    rows = tables(key.table)
    suspects = crowds(rows) if key.columns == ("seq",) else _alike(rows, key)
    if suspects.isEmpty():
        return [Finding(key.table, key.sentence, 0)]
    times = F.count("*").alias("times")
    twice = rows.groupBy(*key.columns).agg(times).where("times > 1")
    found = _first(twice)
    return [Finding(key.table, key.sentence, twice.count() if found else 0, found)]


def _alike(rows: DataFrame, key: Key) -> DataFrame:
    """Hashes that several rows have: if their hashes differ, the keys do."""
    hashes = rows.select(F.xxhash64(*key.columns).alias("hash"))
    return hashes.groupBy("hash").count().where("count > 1")


def _adds_up(tables: Tables) -> Finding:
    """The statistics count each attempt that ended, once."""
    attempts = tables("activities").where(F.col("state").isin(*RAN)).count()
    counted = tables("activity_stats").agg(F.coalesce(F.sum("count"), F.lit(0))).first()
    assert counted is not None
    off = abs(attempts - counted[0])
    words = (f"{attempts:,} attempts ended, and {counted[0]:,} are counted",) if off else ()
    return Finding("activity_stats", ADDS_UP, off, words)


def _first(rows: DataFrame) -> tuple[str, ...]:
    return tuple(_described(each.asDict()) for each in rows.limit(SHOWN_MAX).collect())


def _described(row: dict[str, object]) -> str:
    return ", ".join(f"{name}={str(value)[:VALUE_CHARS_MAX]!r}" for name, value in row.items())


def require(found: list[Finding]) -> None:
    """Raises QualityFailed if a check failed: it names the table, the check and the first rows."""
    failed = [each for each in found if not each.holds]
    if not failed:
        return
    first = failed[0]
    others = "; ".join(f"{each.table}: {each.sentence}" for each in failed[1:])
    more = f" (also failed: {others})" if others else ""
    raise QualityFailed(
        f"table {first.table}: check failed: {first.sentence}: {first.count:,} rows, "
        f"as {'; '.join(first.rows)}{more}",
        remedy="Nothing was published: the tables are as they were. Look for these rows in the "
        "archive; if they are right, the check is not: please report it.",
    )
