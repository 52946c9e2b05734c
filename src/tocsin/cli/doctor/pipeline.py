"""Checks of the pipeline: Spark, Java, and the age of the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tocsin.cli.doctor.broker import Finding
from tocsin.cli.format import ago, window_text
from tocsin.errors import TocsinError


def spark_findings() -> list[Finding]:
    """Whether `tocsin pipeline` could run here. Nothing else needs Spark, or Java."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        message = "not installed; only `tocsin pipeline` needs it: pip install 'tocsin[spark]'"
        return [Finding("ok", "spark", message)]
    from tocsin.pipeline.spark.java import find_java

    try:
        java = find_java()
    except TocsinError as error:
        return [Finding("warn", "java", error.problem, error.remedy)]
    message = f"{spark}, on Java {java.version} in {java.home} (by {java.origin})"
    return [Finding("ok", "spark", message)]


def tables_of(data: Path | None) -> Path | None:
    """Where the tables of a data directory are, or those of the settings."""
    from tocsin.cli.pipeline.actions import tables_directory

    if data is not None:
        return data / "tables"
    try:
        return tables_directory(None)
    except TocsinError:  # settings_findings reports it
        return None


def table_findings(directory: Path | None, now: datetime | None = None) -> list[Finding]:
    """Which version of the tables stands in a directory, and how old it is."""
    if directory is None:
        return []
    from tocsin.tables.published import published

    try:
        found = published(directory)
    except TocsinError as error:
        return [Finding("fail", "tables", error.problem, error.remedy)]
    if found is None:
        return []
    age_s = ((now or datetime.now(UTC)) - found.made).total_seconds()
    message = [
        f"version {found.version} in {directory}, made {ago(max(age_s, 0.0))}",
        f"through event {found.through:,}",
        *window_text(found.manifest.since, found.manifest.until),
    ]
    return [Finding("ok", "tables", ", ".join(message))]
