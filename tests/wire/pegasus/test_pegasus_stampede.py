"""Stampede events come to what the workflow itself says that it came to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from stampede import event, job, read

from engine_streams import RunSeen, fold, shared
from tocsin.monitor.states import attempt_times
from tocsin.wire.pegasus import RecordSplitter, Stampede
from tocsin.wire.pegasus.framing import read_record

FAILED = "pegasus_monitord_process_wf_failure.jsonl"
SKEWED = "pegasus_monitord_process_wf_failure_TZSKEW8h.jsonl"
HELD = "pegasus_monitord_sample_wf_held.jsonl"
INNER = "pegasus_monitord_hierarchical_wf_failure.jsonl"


def records_of(path: Path) -> list[bytes]:
    return list(RecordSplitter().receive(path.read_bytes()))


def recorded(*parts: str) -> tuple[RunSeen, list[dict[str, Any]]]:
    """The one run of a recorded stream, and the stream."""
    records = records_of(shared(*parts))
    (run,) = fold(read(*records)).values()
    return run, [read_record(record) for record in records]


def the_run(*records: bytes) -> RunSeen:
    (run,) = fold(read(*records)).values()
    return run


def expected(stream: list[dict[str, Any]]) -> dict[str, str]:
    """The end of each job as its own last events tell it: planned unless it was ever submitted."""
    states = {e["job_id"]: "planned" for e in stream if e["event"] == "stampede.job.info"}
    for each in stream:
        if each["event"] in ("stampede.job_inst.main.end", "stampede.job_inst.post.end"):
            failed = int(each["status"]) != 0 or int(each["exitcode"]) != 0
            states[each["job_id"]] = "failed" if failed else "succeeded"
    return states


@pytest.mark.parametrize(
    "parts",
    [
        ("engines", FAILED),
        ("engines", SKEWED),
        ("engines", HELD),
        ("engines", INNER),
        ("traces", "pegasus_stampede", "blackdiamond.bp"),
        ("traces", "pegasus_stampede", "montage-1.0.bp"),
    ],
    ids=lambda parts: parts[-1],
)
def test_a_recorded_run_comes_to_what_its_stream_says(parts: tuple[str, ...]) -> None:
    run, stream = recorded(*parts)
    status = next(int(e["status"]) for e in stream if e["event"] == "stampede.xwf.end")
    submissions = {
        (e["job_id"], int(e["job_inst_id"])) for e in stream if e["event"].endswith("main.end")
    }

    assert run.state == ("failed" if status else "completed")
    assert run.states == expected(stream)
    assert run.reported("planned_total") == len(run.states)
    assert run.attempts == len(submissions)
    assert Counter(job for job, _ in submissions) == {
        id: len(tries) for id, tries in run.tries.items() if run.states[id] != "planned"
    }


def test_the_dag_is_told_with_its_edges() -> None:
    run, stream = recorded("traces", "pegasus_stampede", "montage-1.0.bp")
    edges = {
        (e["parent_job_id"], e["child_job_id"]) for e in stream if e["event"].endswith("job.edge")
    }

    reported = {(parent, id) for id in run.tries for parent in run.tries[id][1].get("parents", ())}

    assert reported == edges


def test_a_job_is_of_the_type_of_its_task_and_a_cluster_is_not() -> None:
    run, _ = recorded("traces", "pegasus_stampede", "montage-1.0.bp")

    types = Counter(run.of(id)["type"][2] for id in run.tries)

    assert types["cluster of mDiffFit:3.3"] + types["cluster of mProjectPP:3.3"] > 5
    assert types["mConcatFit:3.3"] == 1
    assert types["create-dir"] == 1


def test_a_held_job_says_why_and_that_is_why_it_failed() -> None:
    records = records_of(shared("engines", HELD))
    at = next(n for n, record in enumerate(records) if b"held.start" in record)

    (held,) = fold(read(*records[: at + 1])).values()
    (run,) = fold(read(*records)).values()

    assert held.states["chebi_drug_loader_ID0000001"] == "held"
    assert run.states["chebi_drug_loader_ID0000001"] == "failed"
    row = run.of("chebi_drug_loader_ID0000001")
    assert row["error"][2].startswith("Transfer output files failure at execution point")
    assert row["exit_code"][2] == 1


def test_retries_are_numbered_by_job_though_pegasus_numbers_them_through_the_workflow() -> None:
    run, _ = recorded("engines", FAILED)

    assert sorted(run.tries["ls_ID0000001"]) == [1, 2]
    assert run.of("ls_ID0000001")["exit_code"][2] == 2  # of 512, as wait(2) has it


def test_two_clocks_go_on_and_the_monitor_sees_that_they_are_eight_hours_apart() -> None:
    straight, _ = recorded("engines", FAILED)
    skewed, _ = recorded("engines", SKEWED)

    assert straight.anomalies == set()
    assert skewed.anomalies == {"zone skew"}
    assert skewed.states == straight.states
    for id, tries in straight.tries.items():
        for attempt, row in tries.items():
            durations = [attempt_times(r).duration_s for r in (row, skewed.tries[id][attempt])]
            assert durations[0] == durations[1]


def test_what_tasks_used_is_added_up_in_their_job() -> None:
    run, stream = recorded("traces", "pegasus_stampede", "montage-1.0.bp")
    clustered = Counter(
        e["job_id"] for e in stream if e["event"] == "stampede.inv.end" and int(e["inv_id"]) > 0
    )
    id, tasks = clustered.most_common(1)[0]

    assert tasks > 5
    seconds = sum(
        float(e.get("remote_cpu_time", 0))
        for e in stream
        if e["event"] == "stampede.inv.end" and e["job_id"] == id and int(e["inv_id"]) > 0
    )
    assert run.of(id)["use.CpuSeconds"] == pytest.approx(seconds, abs=1e-3)


def test_the_same_stream_has_the_same_ids_each_once() -> None:
    records = records_of(shared("engines", INNER))
    stampede = Stampede()

    first, again = read(*records, stampede=stampede), read(*records)

    assert [m.id for m in first] == [m.id for m in again]
    assert len({m.id for m in first}) == len(first)


def test_a_broker_that_forgot_everything_in_the_middle_still_knows_how_it_ended() -> None:
    records = records_of(shared("engines", INNER))
    (straight,) = fold(read(*records)).values()
    ended = {id: state for id, state in straight.states.items() if state != "planned"}

    for at in range(0, len(records), 9):
        (run,) = fold([*read(*records[:at]), *read(*records[at:])]).values()
        assert {id: run.states[id] for id in ended} == ended
        assert run.state == "failed"


def test_a_stream_with_nothing_but_a_job_in_it_is_enough() -> None:
    run = the_run(
        job("submit.end", 1, status=0),
        job("main.start", 2),
        job("main.term", 5, status=0),
        job("main.end", 6, status=0, exitcode="0"),
    )

    assert run.states == {"align_ID1": "succeeded"}
    assert attempt_times(run.of("align_ID1")).duration_s == 3  # until it terminated


@pytest.mark.parametrize("post_comes", ["before the end is told", "after it"])
@pytest.mark.parametrize(
    ("main", "post", "state"),
    [(0, 0, "succeeded"), (0, 1, "failed"), (1, 0, "succeeded"), (1, 1, "failed")],
)
def test_a_script_behind_the_job_decides(main: int, post: int, state: str, post_comes: str) -> None:
    began = job("post.start", 6)
    end = job("main.end", 5, status=-main, exitcode=256 * main)
    middle = [began, end] if post_comes.startswith("before") else [end, began]

    run = the_run(*middle, job("post.end", 8, status=-post, exitcode=256 * post))

    assert run.states == {"align_ID1": state}


def test_a_job_that_may_be_tried_again_is_retrying_until_it_is() -> None:
    info = event("job.info", job_id="align_ID1", type_desc="compute", max_retries="2")
    failed = [job("main.end", n, n, status=-1, exitcode=256) for n in (3, 7, 9)]

    assert the_run(info, failed[0]).states == {"align_ID1": "retrying"}
    assert the_run(info, *failed[:2], job("main.start", 8, 9)).states == {"align_ID1": "running"}
    assert the_run(info, *failed).states == {"align_ID1": "failed"}
    over = the_run(info, failed[0], event("xwf.end", 10, status=1))
    assert over.states == {"align_ID1": "failed"}  # there will be no other try


def test_a_job_that_was_released_waits_again() -> None:
    records = [job("main.start", 1), job("held.start", 2, reason="x"), job("held.end", 3)]

    assert the_run(*records[:2]).states == {"align_ID1": "held"}
    assert the_run(*records).states == {"align_ID1": "queued"}


def test_a_workflow_that_was_restarted_is_the_same_run_and_runs_again() -> None:
    records = [
        event("xwf.start", 0, restart_count=0),
        event("xwf.end", 9, restart_count=0, status=1),
        event("xwf.start", 100, restart_count=1),
        event("xwf.end", 200, restart_count=1, status=0),
    ]

    assert [the_run(*records[:n]).state for n in (1, 2, 3, 4)] == [
        *("running", "failed", "running", "completed")
    ]


def test_a_workflow_in_a_job_of_another_has_it_as_its_parent() -> None:
    plan = event("wf.plan", xwf_id="u-2", parent_xwf_id="u-1", dax_label="inner")
    map_ = event("xwf.map.subwf_job", subwf_id="u-3", job_id="j", job_inst_id=1)
    own = event("wf.plan", root_xwf_id="u-1", dax_label="outer", argv="--submit", user="ada")

    runs = fold(read(own, plan, map_))

    assert {id: run.reported("parent") for id, run in runs.items()} == {
        "u-1": None,
        "u-2": "u-1",
        "u-3": "u-1",
    }
    assert (runs["u-1"].reported("workflow"), runs["u-1"].reported("user")) == ("outer", "ada")
    assert runs["u-1"].reported("command") == "pegasus-plan --submit"


def test_a_big_plan_comes_in_messages_that_a_broker_takes() -> None:
    jobs = [event("job.info", job_id=f"j{n}", type_desc="compute") for n in range(5_000)]
    edges = [event("job.edge", parent_job_id=f"j{n}", child_job_id="j4999") for n in range(4_999)]

    messages = read(*jobs, *edges, event("static.end"))

    plans = [json.loads(message.pairs["ActivityPlan"]) for message in messages]
    assert len(plans) >= 3
    assert all(len(plan) <= 2_000 for plan in plans)
    assert sum(map(len, plans)) == 5_000
    (run,) = fold(messages).values()
    assert run.reported("planned_total") == 5_000
    assert run.counts == {"planned": 5_000}


def test_what_a_job_prints_is_shown_where_it_failed() -> None:
    end = {"status": -1, "exitcode": 256, "stdout_text": "a%0Ab", "stderr_text": "no%20disk%0A"}

    run = the_run(job("main.end", 3, **end))

    assert run.of("align_ID1")["log"][2] == "a\nb\nno disk\n"


def test_a_job_may_say_something_of_its_own() -> None:
    fields = {"monitoring_event": "metadata", "payload": {"a": 1}, "job_id": "align_ID1"}

    (message,) = read(event("task.monitoring", 4, **fields))

    assert (message.pairs["EventName"], message.pairs["EventData"]) == ("metadata", '{"a":1}')
    assert message.pairs["ActivityId"] == "align_ID1"


def test_a_plan_is_told_once_however_often_it_is_said_to_be_whole() -> None:
    stampede = Stampede()
    read(*(event("job.info", job_id=f"j{number}") for number in range(50)), stampede=stampede)

    reported = read(*[event("static.end")] * 100, stampede=stampede)

    assert [message.id for message in reported] == ["u-1/ActivityPlan/1"]
