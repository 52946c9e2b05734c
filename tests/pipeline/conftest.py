"""The one Spark session that all tests of the pipeline share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from tocsin.pipeline.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Settings for many small queries; see tocsin.pipeline.session."""
    shared = session("local[2]", purpose="fast")
    yield shared
    shared.stop()
