"""What the doctor says of Spark, of Java and of the tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from java_here import without_java
from tocsin.cli.doctor.pipeline import spark_findings, table_findings
from tocsin.tables.published import CURRENT, MANIFEST, Manifest

NOW = datetime(2026, 11, 17, 4, tzinfo=UTC)


@pytest.mark.java
def test_spark_is_reported_with_the_java_it_would_run_on() -> None:
    (found,) = spark_findings()

    assert (found.level, found.subject) == ("ok", "spark")
    assert "on Java" in found.message
    assert "(by " in found.message, "which Java it is, and how it was found"


def test_java_that_is_not_there_is_reported_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(monkeypatch, tmp_path)

    (found,) = spark_findings()

    assert (found.level, found.subject) == ("warn", "java")
    assert "Install Java 17" in found.remedy


def test_tables_are_reported_with_their_age_and_damage_with_what_to_do(tmp_path: Path) -> None:
    manifest = Manifest(7, NOW - timedelta(hours=3), 12_345)
    (tmp_path / CURRENT).mkdir()
    (tmp_path / CURRENT / MANIFEST).write_bytes(msgspec.json.encode(manifest))

    (found,) = table_findings(tmp_path, NOW)
    windowed = msgspec.structs.replace(manifest, since=NOW - timedelta(days=7))
    (tmp_path / CURRENT / MANIFEST).write_bytes(msgspec.json.encode(windowed))
    (of_a_week,) = table_findings(tmp_path, NOW)
    (tmp_path / CURRENT / MANIFEST).write_bytes(b"{")
    (damaged,) = table_findings(tmp_path, NOW)

    assert found.message == f"version 7 in {tmp_path}, made 3 h ago, through event 12,345"
    assert of_a_week.message.startswith(f"{found.message}, of what was received since ")
    assert damaged.level == "fail"
    assert "--rebuild" in damaged.remedy
    assert table_findings(tmp_path / "none") == []
