"""Parsl really runs, and the broker's log is held against Parsl's own database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from integrations.engine_room import (
    assert_nothing_twice,
    assert_the_monitor_agrees,
    deaf_broker,
    ends,
    reported,
    run_ends,
    wait_until_reported,
    with_concept,
)
from served import Served
from tocsin.client.tracking.spool import send_all

pytest.importorskip("parsl")

PROGRAM = Path(__file__).with_name("parsl_flow.py")
RUN_S = 120.0
SAID = ["3", "3", "DependencyError ValueError BashExitFailure"]
ENDED = {
    "exec_done": "ActivitySucceeded",
    "memo_done": "ActivityCached",
    "failed": "ActivityFailed",
    "fail_retryable": "ActivityRetrying",
    "dep_fail": "ActivitySkipped",
}


def start(directory: Path, broker: str, kind: str = "threads") -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), broker, kind],
        cwd=directory,
        env={**os.environ, "PATH": path},  # where Parsl finds its own helpers
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> list[str]:
    said, complained = process.communicate(timeout=RUN_S)
    assert process.returncode == 0, complained
    return said.splitlines()


def own_record(directory: Path) -> dict[tuple[str, int], str]:
    """How each try of each task ended, by Parsl's monitoring database."""
    with sqlite3.connect(directory / "runinfo" / "monitoring.db") as database:
        rows = database.execute("SELECT task_id, try_id, task_status_name FROM status").fetchall()
    return {
        (str(task), attempt + 1): ENDED[status] for task, attempt, status in rows if status in ENDED
    }


def test_a_run_is_reported_as_parsl_records_it_also_when_the_broker_dies_in_the_middle(
    broker: Served, tmp_path: Path
) -> None:
    (tmp_path / "hold").touch()
    process = start(tmp_path, broker.url)
    wait_until_reported(broker, "ActivityExecuting", ActivityType="held")

    broker.kill()
    (tmp_path / "hold").unlink()
    assert finished(process) == SAID
    broker.start()
    before = reported(broker)
    send_all(broker.url, tmp_path / "spool")

    messages = reported(broker)
    assert run_ends(before) == []
    assert len(ends(before)) < len(ends(messages))
    assert ends(messages) == own_record(tmp_path)
    assert_nothing_twice(messages)
    [failed] = [m for m in with_concept(messages, "ActivityFailed") if "ExitCode" in m.pairs]
    assert failed.pairs["ExitCode"] == "3"
    assert "no space left" in failed.pairs["LogTail"]
    [started] = with_concept(messages, "WorkflowStarted")
    assert started.pairs["WorkflowName"] == "parsl_flow"
    assert "def gen(" in started.pairs["WorkflowFile"]
    assert run_ends(messages) == ["WorkflowTerminated"]
    assert_the_monitor_agrees(broker, messages)


@pytest.mark.slow
def test_workers_of_their_own_tell_where_and_with_what(broker: Served, tmp_path: Path) -> None:
    assert finished(start(tmp_path, broker.url, "processes")) == SAID

    messages = reported(broker)
    assert ends(messages) == own_record(tmp_path)
    assert_nothing_twice(messages)
    assert len(with_concept(messages, "WorkerJoined")) == 1
    sampled = {m.pairs["ActivityId"] for m in with_concept(messages, "MemoryRss")}
    assert sampled == {m.pairs["ActivityId"] for m in with_concept(messages, "ActivityExecuting")}


@pytest.mark.slow
def test_a_broker_that_takes_connections_and_never_answers_holds_up_nothing(tmp_path: Path) -> None:
    with deaf_broker() as address:
        said = finished(start(tmp_path, address))

    assert said == SAID
    assert list((tmp_path / "spool").iterdir())
