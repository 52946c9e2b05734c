"""Stampede events without end, unknown, or hostile: what is remembered of them is bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stampede import event, job, read

from engine_streams import RECEIVED, check, fold
from tocsin.errors import BadMessage, TocsinError
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.pegasus import Stampede
from tocsin.wire.pegasus.jobs import Runs


def test_jobs_beyond_what_is_remembered_still_come_to_their_end() -> None:
    stampede = Stampede(Runs(jobs_max=10))
    messages: list[Message] = []
    for n in range(50):
        for kind in ("main.start", "main.end"):
            record = event(f"job_inst.{kind}", n, job_id=f"j{n}", job_inst_id=n, status=0)
            messages += stampede.read(record, RECEIVED)

    (run,) = fold(messages).values()

    assert run.counts == {"succeeded": 50}


def test_a_kind_that_is_not_known_is_counted() -> None:
    stampede = Stampede()

    assert stampede.read(event("job_inst.dreaming"), RECEIVED) == []
    assert stampede.unknown == 1


@pytest.mark.parametrize(
    "record",
    [
        b'{"event": "stampede.xwf.start"}',
        b'{"event": "stampede.xwf.start", "xwf_id": []}',
        b'{"event": "stampede.job_inst.main.start", "xwf_id": "u"}',
        b"event=stampede.inv.end job.id=j",
    ],
)
def test_an_event_that_does_not_say_of_what_it_tells_is_refused(record: bytes) -> None:
    with pytest.raises(BadMessage):
        read(record)


KINDS = [
    *("wf.plan", "xwf.start", "xwf.end", "xwf.map.subwf_job", "static.end", "task.info"),
    *("job.info", "job.edge", "wf.map.task_job", "task.monitoring", "inv.end"),
    *("job_inst.submit.end", "job_inst.held.start", "job_inst.main.start", "job_inst.main.term"),
    *("job_inst.main.end", "job_inst.composite", "job_inst.post.start", "job_inst.post.end"),
    *("job_inst.host.info", "job_inst.image.info", "job_inst.abort.info", "job_inst.pre.end"),
]
FIELDS = [
    *("ts", "job_inst_id", "inv_id", "status", "exitcode", "reason", "restart_count", "dur"),
    *("start_time", "remote_cpu_time", "maxrss", "hostname", "argv", "executable", "payload"),
    *("task_id", "transformation", "max_retries", "type_desc", "parent_job_id", "child_job_id"),
    *("stdout_text", "stderr_text", "dax_label", "dag", "root_xwf_id", "subwf_id", "size"),
]
_VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(["1", "-1", "512", "1e400", "2012-03-13T12:35:36Z", "x" * 5_000, 10**400])
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=4), st.integers(), max_size=2)
)


@settings(max_examples=200, deadline=None)
@given(
    events=st.lists(
        st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), _VALUES)),
        max_size=12,
    ),
    junk=st.binary(max_size=64),
)
def test_whatever_comes_is_messages_or_one_of_our_errors(
    events: list[tuple[str, dict[str, Any]]], junk: bytes
) -> None:
    stampede = Stampede()
    for kind, fields in events:
        record = event(kind, **{"job_id": "j", **fields})
        for text in (record, junk, record[:-5] + junk):
            try:
                messages = stampede.read(text, RECEIVED)
            except TocsinError:
                continue
            for message in messages:
                check(message)


def test_plans_that_are_never_told_do_not_fill_the_memory() -> None:
    runs = Runs(plan_max=100)
    stampede = Stampede(runs)
    for run in range(10):
        id = f"u-{run}"
        for number in range(60):
            task = event("task.info", xwf_id=id, task_id=f"t{number}", transformation="x")
            edge = event("job.edge", xwf_id=id, parent_job_id=f"j{number}", child_job_id="end")
            read(task, edge, stampede=stampede)

    held = [runs.run(f"u-{number}") for number in range(10)]
    assert sum(len(run.transformations) + run.edges for run in held) <= 100
    assert held[-1].edges == len(held[-1].jobs["end"].parents) > 0

    reported = read(event("static.end", xwf_id="u-9"), stampede=stampede)

    assert reported[0].pairs["PlannedActivities"] == "1"
    assert not held[-1].edges
    assert not held[-1].transformations


def test_of_a_job_that_is_tried_without_end_little_is_remembered() -> None:
    runs = Runs()
    stampede = Stampede(runs)

    for number in range(1, 200):
        read(job("held.start", number=number, reason="x" * 4_000), stampede=stampede)
    [ended] = read(job("main.end", number=199, status=-1, exitcode=256), stampede=stampede)

    assert ended.pairs["Attempt"] == "199"
    assert ended.pairs["ErrorMessage"] == "x" * 4_000
    assert len(runs.run("u-1").jobs["align_ID1"].tries) == 10
