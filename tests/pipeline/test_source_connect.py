"""The source over Spark Connect, where its packages are installed (`pip install grpcio-status`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.archives import add_sealed

pytest.importorskip("grpc_status")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

QUERY = """
import sys
from pyspark.sql import SparkSession
from tocsin.pipeline import source
spark = SparkSession.builder.remote("local[2]").getOrCreate()
events = spark.read.format("tocsin").load(sys.argv[1])
types = events.select("type").distinct().count()
after = source.register(spark).read.format("tocsin").option("after", 50).load(sys.argv[1])
print(type(spark).__module__, events.count(), after.count(), types)
spark.stop()
"""


def test_a_session_over_connect_reads_an_archive(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 200)

    done = subprocess.run(
        [sys.executable, "-c", QUERY, str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.split()[-4:] == ["pyspark.sql.connect.session", "200", "150", "1"]
