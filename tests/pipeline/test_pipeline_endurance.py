"""Faults that take long to prove: killed executors and brokers, full disks, a run of very many."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from pipeline.cluster import cluster, packed
from pipeline.damage import (
    END_S,
    add_file,
    as_table,
    ended,
    message,
    pipeline,
    version_read_whole,
)
from pipeline.sameness import assert_same, rows
from served import Served, served
from small_disk import small_disk
from tocsin.event.instant import NS_PER_S
from tocsin.pipeline.job import Job, run
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.schemas import TABLES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ACTIVITIES = 1_000_000  # of one run
A_FILE = 100_000
FAILS = 1_000  # one in so many
MOMENT_NS = 1_790_000_000 * NS_PER_S
EXECUTOR = "CoarseGrainedExecutorBackend"


def synthesized(directory: Path, events: int = 3_000) -> Path:
    archive = directory / "archive"
    synthesize(Plan(events=events, seed=21, files_of=500), archive, lambda done: None)
    return archive


def executors(workers: list[int]) -> list[psutil.Process]:
    """The executors among the descendants of these processes."""
    found = (child for pid in workers for child in psutil.Process(pid).children(recursive=True))
    return [each for each in found if _is_executor(each)]


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(EXECUTOR in word for word in process.cmdline())
    except psutil.NoSuchProcess:  # it has just ended
        return False


@pytest.mark.parametrize("action", [("run",), ("stream", "--once")])
def test_a_job_and_a_stream_survive_the_kill_of_an_executor(
    spark: SparkSession, tmp_path: Path, action: tuple[str, ...]
) -> None:
    archive, package = synthesized(tmp_path), packed(tmp_path)
    run(spark, Job(str(archive), tmp_path / "here"))
    options = ["--archive", str(archive), "--tables", str(tmp_path / "there"), "--json"]
    settings = ["--conf", "spark.executor.memory=1g", "--conf", "spark.driver.host=127.0.0.1"]

    with cluster(tmp_path, str(package)) as master:
        settings += ["--master", master]
        ours = [child.pid for child in psutil.Process().children()]
        job = subprocess.Popen(
            [sys.executable, "-m", "tocsin", "pipeline", *action, *options, *settings],
            env={**os.environ, "PYTHONPATH": str(package)},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            victim = _working_executor(ours, tmp_path / "there", job)
            victim.kill()
            assert job.wait(END_S) == 0
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()

    for name in TABLES:
        assert_same(rows(tmp_path / "here", name), rows(tmp_path / "there", name), name)


def _working_executor(
    workers: list[int], tables: Path, job: subprocess.Popen[bytes]
) -> psutil.Process:
    """One that has begun to write."""
    deadline_s = time.monotonic() + END_S
    while time.monotonic() < deadline_s:
        assert job.poll() is None
        found = executors(workers)
        if found and list(tables.glob("_state/partials/.tmp-*/*/_temporary")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError("no executor began to write")


def publish_steps(broker: Served, first: int, count: int) -> None:
    broker.publish(
        *(
            {
                "id": f"step-{number}",
                "type": "bb.ActivitySucceeded",
                "datacontenttype": "application/json",
                "data": {
                    "RunId": "one",
                    "WorkflowName": "kept",
                    "ActivityId": f"step-{number}",
                    "ActivityType": "step",
                    "ActivitySucceeded": "2026-09-21T14:00:00Z",
                },
            }
            for number in range(first, first + count)
        )
    )


def test_a_stream_outlives_the_kill_of_its_broker(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    pace = ("--trigger", "0.5", "--refresh", "1", "--rows", "150")
    with served() as broker:
        publish_steps(broker, 0, 400)
        options = ("--archive", broker.url, "--tables", str(tables), *pace)
        with pipeline("stream", *options, errors=tmp_path / "err") as command:
            _await(lambda: any(each["kind"] == "batch" for each in command.lines))
            broker.kill()
            time.sleep(2)
            broker.start()
            publish_steps(broker, 400, 200)
            _await(lambda: _through(tables) >= 600)
            assert command.process.poll() is None, command.errors()

    ids = rows(tables, "events")["id"].to_pylist()
    steps = [each for each in ids if each.startswith("step-")]
    assert sorted(steps) == sorted(f"step-{number}" for number in range(600))


def _through(tables: Path) -> int:
    if not version_read_whole(tables):
        return 0
    return sum(each.startswith("step-") for each in rows(tables, "events")["id"].to_pylist())


def _await(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + END_S
    while time.monotonic() < deadline_s:
        if holds():
            return
        time.sleep(0.3)
    raise AssertionError("it did not come to pass")


def test_a_full_disk_leaves_the_tables_as_they_were_and_the_stream_goes_on_with_room(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = synthesized(tmp_path)
    run(spark, Job(str(archive), tmp_path / "plain"))
    late = sorted(archive.glob("date=*/*.parquet"), key=lambda path: path.name)[4:]
    aside = [path.rename(tmp_path / path.name) for path in late]

    with small_disk(64) as disk:
        tables = disk / "tables"
        options = ("--archive", str(archive), "--tables", str(tables), "--once")
        with pipeline("stream", *options, errors=tmp_path / "first") as command:
            complaint = command.errors()
            assert command.process.returncode == 0, complaint
        before = version_read_whole(tables)
        for path, place in zip(aside, late, strict=True):
            path.rename(place)
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "other").write_bytes(b"x" * (free - 200_000))

        with pipeline("stream", *options, errors=tmp_path / "second") as command:
            complaint = command.errors()
            assert command.process.returncode not in (0, None)
        assert "The tables are as they were" in complaint
        assert "No space left" in complaint
        assert version_read_whole(tables) == before

        (disk / "other").unlink()
        with pipeline("stream", *options, errors=tmp_path / "third") as command:
            complaint = command.errors()
            assert command.process.returncode == 0, complaint
        for name in TABLES:
            if name != "quarantine":
                assert_same(rows(tmp_path / "plain", name), rows(tables, name), name)


def test_one_run_with_very_many_activities_is_one_run(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    begin, moment = "2026-09-21T13:59:50Z", "2026-09-21T14:00:00Z"
    for first in range(1, ACTIVITIES, A_FILE):
        events = [message(seq, _ends(seq, begin, moment)) for seq in range(first, first + A_FILE)]
        add_file(archive, as_table(events, first, [MOMENT_NS] * A_FILE), first)

    options = ("--archive", str(archive), "--tables", str(tmp_path / "tables"))
    with pipeline("run", *options, errors=tmp_path / "err") as command:
        complaint = command.errors()
        assert command.process.returncode == 0, complaint

    (vast,) = rows(tmp_path / "tables", "runs").to_pylist()
    assert (vast["known"], vast["n_failed"]) == (ACTIVITIES, ACTIVITIES // FAILS)
    assert rows(tmp_path / "tables", "activities").num_rows == ACTIVITIES
    (stats,) = rows(tmp_path / "tables", "activity_stats").to_pylist()
    assert (stats["count"], stats["p99_s"]) == (ACTIVITIES, 10)
    failed = rows(tmp_path / "tables", "failures").to_pylist()
    assert len(failed) == ACTIVITIES // FAILS
    assert {len(each["before"]) for each in failed} == {10}


def _ends(number: int, begin: str, moment: str) -> dict[str, str]:
    """One in a thousand fails."""
    reported = ended("vast", moment, ActivityId=f"step-{number}", ActivityExecuting=begin)
    if number % FAILS:
        return reported
    del reported["ActivitySucceeded"]
    return {**reported, "ActivityFailed": moment, "ExitCode": "1", "ErrorMessage": "out of memory"}
