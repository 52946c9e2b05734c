"""The same code on a real standalone cluster makes the same tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cluster import cluster, packed
from pipeline.sameness import assert_same, rows
from tocsin.archive.synth.plan import Plan
from tocsin.archive.synth.synthesis import synthesize
from tocsin.archive.tables import TABLES


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


@pytest.mark.slow
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
