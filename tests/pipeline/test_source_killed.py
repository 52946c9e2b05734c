"""A stream over an archive that is killed again and again while files come and are merged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.archives import add_fresh, merge

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FOLLOW = """
import sys
from tocsin.pipeline import source
archive, scratch, once = sys.argv[1:]
stream = source.session("local[2]").readStream.format("tocsin").option("rows_per_trigger", 50)
writer = stream.load(archive).select("seq").writeStream.option("path", scratch + "/out")
writer = writer.option("checkpointLocation", scratch + "/checkpoint")
writer = writer.trigger(availableNow=True) if once == "once" else writer
query = writer.start()
print("started", flush=True)
query.awaitTermination()
"""
KILLS = 5


def follow(archive: Path, scratch: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FOLLOW, str(archive), str(scratch), how]
    # A session of its own: with Python, Java is killed as well.
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_each_event_comes_once(spark: SparkSession, tmp_path: Path) -> None:
    archive, chance, last = tmp_path / "archive", random.Random(7), 0

    def grow() -> None:
        nonlocal last
        more = chance.randint(1, 120)
        add_fresh(archive, last + 1, last + more)
        last += more
        if chance.random() < 0.2:
            merge(archive, keep_fresh=True)  # as a broker does, for a quarter of an hour

    grow()
    for _ in range(KILLS):
        process = follow(archive, tmp_path, "for good")
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        until = time.monotonic() + chance.uniform(1.0, 5.0)
        while time.monotonic() < until:
            grow()
            time.sleep(0.05)
        assert process.poll() is None, "it was at work"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert follow(archive, tmp_path, "once").wait(120) == 0

    found = spark.read.parquet(str(tmp_path / "out")).orderBy("seq").toArrow()
    assert found.column("seq").to_pylist() == list(range(1, last + 1))
