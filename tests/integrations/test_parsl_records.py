"""Parsl's monitoring messages, from a recording and made up, as those of the blackboard."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from integrations.engine_room import ends, recording, run_ends, with_concept
from tocsin.integrations.files import NoFiles
from tocsin.integrations.parsl_records import ParslRun
from tocsin.ontology import built_in
from tocsin.wire.blackboard.messages import Message

Recorded = list[dict[str, Any]]
OF_WORKERS = ("WORKER_TASK_INFO", "RESOURCE_INFO")

START = {"run_id": "r", "workflow_name": "demo.py", "time_began": datetime(2026, 11, 1)}


def new_run(**given: Any) -> ParslRun:
    return ParslRun(NoFiles(), zone=UTC, **given)


def replayed(records: Recorded, run: ParslRun | None = None) -> list[Message]:
    run = run or new_run()
    messages: list[Message] = []
    for record in records:
        payload = {k: v for k, v in record.items() if k not in ("type", "ts_recv")}
        messages += run.handle(record["type"], payload, record["ts_recv"])
    return messages + run.closed(records[-1]["ts_recv"])


def test_every_task_ends_as_parsl_says() -> None:
    messages = replayed(recording("parsl_monitoring.jsonl"))

    assert ends(messages) == {
        **{(str(task), 1): "ActivitySucceeded" for task in range(5)},
        ("5", 1): "ActivityRetrying",
        ("5", 2): "ActivityFailed",
        ("6", 1): "ActivitySkipped",
    }
    assert run_ends(messages) == ["WorkflowTerminated"]


def test_what_a_task_waits_for_and_which_app_it_is_are_reported() -> None:
    messages = replayed(recording("parsl_monitoring.jsonl"))

    [add] = [
        m for m in with_concept(messages, "ActivityInitialized") if m.pairs["ActivityId"] == "4"
    ]
    assert add.pairs["ActivityType"] == "add"
    assert json.loads(add.pairs["ParentActivity"]) == ["0", "1", "2", "3"]


def test_times_of_a_worker_are_by_its_clock_and_ours_goes_with_them() -> None:
    messages = replayed(recording("parsl_monitoring.jsonl"))

    [began] = [
        m for m in with_concept(messages, "ActivityExecuting") if m.pairs["ActivityId"] == "0"
    ]
    [ended] = [
        m for m in with_concept(messages, "ActivitySucceeded") if m.pairs["ActivityId"] == "0"
    ]
    assert began.pairs["ActivityExecuting"] == "2026-11-15T18:21:01.717Z"
    assert began.pairs["ReceivedTime"] == "2026-11-15T18:21:01.728Z"
    assert ended.pairs["ActivitySucceeded"] == "2026-11-15T18:21:03.852Z"
    assert ended.pairs["ReceivedTime"] == "2026-11-15T18:21:03.855Z"


def test_what_a_try_used_is_counted_from_its_own_beginning() -> None:
    messages = replayed(recording("parsl_monitoring.jsonl"))

    samples = [m for m in with_concept(messages, "MemoryRss") if m.pairs["ActivityId"] == "0"]
    assert samples[0].pairs["CpuSeconds"] == "0"  # the worker's process had used 1.69 before
    assert samples[-1].pairs["CpuSeconds"] == "0.09"
    [ended] = [
        m for m in with_concept(messages, "ActivitySucceeded") if m.pairs["ActivityId"] == "0"
    ]
    assert ended.pairs["MemoryPeak"] == max((m.pairs["MemoryRss"] for m in samples), key=int)


def test_what_workers_say_may_come_late_or_not_at_all() -> None:
    records = recording("parsl_monitoring.jsonl")
    kernel = [record for record in records if record["type"] not in OF_WORKERS]
    workers = [record for record in records if record["type"] in OF_WORKERS]

    late = replayed(kernel + workers)
    never = replayed(kernel, new_run(workers_tell=False))

    assert ends(late) == ends(never) == ends(replayed(records))
    assert len(with_concept(never, "ActivityExecuting")) == 7  # by when they were launched


def test_a_manager_of_workers_comes_once_and_goes_once() -> None:
    messages = replayed(recording("parsl_monitoring.jsonl"))

    assert len(with_concept(messages, "WorkerJoined")) == 1
    assert len(with_concept(messages, "WorkerLost")) == 1


def test_payloads_may_be_lists() -> None:
    run = new_run()
    run.handle("WORKFLOW_INFO", START, 1.0)
    node = {"uid": "u", "active": True, "hostname": "n1"}

    assert len(run.handle("NODE_INFO", [node, {**node, "uid": "v"}], 2.0)) == 2
    assert run.handle("BLOCK_INFO", [{"status": "RUNNING"}], 2.0) == []


def test_every_pair_is_a_concept_and_every_id_is_new() -> None:
    messages = replayed(recording("parsl_monitoring.jsonl"))

    assert len({message.id for message in messages}) == len(messages)
    assert {key for message in messages for key in message.pairs} <= built_in().concepts.keys()


def test_a_version_that_parsl_makes_of_the_time_is_none() -> None:
    [by_time] = new_run().handle(
        "WORKFLOW_INFO", {**START, "workflow_version": "2026-11-01 00:00:00"}, 1
    )
    [by_hand] = new_run().handle("WORKFLOW_INFO", {**START, "workflow_version": "1.4"}, 1)

    assert "WorkflowVersion" not in by_time.pairs
    assert by_hand.pairs["WorkflowVersion"] == "1.4"


def test_an_interrupted_program_aborts_its_run_and_cancels_what_was_under_way() -> None:
    run = new_run()
    run.handle("WORKFLOW_INFO", START, 1.0)
    run.handle("TASK_INFO", {"task_id": 3, "try_id": 0, "task_status_name": "launched"}, 2.0)

    messages = run.closed(3.0, raised=KeyboardInterrupt())

    assert ends(messages) == {("3", 1): "ActivityCancelled"}
    assert run_ends(messages) == ["WorkflowAborted"]


FIELDS = ["run_id", "task_id", "try_id", "task_status_name", "timestamp", "task_depends", "uid"]
FIELDS += ["first_msg", "last_msg", "task_fail_history", "task_stderr", "active", "time_completed"]
FIELDS += ["psutil_process_time_user", "psutil_process_memory_resident", "workflow_name"]
KINDS = ["WORKFLOW_INFO", "TASK_INFO", "WORKER_TASK_INFO", "RESOURCE_INFO", "NODE_INFO", "X"]
STATUSES = ["pending", "launched", "exec_done", "failed", "fail_retryable", "dep_fail", "memo_done"]
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
values |= st.datetimes() | st.sampled_from(STATUSES) | st.lists(st.integers(), max_size=2)
payloads = st.dictionaries(st.sampled_from(FIELDS), values, max_size=9)
anything = st.tuples(st.sampled_from(KINDS), payloads | st.lists(payloads, max_size=2) | values)


@given(received=st.lists(anything, max_size=12))
def test_no_message_whatever_it_holds_raises(received: list[tuple[str, Any]]) -> None:
    run = new_run()
    run.handle("WORKFLOW_INFO", START, 1.0)

    for kind, payload in received:
        run.handle(kind, payload, 2.0)

    assert len(run_ends(run.closed(3.0))) == 1


@given(data=st.data())
def test_the_order_in_which_radios_deliver_changes_no_end(data: st.DataObject) -> None:
    first, *rest = recording("parsl_monitoring.jsonl")

    messages = replayed([first, *data.draw(st.permutations(rest))])

    assert ends(messages) == ends(replayed([first, *rest]))
