"""Snakemake really runs, and the broker's log is held against Snakemake's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from integrations.engine_room import (
    Reported,
    assert_nothing_twice,
    assert_the_monitor_agrees,
    deaf_broker,
    ends,
    kinds,
    reported,
    run_ends,
    wait_until_reported,
    with_concept,
)
from integrations.snakemake_flow import RUN_S, lay_out, own_record, run, start
from served import Served, served
from tocsin.client.tracking.spool import send_all
from tocsin.integrations.workflow_files.workflow import read_workflow

pytest.importorskip("snakemake")

DECLARED = """
rule make:
    output: "made"
    threads: 2
    resources: mem="300MB"
    shell: "exit 3"
"""


def assert_reported_is_what_snakemake_logged(broker: Served, flow: Path) -> None:
    messages = reported(broker)
    finished, restarted = own_record(flow)
    ended = ends(messages)
    types = kinds(messages)

    succeeded = {id for (id, _), concept in ended.items() if concept == "ActivitySucceeded"}
    assert {(id, types[id]) for id in succeeded} == finished
    retried = [id for (id, _), concept in ended.items() if concept == "ActivityRetrying"]
    assert sorted(retried) == sorted(restarted)
    assert_nothing_twice(messages)


def tasks_of(message: Reported) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(message.pairs["ActivityPlan"])
    return tasks


def test_a_run_is_reported_as_snakemake_logs_it_with_its_plan_files_and_resources(
    broker: Served, tmp_path: Path
) -> None:
    flow = lay_out(tmp_path / "flow")

    code, said = run(flow, broker.url, "--logger-tocsin-run-id", "r1")

    assert code == 0, said
    assert_reported_is_what_snakemake_logged(broker, flow)
    messages = reported(broker)
    [started] = with_concept(messages, "WorkflowStarted")
    files = {file["path"]: file for file in json.loads(started.pairs["WorkflowFile"])}
    assert files.keys() == {"Snakefile", "config.yaml", "count.py"}
    assert files["Snakefile"]["text"] == (flow / "Snakefile").read_text()
    assert json.loads(started.pairs["Parameters"]) == {"samples": ["a", "b"]}
    assert started.pairs["WorkflowVersion"] == read_workflow(flow / "Snakefile").version
    assert (started.pairs["RunId"], started.pairs["WorkflowName"]) == ("r1", "flow")
    assert [m.pairs["PlannedActivities"] for m in with_concept(messages, "ActivityPlan")] == [
        "6",
        "8",
    ]
    plan = {t["id"]: t for m in with_concept(messages, "ActivityPlan") for t in tasks_of(m)}
    sorts = [
        m for m in with_concept(messages, "ActivityExecuting") if m.pairs["ActivityType"] == "sort"
    ]
    for message in sorts:
        [path] = json.loads(message.pairs["InputFile"])
        size = str((flow / path).stat().st_size)
        assert (message.pairs["InputBytes"], message.pairs["ExternalBytes"]) == (size, size)
        assert plan[message.pairs["ActivityId"]]["external_bytes"] == int(size)
        assert message.pairs["MemoryRequested"] == "100000000"
    measured = with_concept(messages, "MemoryPeak")
    assert {m.pairs["ActivityType"] for m in measured} == {"sort"}  # the rule with a benchmark
    retried = with_concept(messages, "ActivityRetrying")
    assert {m.pairs["LogTail"] for m in retried} == {"no luck\n"}
    assert {m.pairs["ExitCode"] for m in retried} == {"3"}
    flaky = {t["id"]: t["parents"] for t in plan.values() if t["type"] == "flaky"}
    [split] = [t["id"] for t in plan.values() if t["type"] == "split"]
    assert list(flaky.values()) == [[split], [split]]
    assert run_ends(messages) == ["WorkflowCompleted"]


def test_a_broker_that_dies_in_the_middle_gets_the_rest_later_and_nothing_twice(
    broker: Served, tmp_path: Path
) -> None:
    flow = lay_out(tmp_path / "flow")
    (flow / "hold").touch()
    process = start(flow, broker.url)
    wait_until_reported(broker, "ActivityExecuting", ActivityType="report")

    broker.kill()
    (flow / "hold").unlink()
    _, said = process.communicate(timeout=RUN_S)
    assert process.returncode == 0, said
    assert (flow / "report.txt").read_text() == "3\n3\n"
    broker.start()
    before = reported(broker)
    sent = send_all(broker.url, flow / "spool")

    assert sent.sent > 0
    assert run_ends(before) == []
    assert run_ends(reported(broker)) == ["WorkflowCompleted"]
    assert_reported_is_what_snakemake_logged(broker, flow)
    assert_the_monitor_agrees(broker, reported(broker))
    assert send_all(broker.url, flow / "spool").sent == 0


def test_a_broker_that_takes_connections_and_never_answers_holds_up_nothing(tmp_path: Path) -> None:
    flow = lay_out(tmp_path / "flow")

    with deaf_broker() as address:
        code, said = run(flow, address, "scripted")

    assert code == 0, said
    assert (flow / "scripted.txt").read_text() == "3"
    assert list((flow / "spool").iterdir())


@pytest.mark.slow
def test_what_a_run_without_a_broker_had_to_tell_goes_with_the_next_run(
    broker: Served, tmp_path: Path
) -> None:
    flow = lay_out(tmp_path / "flow")
    broker.stop()
    assert run(flow, broker.url, "scripted", "--logger-tocsin-run-id", "without")[0] == 0

    broker.start()
    assert run(flow, broker.url, "sort", "d/a.sorted", "--logger-tocsin-run-id", "with")[0] == 1
    assert run(flow, broker.url, "d/a.sorted", "--logger-tocsin-run-id", "third")[0] == 0

    ended = {m.pairs["RunId"]: run_ends([m]) for m in reported(broker) if run_ends([m])}
    assert ended == {
        "without": ["WorkflowCompleted"],
        "with": ["WorkflowTerminated"],  # a rule with wildcards is no target
        "third": ["WorkflowCompleted"],
    }
    assert_nothing_twice(reported(broker))


@pytest.mark.slow
def test_jobs_that_run_together_through_a_pipe_are_reported_one_by_one(
    broker: Served, tmp_path: Path
) -> None:
    flow = lay_out(tmp_path / "flow")

    code, said = run(flow, broker.url, "piped.txt")

    assert code == 0, said
    types = kinds(reported(broker))
    assert {types[id] for id, _ in ends(reported(broker))} == {"writes", "reads"}
    assert_reported_is_what_snakemake_logged(broker, flow)


@pytest.mark.slow
def test_a_job_that_fails_says_why_and_what_waited_for_it_is_skipped(
    broker: Served, tmp_path: Path
) -> None:
    flow = lay_out(tmp_path / "flow")

    code, said = run(flow, broker.url, "-k", "after.txt", "forgotten.txt", "d/a.sorted")

    assert code == 1, said
    messages = reported(broker)
    types = kinds(messages)
    assert {types[id]: concept for (id, _), concept in ends(messages).items()} == {
        "fails": "ActivityFailed",
        "after_fails": "ActivitySkipped",
        "forgets": "ActivityFailed",
        "sort": "ActivitySucceeded",
    }
    failed = {m.pairs["ActivityType"]: m.pairs for m in with_concept(messages, "ActivityFailed")}
    assert failed["fails"]["ExitCode"] == "7"
    assert failed["fails"]["LogTail"] == "disk quota exceeded\n"
    assert "forgotten.txt" in failed["forgets"]["ErrorTrace"]
    assert run_ends(messages) == ["WorkflowTerminated"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_a_person_stops_is_aborted(
    broker: Served, tmp_path: Path, number: signal.Signals
) -> None:
    flow = lay_out(tmp_path / "flow")
    process = start(flow, broker.url, "waited.txt")
    wait_until_reported(broker, "ActivityExecuting")
    deadline = time.monotonic() + RUN_S
    while not (flow / "waiting").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)

    os.kill(process.pid, number)
    os.killpg(process.pid, signal.SIGINT)  # after SIGTERM alone it would wait for its jobs
    process.communicate(timeout=RUN_S)

    assert run_ends(reported(broker)) == ["WorkflowAborted"]
    assert list(ends(reported(broker)).values()) == ["ActivityCancelled"]


@pytest.mark.slow
def test_runs_that_do_less_than_all_end_too(broker: Served, tmp_path: Path) -> None:
    flow = lay_out(tmp_path / "flow")

    assert run(flow, broker.url, "--until", "sort")[0] == 0
    assert run(flow, broker.url, "--until", "sort")[0] == 0  # by now there is nothing to do
    assert run(flow, broker.url, "-n")[0] == 0  # and of a rehearsal nothing is told
    assert run(flow, broker.url, "--touch", "-F", "d/a.sorted")[0] == 0
    assert run(flow, broker.url, "nowhere.txt")[0] == 1

    messages = reported(broker)
    assert len(with_concept(messages, "WorkflowStarted")) == 4
    assert run_ends(messages) == ["WorkflowCompleted"] * 3 + ["WorkflowTerminated"]
    planned = [m.pairs["PlannedActivities"] for m in with_concept(messages, "PlannedActivities")]
    assert planned == ["2", "0", "1"]
    assert len(with_concept(messages, "ActivityCached")) == 1


@pytest.mark.slow
def test_quiet_hides_nothing_from_the_broker(broker: Served, tmp_path: Path) -> None:
    flow = lay_out(tmp_path / "flow")

    code, said = run(flow, broker.url, "--quiet", "all", "--", "d/a.sorted")

    assert code == 0, said
    assert list(ends(reported(broker)).values()) == ["ActivitySucceeded"]


def test_the_threads_and_memory_that_a_rule_declares_are_shown_though_nobody_else_asks(
    tmp_path: Path,
) -> None:
    flow = tmp_path / "flow"
    flow.mkdir()
    (flow / "Snakefile").write_text(DECLARED)
    with served() as broker:  # with its own monitor, and no other subscriber
        code, said = run(flow, broker.url, "--logger-tocsin-run-id", "r1", "made")
        assert code == 1, said
        _, page = broker.call("GET", "/runs/r1/activities")
        shown = subprocess.run(
            [sys.executable, "-m", "tocsin", "wf", "failures", "r1", "--broker", broker.url],
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )

    [activity] = page["activities"]
    used = activity["resources"]
    assert (used["CpuCores"], used["MemoryRequested"]) == (2, 300_000_000)
    assert "memory requested 300 MB" in shown.stdout, shown.stdout + shown.stderr
