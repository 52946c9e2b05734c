"""The same code on a real standalone cluster makes the same tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.cluster import cluster, packed
from tocsin.archive.published import read_table
from tocsin.archive.synth.plan import Plan
from tocsin.archive.synth.synthesis import synthesize
from tocsin.archive.tables import TABLES

ORDER = {
    "events": ["seq"],
    "activities": ["run", "id", "attempt"],
    "runs": ["run"],
    "activity_stats": ["workflow", "activity", "version"],
    "cost_models": ["workflow", "activity", "version", "target"],
    "estimates": ["run"],
    "failures": ["run", "id", "attempt"],
    "evolution": ["workflow", "version"],
    "host_usage": ["host", "hour"],
    "activity_usage": ["workflow", "activity", "hour"],
    "deliveries": ["subscription"],
    "discoveries": ["model", "request"],
    "quarantine": ["file", "seq", "reason", "excerpt"],
}


def pipeline(*arguments: str, package: Path | None = None) -> None:
    """Run the command as a person would, with the package from a file if one is named."""
    environment = dict(os.environ)
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    subprocess.run(
        [sys.executable, "-m", "tocsin", "pipeline", *arguments],
        env=environment,
        check=True,
        timeout=280,
        capture_output=True,
    )


def rows(tables: Path, name: str) -> pa.Table:
    return read_table(tables, name).sort_by([(column, "ascending") for column in ORDER[name]])


def assert_same(one: pa.Table, other: pa.Table, name: str) -> None:
    """Equal, but for the last digit of what was summed up in another order."""
    assert one.num_rows == other.num_rows, name
    for column in one.column_names:
        left, right = one[column].combine_chunks(), other[column].combine_chunks()
        if pa.types.is_floating(left.type):
            apart = pc.max(pc.abs(pc.subtract(left, right))).as_py() or 0.0
            size = pc.max(pc.abs(left)).as_py() or 0.0
            assert left.null_count == right.null_count, f"{name}.{column}"
            assert apart <= 1e-9 * max(1.0, size), f"{name}.{column}"
        else:
            assert left.equals(right), f"{name}.{column}"


@pytest.mark.timeout(600)
def test_a_cluster_of_two_workers_makes_the_tables_that_one_machine_makes(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    synthesize(Plan(events=4_000, seed=5), archive, lambda done: None)
    package = packed(tmp_path)

    pipeline("run", "--archive", str(archive), "--tables", str(tmp_path / "here"))
    with cluster(tmp_path, package) as master:
        options = ("--archive", str(archive), "--tables", str(tmp_path / "there"))
        settings = ("--conf", "spark.executor.memory=1g", "--conf", "spark.driver.host=127.0.0.1")
        pipeline("run", *options, "--master", master, *settings, package=package)

    for name in TABLES:
        assert_same(rows(tmp_path / "here", name), rows(tmp_path / "there", name), name)
