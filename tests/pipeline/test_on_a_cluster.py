"""The same code on a real standalone cluster makes the same tables."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pipeline.cluster import cluster, packed, python_without_the_package
from pipeline.sameness import assert_same, rows
from tocsin.archive.catalog import Catalog
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.schemas import TABLES


def pipeline(*arguments: str, path: str | None = None) -> None:
    """Run the command as a person would, with packages from that path if one is named."""
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = path
    command = [sys.executable, "-m", "tocsin", "pipeline", *arguments]
    ran = subprocess.run(command, env=environment, timeout=280, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Reconfiguration failed" not in ran.stderr  # Java reads what the package has for it


def can_import(python: Path, path: str) -> bool:
    environment = {**os.environ, "PYTHONPATH": path}
    command = [str(python), "-c", "import pyarrow, tocsin.archive.record"]
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_of_two_workers_makes_the_tables_that_one_machine_makes(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    synthesize(Plan(events=4_000, seed=5), archive, lambda done: None)
    package, alone = packed(tmp_path), python_without_the_package(tmp_path)
    others = sysconfig.get_path("purelib")
    settings = {
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.pyspark.python": str(alone),
        "spark.pyspark.driver.python": sys.executable,
    }

    assert not can_import(alone, others)
    assert can_import(alone, f"{package}:{others}")
    pipeline("run", "--archive", str(archive), "--tables", str(tmp_path / "here"))
    # Spark plans a source on the driver's machine, and with the workers' Python: it shall find
    # there what it finds on theirs.
    path = f"{package}:{others}"
    with cluster(tmp_path, path) as master:
        for action, *more in (("run",), ("stream", "--once")):
            options = ("--archive", str(archive), "--tables", str(tmp_path / action))
            given = (f"--conf={name}={value}" for name, value in settings.items())
            pipeline(action, *more, *options, "--master", master, *given, path=path)

    for name in TABLES:
        for action in ("run", "stream"):
            assert_same(rows(tmp_path / "here", name), rows(tmp_path / action, name), name)


READ = """
import sys
from pyspark.sql import SparkSession
from tocsin.pipeline import source
master, archive, scratch = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.executor.memory", "1g")
builder = builder.config("spark.driver.host", "127.0.0.1")
spark = source.register(builder.config("spark.pyspark.python", "/no/python/here").getOrCreate())
events = spark.read.format("tocsin").load(archive)
part = spark.read.format("tocsin").options(after=100, through=900).load(archive)
stream = spark.readStream.format("tocsin").option("rows_per_trigger", 700).load(archive)
query = stream.select("seq").writeStream.trigger(availableNow=True)
query = query.option("checkpointLocation", scratch + "/checkpoint").start(scratch + "/out")
query.awaitTermination()
streamed = spark.read.parquet(scratch + "/out").distinct().count()
print(events.where("facts.ExitCode = 0").count() > 0, events.count(), part.count(), streamed)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_workers_without_any_python_read_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    synthesize(Plan(events=4_000, seed=5, broken=0.0), archive, lambda done: None)
    through = Catalog(archive).through()

    with cluster(tmp_path, "") as master:
        ran = subprocess.run(
            [sys.executable, "-c", READ, master, str(archive), str(tmp_path)],
            timeout=280,
            capture_output=True,
            text=True,
        )

    assert ran.stdout.split() == ["True", str(through), "800", str(through)], ran.stderr[-2_000:]
