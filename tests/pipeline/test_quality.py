"""Each check of the tables finds the row that breaks it, and none in rows that are sound."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tocsin.errors.pipeline import PipelineFailed
from tocsin.pipeline import quality
from tocsin.pipeline.quality import CHECKS, KEYS, Key, _adds_up, _names_one, _rows_hold
from tocsin.tables.published import Manifest, Published
from tocsin.tables.schemas import TABLES

SOUND: dict[str, dict[str, Any]] = {
    "events": {"seq": 1, "id": "a", "source": "/s", "type": "t", "late_s": 0.0},
    "activities": {
        "run": "r",
        "id": "a",
        "attempt": 1,
        "activity": "align",
        "state": "succeeded",
        "duration_s": 1.0,
    },
    "runs": {"run": "r", "state": "running", "progress": 0.5},
    "activity_stats": {
        "workflow": "w",
        "activity": "align",
        "version": "1",
        "count": 2,
        "failed": 1,
        "min_s": 1.0,
        "p50_s": 2.0,
        "p90_s": 3.0,
        "p99_s": 4.0,
        "max_s": 5.0,
    },
    "cost_models": {
        "workflow": "w",
        "activity": "align",
        "version": "1",
        "target": "duration_s",
        "intercept": 1.0,
        "slope": 2.0,
        "rmse": 0.1,
    },
    "estimates": {
        "run": "r",
        "remaining_low_s": 1.0,
        "remaining_s": 2.0,
        "remaining_high_s": 3.0,
    },
    "failures": {"run": "r", "id": "a", "attempt": 1},
}
BREAKS: list[tuple[str, str, dict[str, Any]]] = [
    ("events", "an id, a source and a type", {"id": None}),
    ("events", "an id, a source and a type", {"type": None}),
    ("events", "negative delay", {"late_s": -1.0}),
    ("events", "negative delay", {"late_s": nan}),
    ("activities", "a known state", {"state": "dancing"}),
    ("activities", "a known state", {"run": None}),
    ("activities", "negative or no number", {"duration_s": -0.5}),
    ("activities", "negative or no number", {"duration_s": nan}),
    ("runs", "a known state", {"state": None}),
    ("runs", "progress is between 0 and 1", {"progress": 1.01}),
    ("activity_stats", "quantiles are in order", {"p50_s": 3.5}),
    ("activity_stats", "quantiles are in order", {"max_s": 3.5}),
    ("activity_stats", "quantiles are in order", {"failed": 3}),
    ("cost_models", "finite intercept", {"intercept": None}),
    ("cost_models", "finite intercept", {"slope": nan}),
    ("cost_models", "finite intercept", {"rmse": -1.0}),
    ("estimates", "the bounds of the time left are in order", {"remaining_s": 4.0}),
    (
        "estimates",
        "the bounds of the time left are in order",
        {"remaining_low_s": -2.0, "remaining_s": -1.0},
    ),
]


def _frame(spark: SparkSession, table: str, *changes: dict[str, Any]) -> DataFrame:
    """Sound rows, each with its changes."""
    schema = pa.schema([each.with_nullable(True) for each in TABLES[table]])
    rows = [{**SOUND[table], **each} for each in changes]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


@pytest.mark.parametrize(("table", "words", "change"), BREAKS)
def test_a_row_that_breaks_a_check_is_counted_and_named(
    spark: SparkSession, table: str, words: str, change: dict[str, Any]
) -> None:
    rows = _frame(spark, table, {}, change)

    found = [each for each in _rows_hold(lambda name: rows, table) if not each.holds]

    assert [(each.count, words in each.sentence) for each in found] == [(1, True)]
    assert len(found[0].rows) == 1


def test_every_check_is_broken_by_one_of_these() -> None:
    for check in CHECKS:
        assert any(check.table == table and words in check.sentence for table, words, _ in BREAKS)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.table)
def test_two_rows_of_one_name_are_found(spark: SparkSession, key: Key) -> None:
    other: dict[str, Any] = {key.columns[-1]: 7 if key.columns[-1] in ("seq", "attempt") else "b"}

    (once,) = _names_one(lambda name: _frame(spark, name, {}, other), key)
    (twice,) = _names_one(lambda name: _frame(spark, name, {}, other, {}), key)

    assert once.holds
    assert (twice.count, "times='2'" in twice.rows[0]) == (1, True)


def test_statistics_that_do_not_count_every_attempt_are_found(spark: SparkSession) -> None:
    tables = {
        "activities": _frame(spark, "activities", {}, {"id": "b"}, {"id": "c", "state": "running"}),
        "activity_stats": _frame(spark, "activity_stats", {"count": 2}),
    }
    assert _adds_up(tables.__getitem__).holds

    tables["activity_stats"] = _frame(spark, "activity_stats", {"count": 3})
    found = _adds_up(tables.__getitem__)

    assert (found.count, found.rows) == (1, ("2 attempts ended, and 3 are counted",))


@pytest.mark.parametrize(("then", "is_reported"), [(2, False), (1, True)])
def test_checks_begin_again_only_if_another_version_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, then: int, is_reported: bool
) -> None:
    versions = iter((1, then))
    checked: list[Path] = []

    def newer_edition(directory: Path) -> Published:
        version = next(versions)
        made = datetime(2026, 11, 17, tzinfo=UTC)
        return Published(directory / str(version), Manifest(version, made, 0))

    def gone_first(tables: Callable[[str], object]) -> list[quality.Finding]:
        checked.append(tmp_path)
        if len(checked) == 1:
            raise PySparkException("File does not exist")
        return []

    monkeypatch.setattr(quality, "require_published", newer_edition)
    monkeypatch.setattr(quality, "findings", gone_first)
    no_spark = cast(SparkSession, None)

    if is_reported:
        with pytest.raises(PipelineFailed, match="does not exist"):
            quality.current_findings(no_spark, tmp_path)
    else:
        assert quality.current_findings(no_spark, tmp_path) == []
    assert len(checked) == (1 if is_reported else 2)
