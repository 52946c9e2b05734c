"""Dask really runs, and the broker's log is held against the scheduler's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from integrations.engine_room import (
    Reported,
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

pytest.importorskip("distributed")

PROGRAM = Path(__file__).with_name("dask_flow.py")
RUN_S = 120.0
SAID = [10, "ValueError", 7]


def start(directory: Path, broker: str, per: str = "session") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), broker, per],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> Counter[tuple[str, str]]:
    """What Dask's scheduler says of each task, after the program has said what it should."""
    said, complained = process.communicate(timeout=RUN_S)
    assert process.returncode == 0, complained
    answer: dict[str, Any] = json.loads(said)
    assert answer["said"] == SAID
    return Counter((key, concept) for key, concept in answer["ended"])


def ended(messages: list[Reported]) -> Counter[tuple[str, str]]:
    return Counter((key, concept) for (key, _), concept in ends(messages).items())


def test_a_session_is_reported_as_dask_logs_it_also_when_the_broker_dies_in_the_middle(
    broker: Served, tmp_path: Path
) -> None:
    (tmp_path / "hold").touch()
    process = start(tmp_path, broker.url)
    wait_until_reported(broker, "ActivityExecuting", ActivityType="held")

    broker.kill()
    (tmp_path / "hold").unlink()
    own = finished(process)
    broker.start()
    before = reported(broker)
    send_all(broker.url, tmp_path / "spool")

    messages = reported(broker)
    assert run_ends(before) == []
    assert ended(messages) == own
    assert_nothing_twice(messages)
    [failed] = with_concept(messages, "ActivityFailed")
    assert failed.pairs["ActivityType"] == "bad"
    assert "disk quota exceeded" in failed.pairs["ErrorMessage"]
    assert "raise ValueError" in failed.pairs["ErrorTrace"]
    plan = {t["id"]: t for m in with_concept(messages, "ActivityPlan") for t in tasks_of(m)}
    [whole] = [task for task in plan.values() if task["type"] == "total"]
    assert {plan[parent]["type"] for parent in whole["parents"]} == {"gen"}
    totals = [int(m.pairs["PlannedActivities"]) for m in with_concept(messages, "ActivityPlan")]
    assert totals == sorted(totals)
    assert totals[-1] == len(plan) == 10
    assert run_ends(messages) == ["WorkflowTerminated"]
    assert_the_monitor_agrees(broker, messages)


def tasks_of(message: Reported) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(message.pairs["ActivityPlan"])
    return tasks


@pytest.mark.slow
def test_each_computation_may_be_a_run_of_its_own(broker: Served, tmp_path: Path) -> None:
    own = finished(start(tmp_path, broker.url, "computation"))

    messages = reported(broker)
    runs = [m.pairs["RunId"] for m in with_concept(messages, "WorkflowStarted")]
    assert len(runs) == len(set(runs)) == len(run_ends(messages)) > 1
    reused = ended(with_concept(messages, "ActivityCached"))
    reported_of = Counter(
        (m.pairs["ActivityId"], concept)
        for run in runs
        for m in messages
        for concept in set(own_concepts(m))
        if m.pairs["RunId"] == run
    )
    assert reported_of - reused == own
    assert_nothing_twice(messages)


def own_concepts(message: Reported) -> list[str]:
    return list(ends([message]).values())


@pytest.mark.slow
def test_a_broker_that_takes_connections_and_never_answers_holds_up_nothing(tmp_path: Path) -> None:
    with deaf_broker() as address:
        finished(start(tmp_path, address))

    assert list((tmp_path / "spool").iterdir())


@pytest.mark.slow
def test_clients_of_one_scheduler_have_plugins_that_come_and_go_with_them(
    broker: Served, tmp_path: Path
) -> None:
    program = PROGRAM.with_name("dask_neighbours.py")

    done = subprocess.run(
        [sys.executable, str(program), broker.url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )

    assert (done.returncode, done.stdout) == (0, "3 4\n2\n"), done.stderr
    messages = reported(broker)
    tasks = {
        name: {
            m.pairs["ActivityType"]
            for m in with_concept(messages, "ActivitySucceeded")
            if m.pairs["WorkflowName"] == name
        }
        for name in ("of-ana", "of-ben")
    }
    assert tasks == {"of-ana": {"a"}, "of-ben": {"b"}}
    assert run_ends(messages) == ["WorkflowCompleted"] * 2
