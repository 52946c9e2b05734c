"""What Nextflow's weblog says comes to what its trace file says, whatever of it was lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_streams import RECEIVED, RunSeen, check, fold, shared, trace_rows, weblog
from tocsin.errors import BadRequest, TocsinError
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.nextflow import Names, read_weblog

TRACES = [
    "openproblems_2021-03-04.tsv",
    "openproblems_2022-05-13.tsv",
    "openproblems_2022-05-15.tsv",
]
RUN = "sleepy_curie-170aa09c"


def read(*posts: bytes, names: Names | None = None) -> list[Message]:
    names = names or Names()
    return [message for post in posts for message in read_weblog(post, names, RECEIVED)]


def post(event: str, **more: Any) -> bytes:
    body = {"runName": "sleepy_curie", "runId": "170aa09c-105f", "event": event, **more}
    return json.dumps({"utcTime": "2026-11-16T06:00:00Z", **body}).encode()


def task(event: str, number: int = 1, *, called: str = "align (a)", **trace: Any) -> bytes:
    reported = {
        "task_id": number,
        "name": called,
        "process": "align",
        "attempt": 1,
        "submit": 1_000,
    }
    return post(event, trace=reported | trace)


def ended(number: int = 1, status: str = "COMPLETED", **trace: Any) -> bytes:
    times = {"start": 2_000, "complete": 5_000}
    return task("process_completed", number, status=status, **(times | trace))


def the_run(messages: list[Message]) -> RunSeen:
    (run,) = fold(messages).values()
    return run


@pytest.mark.parametrize("file", TRACES)
def test_a_run_comes_to_what_its_trace_file_says(file: str) -> None:
    rows = trace_rows(shared("traces", file))
    last = {row["name"]: row for row in sorted(rows, key=lambda row: row["submit"])}

    runs = fold(read(*weblog(rows)))

    assert list(runs) == [RUN]
    run = runs[RUN]
    assert run.state == "completed"
    assert run.counts == {"succeeded": len(last)}
    assert all(row["status"] == "COMPLETED" for row in last.values())
    assert run.attempts == len(rows)
    failed = Counter(row["name"] for row in rows if row["status"] == "FAILED")
    assert {id: len(tries) - 1 for id, tries in run.tries.items() if len(tries) > 1} == failed
    assert run.reported("workflow") == "openproblems"
    assert run.reported("version") == "main@4bcced898ee2"
    assert run.anomalies == set()


def test_half_of_the_posts_may_be_lost_and_every_end_still_tells_the_times_before_it() -> None:
    rows = trace_rows(shared("traces", TRACES[0]))
    posts = list(weblog(rows))
    ends = [
        each for each in posts if b"process_completed" in each or b'"event": "completed"' in each
    ]

    whole, lossy = the_run(read(*posts)), the_run(read(*ends))

    assert lossy.counts == whole.counts
    for id, tries in whole.tries.items():
        for attempt, row in tries.items():
            for time in ("queued", "started", "ended"):
                assert lossy.tries[id][attempt][time] == row[time]


def test_the_order_of_posts_makes_no_difference_where_names_are_unlike() -> None:
    rows = [row for row in trace_rows(shared("traces", TRACES[0])) if row["status"] == "COMPLETED"]
    posts = list(weblog(rows))
    shuffled = random.Random(7).sample(posts, len(posts))

    assert the_run(read(*shuffled)).states == the_run(read(*posts)).states


@pytest.mark.parametrize(
    ("status", "more", "state"),
    [
        ("COMPLETED", {"exit": 0}, "succeeded"),
        ("CACHED", {}, "cached"),
        ("ABORTED", {}, "cancelled"),
        ("FAILED", {"exit": 1, "error_action": "TERMINATE"}, "failed"),
        ("FAILED", {"exit": 1, "error_action": "IGNORE"}, "failed"),
        ("FAILED", {"exit": 137}, "failed"),
        ("FAILED", {"exit": 1, "error_action": "RETRY"}, "retrying"),
        ("NOT HEARD OF", {"exit": 0}, "succeeded"),
        ("NOT HEARD OF", {"exit": 3}, "failed"),
    ],
)
def test_the_status_of_a_task_is_its_state(status: str, more: dict[str, Any], state: str) -> None:
    run = the_run(read(ended(status=status, **more)))

    assert run.states == {"align (a)": state}


def test_who_was_killed_ran_out_of_memory() -> None:
    (message,) = read(ended(status="FAILED", exit=137))

    assert "ActivityOutOfMemory" in message.pairs


def test_a_retry_has_another_number_and_is_the_same_activity() -> None:
    failed = ended(1, "FAILED", exit=1, error_action="RETRY")
    again = ended(2, attempt=2, exit=0)

    run = the_run(read(failed, again))

    assert run.states == {"align (a)": "succeeded"}
    assert sorted(run.tries["align (a)"]) == [1, 2]


def test_tasks_that_share_a_name_are_two_activities_and_each_keeps_its_retries() -> None:
    names = Names()
    messages = read(
        task("process_submitted", 1),
        task("process_submitted", 2),
        ended(2, "FAILED", exit=1, error_action="RETRY"),
        task("process_submitted", 3, attempt=2),
        ended(1),
        ended(3, attempt=2),
        ended(2, "FAILED", exit=1, error_action="RETRY"),  # once more, and late
        names=names,
    )

    run = the_run(messages)

    assert run.states == {"align (a)": "succeeded", "align (a) #2": "succeeded"}
    assert {id: sorted(tries) for id, tries in run.tries.items()} == {
        "align (a)": [1],
        "align (a) #2": [1, 2],
    }


def test_a_resumed_run_is_another_run_of_the_same_session() -> None:
    first = {"runName": "sleepy_curie", "runId": "s-1", "event": "started"}
    again = first | {"runName": "mad_hopper"}

    messages = read(json.dumps(first).encode(), json.dumps(again).encode())

    assert [message.pairs["RunId"] for message in messages] == [
        "sleepy_curie-s-1",
        "mad_hopper-s-1",
    ]


def test_what_a_task_used_is_in_bytes_and_seconds() -> None:
    more = {
        "%cpu": 180.0,
        "realtime": 3_000,
        "peak_rss": 1 << 20,
        "rchar": 10,
        "wchar": 20,
        "cpus": 2,
    }

    (message,) = read(ended(exit=0, native_id=77, script="run it", workdir="/w/1", **more))

    reported = message.pairs
    assert reported["CpuSeconds"] == "5.4"
    assert reported["CpuPercent"] == "90"  # of the two cores that it was given
    assert (reported["MemoryPeak"], reported["IoReadBytes"], reported["IoWriteBytes"]) == (
        "1048576",
        "10",
        "20",
    )
    assert (reported["Duration"], reported["QueueTime"]) == ("3", "1")
    assert (reported["EngineJobId"], reported["LogFile"]) == ("77", "/w/1/.command.log")
    assert reported["ReceivedTime"] == "2026-11-16T06:00:00.000Z"


@pytest.mark.parametrize(
    ("workflow", "state"),
    [
        ({"success": True, "exitStatus": 0}, "completed"),
        ({"success": False, "exitStatus": 1, "errorMessage": "oh", "errorReport": "no"}, "failed"),
        ({"success": False, "errorMessage": "SIGINT", "errorReport": "SIGINT"}, "aborted"),
        ({"exitStatus": 0}, "completed"),
        ({"errorMessage": "oh"}, "failed"),
        ({}, "completed"),
    ],
)
def test_the_end_of_a_run_is_told_by_its_metadata(workflow: dict[str, Any], state: str) -> None:
    run = the_run(read(post("completed", metadata={"workflow": workflow})))

    assert run.state == state
    assert run.reported("error") == (workflow.get("errorMessage") if state != "completed" else None)


def test_a_run_is_described_by_its_first_message() -> None:
    workflow = {
        "scriptFile": "/home/ada/main.nf",
        "scriptId": "2902f5aa",
        "start": "2026-11-16T05:59:58.5Z",
        "userName": "ada",
        "commandLine": "nextflow run main.nf",
        "launchDir": "/home/ada",
        "nextflow": "26.10.3",
    }

    (message,) = read(post("started", metadata={"params": {"n": 3}, "workflow": workflow}))

    assert message.pairs == {
        "WorkflowStarted": "2026-11-16T05:59:58.500Z",
        "WorkflowName": "main.nf",
        "WorkflowVersion": "2902f5aa",
        "EngineName": "nextflow",
        "EngineVersion": "26.10.3",
        "UserName": "ada",
        "CommandLine": "nextflow run main.nf",
        "WorkingDirectory": "/home/ada",
        "Parameters": '{"n":3}',
        "RunId": "sleepy_curie-170aa09c",
    }


def test_an_error_tells_of_the_task_and_of_the_run() -> None:
    failed = ended(1, "FAILED", exit=2, error_action="TERMINATE")
    trace = json.loads(failed)["trace"]

    messages = read(failed, post("error", trace=trace), post("error", trace=None))

    assert messages[0].id == messages[1].id  # which the broker stores once
    run = the_run(messages)
    assert run.states == {"align (a)": "failed"}
    assert run.reported("error") == "the task align (a) failed"
    assert run.reported("exit_code") == 2


def test_the_same_post_has_the_same_ids() -> None:
    posts = [post("started", metadata={}), ended(), post("completed", metadata={})]

    assert [m.id for m in read(*posts)] == [m.id for m in read(*posts)]


def test_a_kind_that_is_not_known_says_nothing() -> None:
    assert read(post("paused"), post("process_started"), post("process_started", trace={})) == []


def test_names_are_forgotten_when_there_are_too_many() -> None:
    names = Names(tasks_max=10)

    for number in range(100):
        read(ended(number, called=f"align ({number})"), names=names)

    assert names.activity("sleepy_curie-170aa09c", 99, "align (99)", 1) == "align (99)"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[]",
        b"null",
        b"{}",
        b'{"runName": [], "runId": {}}',
        b'{"runName": "", "event": "started"}',
        b"[" * 100_000,
        b'{"runId": ' + b"{" * 100_000,
        b'{"runName": "\xff"}',
    ],
)
def test_what_names_no_run_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read(body)


HOSTILE: list[Any] = [
    None, True, -1, 10**300, 1e308, -1e18, "", "x" * 100_000, "\x00\n\x1b[31m", [], {}, [[]],
    {"a": {"b": []}}, "2026-99-99", "NaN", "Infinity", "0001-01-01T00:00:00+14:00", "٣",
]  # fmt: skip
TRACE_KEYS = [
    *("task_id", "name", "process", "status", "exit", "attempt", "submit", "start", "complete"),
    *("realtime", "%cpu", "peak_rss", "rchar", "wchar", "cpus", "memory", "native_id", "workdir"),
    *("script", "container", "hostname", "error_action", "hash", "tag"),
]
WORKFLOW_KEYS = [
    *("start", "complete", "success", "errorMessage", "exitStatus", "projectName", "manifest"),
    *("commitId", "nextflow"),
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("event", ["process_completed", "error", "started", "completed"])
def test_a_value_of_the_wrong_kind_counts_as_none(event: str, value: Any) -> None:
    trace = {"task_id": 1, "name": "a", "status": "FAILED"}
    for key in TRACE_KEYS:
        for message in read(post(event, trace=trace | {key: value})):
            check(message)
    workflow = dict.fromkeys(WORKFLOW_KEYS, value)
    for message in read(
        post(event, utcTime=value, metadata={"workflow": workflow, "params": value})
    ):
        check(message)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
_EVENTS = st.sampled_from(
    ["started", "completed", "error", "process_submitted", "process_started", "process_completed"]
)


@settings(max_examples=200, deadline=None)
@given(
    event=_EVENTS | _JSON,
    trace=st.dictionaries(st.sampled_from(TRACE_KEYS), _JSON) | _JSON,
    metadata=_JSON,
    junk=st.binary(max_size=64),
)
def test_whatever_comes_is_messages_or_one_of_our_errors(
    event: Any, trace: Any, metadata: Any, junk: bytes
) -> None:
    names = Names()
    body = {"runName": "r", "event": event, "trace": trace, "metadata": metadata}
    for text in (json.dumps(body).encode(), junk, json.dumps(body).encode()[:-7] + junk):
        try:
            messages = read_weblog(text, names, RECEIVED)
        except TocsinError:
            continue
        for message in messages:
            check(message)


def test_retries_that_never_come_are_not_waited_for_without_end() -> None:
    names = Names(tasks_max=100)

    for number in range(1_000):
        names.activity("r", 1, f"align {number}", 1)
        names.will_retry("r", f"align {number}", f"align {number}", 1)
        names.will_retry("r", "align", "align", number)

    assert sum(map(len, names._runs["r"].waiting.values())) <= 100


def test_of_activities_of_one_name_the_one_that_failed_first_is_tried_again_first() -> None:
    names = Names()
    first, second = (names.activity("r", task, "align", 1) for task in (1, 2))
    for activity in (first, second, first):
        names.will_retry("r", activity, "align", 1)

    assert [names.activity("r", task, "align", 2) for task in (3, 4)] == [first, second]
