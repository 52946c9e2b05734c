"""The one Spark session that all tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tocsin.pipeline import build
from tocsin.pipeline.build import TableBuilder
from tocsin.pipeline.job import SETTINGS
from tocsin.pipeline.partials import partial
from tocsin.pipeline.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Settings for many small queries; see tocsin.pipeline.session."""
    shared = session("local[2]", purpose="fast")
    yield shared
    shared.stop()


@pytest.fixture(scope="module")
def ready(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the settings of the job."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        if value is not None:
            spark.conf.set(name, value)


@pytest.fixture
def only_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editions have the tables `activities`, `runs`, `events` and `quarantine`, and all others,
    which are made of these, are empty."""

    def make_quarantine(builder: TableBuilder, *_rest: object) -> None:
        builder._write("quarantine", builder._quarantine())

    monkeypatch.setattr(TableBuilder, "_make_summaries", make_quarantine)
    monkeypatch.setattr(build, "findings", lambda tables: [])


@pytest.fixture
def only_event_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Editions have the tables `events` and `quarantine`, and all others are empty."""

    def make_events(builder: TableBuilder, *_rest: object) -> None:
        files = [file for each in builder._parts for file in each.files("events")]
        builder._edition.link("events", files)
        builder._write("quarantine", builder._quarantine())

    monkeypatch.setattr(TableBuilder, "_make_all", make_events)
    monkeypatch.setattr(build, "findings", lambda tables: [])


@pytest.fixture
def only_events(only_event_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, and nothing is folded: such parts cannot be compacted. For tests of what is taken
    in and when an edition is published: most of the time goes into all the rest."""
    monkeypatch.setattr(partial, "cells_of", lambda *_given: None)
    monkeypatch.setattr(partial, "folded", lambda *_given: None)
    monkeypatch.setattr(partial, "write_cells", lambda *_given: None)
