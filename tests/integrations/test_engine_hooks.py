"""The hooks themselves: nothing that goes wrong in them reaches the engine."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

from integrations.engine_room import WAIT_S, run_ends, with_concept
from tocsin.integrations.files import NoFiles
from tocsin.integrations.snakemake.hook import RecordFilter, SnakemakeHook
from tocsin.integrations.snakemake.records import SnakemakeRun
from tocsin.wire.blackboard.messages import Message


class Kept:
    """A sink that keeps everything, and can be told to fail."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.is_broken = False
        self.closed = 0

    def put(self, message: Message) -> None:
        if self.is_broken:
            raise OSError("no room")
        self.messages.append(message)

    def close(self) -> None:
        self.closed += 1


class Spiteful:
    """A value that cannot even be looked at."""

    def __iter__(self) -> Any:
        raise RuntimeError("do not look at me")


def log_record(event: str, **fields: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"event": event, "msg": "", **fields})


STARTED = log_record("workflow_started", workflow_id="r", snakefile_main="/w/flow/Snakefile")


def test_a_record_that_cannot_be_read_costs_only_itself() -> None:
    sink = Kept()
    hook = SnakemakeHook(sink=sink)
    hook.handle(STARTED)

    hook.handle(log_record("job_info", jobid=1, rule_name="a", input=Spiteful()))
    hook.handle(log_record("job_info", jobid=2, rule_name="a"))
    hook.close()

    assert hook.faults == 1
    assert [m.pairs["ActivityId"] for m in with_concept(sink.messages, "ActivityExecuting")] == [
        "2"
    ]


def test_a_sink_that_fails_does_not_disturb_the_engine() -> None:
    sink = Kept()
    hook = SnakemakeHook(sink=sink)
    sink.is_broken = True

    hook.handle(STARTED)
    hook.close()

    assert (hook.faults, sink.closed) == (2, 1)


def test_a_run_ends_once_however_often_it_is_closed() -> None:
    sink = Kept()
    hook = SnakemakeHook(sink=sink)
    hook.handle(STARTED)

    hook.close()
    hook.handle(log_record("job_info", jobid=1))
    hook.close()

    assert run_ends(sink.messages) == ["WorkflowCompleted"]
    assert sink.messages[-1].pairs["WorkflowCompleted"]


def test_a_forked_child_says_nothing_of_its_parents_run() -> None:
    sink = Kept()
    hook = SnakemakeHook(sink=sink)
    hook.handle(STARTED)

    child = os.fork()
    if child == 0:
        hook.close()
        os._exit(sink.closed + len(run_ends(sink.messages)))
    _, status = os.waitpid(child, 0)
    hook.close()

    assert os.waitstatus_to_exitcode(status) == 0
    assert run_ends(sink.messages) == ["WorkflowCompleted"]


def test_a_run_whose_jobs_take_long_gives_signs_of_life() -> None:
    sink = Kept()
    hook = SnakemakeHook(sink=sink, heartbeat_s=0.01)
    hook.watch()
    hook.handle(STARTED)

    deadline = time.monotonic() + WAIT_S
    while not with_concept(sink.messages, "WorkflowHeartbeat"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    hook.close()

    [first, *_] = with_concept(sink.messages, "WorkflowHeartbeat")
    assert first.pairs["HeartbeatSeconds"] == "0.01"
    assert run_ends(sink.messages[-1:]) == ["WorkflowCompleted"]


def test_a_plan_that_cannot_be_read_leaves_the_log_as_it_was() -> None:
    seer = RecordFilter()
    seer.workflow = object()  # which has no plan at all
    record = log_record("run_info", stats={"a": 1, "total": 1})

    assert seer.filter(record) is True
    assert not hasattr(record, "tocsin_planned")


def test_the_log_of_a_failed_job_is_read_before_the_next_attempt_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("no luck\n")
    record = log_record("job_error", jobid=1, rule_name="a", log=["a.log"])

    RecordFilter().filter(record)
    (tmp_path / "a.log").unlink()

    run = SnakemakeRun(files_in=lambda directory: NoFiles())
    run.handle(log_record("workflow_started").__dict__)
    run.handle(log_record("job_info", jobid=1, rule_name="a").__dict__)
    reported = [*run.handle(record.__dict__), *run.closed(2.0)]
    assert "no luck\n" in {message.pairs.get("LogTail") for message in reported}


def test_somebody_elses_log_is_none_of_its_business() -> None:
    seer = RecordFilter()
    record = log_record("workflow_started")

    assert seer.filter(record) is True
    assert not hasattr(record, "tocsin_facts")
