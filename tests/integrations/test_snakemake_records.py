"""Snakemake's log records, from recordings and made up, as messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.engine_room import ends, recording, run_ends, with_concept
from served import ROOT
from tocsin.client.tracking.run import PLAN_CHARS_MAX
from tocsin.integrations.files import NoFiles
from tocsin.integrations.snakemake.log_text import paths_in
from tocsin.integrations.snakemake.plan import PlannedJob
from tocsin.integrations.snakemake.records import SnakemakeRun
from tocsin.ontology import built_in
from tocsin.wire.blackboard.messages import Message

REPEATS = ROOT.parent / "shared" / "data" / "workflows" / "engines" / "snakemake_repeats"


def new_run(**given: Any) -> SnakemakeRun:
    return SnakemakeRun(files_in=lambda directory: NoFiles(), **given)


def replayed(records: list[dict[str, Any]], run: SnakemakeRun | None = None) -> list[Message]:
    run = run or new_run()
    messages: list[Message] = []
    at_s = 0.0
    for record in records:
        at_s = record.get("ts", at_s)
        if record["event"] == "HANDLER_CLOSE":
            continue
        messages += run.handle({**record, "created": at_s})
    return messages + run.closed(at_s)


def record(event: str | None, at_s: float = 0.0, **fields: Any) -> dict[str, Any]:
    return {"event": event, "ts": at_s, "msg": "", **fields}


STARTED = record(
    "workflow_started", workflow_id="r", snakefile_main="/w/align/Snakefile", rundir="/w/align"
)


def job(number: int, **fields: Any) -> dict[str, Any]:
    return record("job_info", jobid=number, rule_name="a", input=[], output=[], **fields)


def test_a_retry_repeats_the_jobs_number_and_is_another_attempt() -> None:
    messages = replayed(recording("snakemake9_fail_retry.jsonl"))

    assert ends(messages) == {
        ("2", 1): "ActivitySucceeded",
        ("4", 1): "ActivitySucceeded",
        ("1", 1): "ActivityRetrying",
        ("3", 1): "ActivityRetrying",
        ("1", 2): "ActivityFailed",
        ("3", 2): "ActivityFailed",
    }
    assert run_ends(messages) == ["WorkflowTerminated"]


def test_a_failure_says_which_command_ended_how() -> None:
    messages = replayed(recording("snakemake9_fail_retry.jsonl"))

    [failed] = [m for m in with_concept(messages, "ActivityFailed") if m.pairs["ActivityId"] == "1"]
    assert failed.pairs["ExitCode"] == "3"
    assert failed.pairs["CommandLine"] == "echo 'disk quota exceeded' > bad1.log; exit 3"
    assert "bad1.log" in failed.pairs["ErrorTrace"]
    assert failed.pairs["LogFile"] == "bad1.log"


def test_what_is_sent_twice_has_one_id_and_another_run_of_the_same_id_has_others() -> None:
    once = [STARTED, job(1), record("job_finished", job_id=1)]
    later = [{**each, "ts": 86_400.0} for each in once]

    first, again, second = (
        [message.id for message in replayed(records, new_run(run_id="nightly"))]
        for records in (once, once, later)
    )

    assert first == again
    assert set(first).isdisjoint(second)


def test_a_planned_checkpoint_is_reported_as_one() -> None:
    jobs = (PlannedJob("1", "split", checkpoint=True), PlannedJob("2", "all", ("1",)))

    messages = replayed([STARTED, record("run_info", stats={}, tocsin_planned=jobs)])

    (plan,) = with_concept(messages, "ActivityPlan")
    reported = json.loads(plan.pairs["ActivityPlan"])
    assert [task.get("checkpoint") for task in reported] == [True, None]


def test_a_total_grows_when_a_checkpoint_is_passed() -> None:
    messages = replayed(recording("snakemake9_ok_checkpoint.jsonl"))

    totals = [m.pairs["PlannedActivities"] for m in with_concept(messages, "PlannedActivities")]
    assert totals == ["9", "11"]
    assert len(ends(messages)) == 11
    assert run_ends(messages) == ["WorkflowCompleted"]


def test_parents_are_those_that_make_the_input_even_as_files_of_a_directory() -> None:
    messages = replayed(recording("snakemake9_ok_checkpoint.jsonl"))

    parents = {
        m.pairs["ActivityId"]: json.loads(m.pairs.get("ParentActivity", "[]"))
        for m in with_concept(messages, "ActivityExecuting")
    }
    assert parents["2"] == ["3", "5", "7"]
    assert parents["11"] == parents["12"] == ["2"]  # which makes the directory parts/
    assert parents["0"] == ["1"]


def test_every_pair_is_a_concept_and_every_id_is_new() -> None:
    for name in ("snakemake9_fail_retry.jsonl", "snakemake9_ok_checkpoint.jsonl"):
        messages = replayed(recording(name))

        assert len({message.id for message in messages}) == len(messages)
        assert {key for message in messages for key in message.pairs} <= built_in().concepts.keys()


def test_the_same_records_make_the_same_messages() -> None:
    records = recording("snakemake9_fail_retry.jsonl")

    assert replayed(records) == replayed(records)


def test_a_run_is_named_after_its_directory_unless_somebody_names_it() -> None:
    [started, _] = replayed([STARTED])
    [renamed, _] = replayed([STARTED], new_run(name="nightly", run_id="r7"))

    assert (started.pairs["WorkflowName"], started.pairs["RunId"]) == ("align", "r")
    assert (renamed.pairs["WorkflowName"], renamed.pairs["RunId"]) == ("nightly", "r7")


def test_nothing_is_reported_a_process_that_never_started_a_workflow() -> None:
    assert replayed([record(None), job(1), record("job_finished", job_id=1)]) == []


def test_with_a_plan_a_last_failure_is_reported_at_once_and_what_waited_for_it_is_skipped() -> None:
    plan = (PlannedJob("1", "a"), PlannedJob("2", "b", ("1",)), PlannedJob("3", "all", ("2",)))
    run = new_run()
    run.handle(STARTED)
    run.handle(record("run_info", tocsin_planned=plan))
    run.handle(job(1))

    [failed] = run.handle(record("job_error", jobid=1, rule_name="a"))
    messages = run.closed(9.0)

    assert "ActivityFailed" in failed.pairs
    assert ends(messages) == {("2", 1): "ActivitySkipped", ("3", 1): "ActivitySkipped"}


def test_a_retry_that_was_promised_and_never_came_is_a_failure() -> None:
    run = new_run()
    run.handle(STARTED)
    run.handle(record("run_info", tocsin_planned=(PlannedJob("1", "a", retries=3),)))
    run.handle(job(1))

    [retrying] = run.handle(record("job_error", jobid=1, rule_name="a"))
    messages = run.closed(9.0, raised=RuntimeError("another job failed"))

    assert "ActivityRetrying" in retrying.pairs
    assert ends(messages) == {("1", 1): "ActivityFailed"}


def test_a_job_that_a_checkpoint_made_needless_is_skipped_and_no_longer_counted() -> None:
    run = new_run()
    run.handle(STARTED)
    run.handle(record("run_info", tocsin_planned=(PlannedJob("1", "a"), PlannedJob("2", "b"))))
    run.handle(job(1))

    messages = run.handle(record("job_started", tocsin_planned=(PlannedJob("3", "c"),)))

    assert messages[0].pairs["PlannedActivities"] == "2"
    assert ends(messages) == {("2", 1): "ActivitySkipped"}


def test_a_big_plan_comes_in_pieces() -> None:
    run = new_run()
    run.handle(STARTED)

    plan = tuple(PlannedJob(str(n), "a") for n in range(4_500))
    messages = run.handle(record("run_info", tocsin_planned=plan))

    assert [len(json.loads(m.pairs["ActivityPlan"])) for m in messages] == [2_000, 2_000, 500]
    assert {m.pairs["PlannedActivities"] for m in messages} == {"4500"}


def test_a_plan_in_which_all_wait_for_all_fits_messages_too() -> None:
    run = new_run()
    run.handle(STARTED)
    many = tuple(f"{n:020}" for n in range(20_000))

    plan = tuple(PlannedJob(str(n), "a", many[: 1_000 * n]) for n in range(21))
    messages = run.handle(record("run_info", tocsin_planned=plan))

    assert max(len(m.pairs["ActivityPlan"]) for m in messages) <= PLAN_CHARS_MAX
    reported = {t["id"] for m in messages for t in json.loads(m.pairs["ActivityPlan"])}
    assert reported == {job.id for job in plan}


def test_remarks_for_people_are_no_part_of_a_files_name() -> None:
    names = [
        "a.fifo (pipe)",
        "b (1)",
        "c (update, send to storage)",
        "d (in storage)",
        "<TBD>",
        "e ()",
    ]

    assert paths_in(names) == ("a.fifo", "b (1)", "c", "d", "e")


def test_an_exception_belongs_to_the_job_of_the_same_thread() -> None:
    run = new_run()
    for each in (STARTED, job(1), job(2)):
        run.handle(each)
    run.handle(record("error", exception="RuleException", msg="exit status 1", thread=11))
    run.handle(
        {**record("error", exception="RuleException", thread=22), "msg": "non-zero exit status 2"}
    )
    run.handle(record("job_error", jobid=2, thread=22))
    run.handle(record("job_error", jobid=1, thread=11))

    failed = with_concept(run.closed(1.0), "ActivityFailed")

    assert {m.pairs["ActivityId"]: m.pairs.get("ExitCode") for m in failed} == {"2": "2", "1": None}


def test_who_interrupts_a_run_aborts_it_and_what_ran_is_cancelled() -> None:
    run = new_run()
    run.handle(STARTED)
    run.handle(job(1))
    run.handle({**record(None), "msg": "Terminating processes on user request, this might take"})

    messages = run.closed(5.0)

    assert ends(messages) == {("1", 1): "ActivityCancelled"}
    assert run_ends(messages) == ["WorkflowAborted"]


def test_a_second_execution_in_one_process_is_a_second_run() -> None:
    second = {**STARTED, "workflow_id": "r2"}

    messages = replayed([STARTED, job(1), record("job_finished", job_id=1), second, job(1)])

    assert run_ends(messages) == ["WorkflowCompleted", "WorkflowCompleted"]
    assert [m.pairs["RunId"] for m in with_concept(messages, "ActivityExecuting")] == ["r", "r2"]


EVENTS = [
    "",
    "workflow_started",
    "run_info",
    "job_info",
    "job_started",
    "job_finished",
    "job_error",
]
EVENTS += ["error", "progress", "resources_info", "rulegraph", "group_info", "nonsense"]
FIELDS = ["jobid", "job_id", "rule_name", "input", "output", "log", "stats", "total", "created"]
FIELDS += ["msg", "shellcmd", "benchmark", "resources", "threads", "cores", "nodes", "rundir"]
FIELDS += ["snakefile_main", "thread", "exception", "workflow_id", "local"]
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values |= st.lists(st.text(max_size=5), max_size=3)
values |= st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=3), max_size=3)
anything = st.builds(
    lambda event, fields: {"event": event, **fields},
    st.sampled_from(EVENTS),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=8),
)


@given(records=st.lists(anything, max_size=12))
def test_no_record_whatever_it_holds_raises(records: list[dict[str, Any]]) -> None:
    run = new_run()
    run.handle(STARTED)

    for each in records:
        run.handle(each)
    messages = run.closed(1.0)

    assert len(run_ends(messages)) == 1


@given(data=st.data())
def test_records_that_are_lost_or_doubled_end_no_attempt_twice(data: st.DataObject) -> None:
    records = recording("snakemake9_fail_retry.jsonl")
    times = data.draw(st.lists(st.integers(0, 2), min_size=len(records), max_size=len(records)))
    kept = [each for each, n in zip(records, times, strict=True) for _ in range(n)]
    begun = [each for each in records if each["event"] == "workflow_started"]

    messages = replayed(begun + [each for each in kept if each not in begun])

    ended = [m for m in {m.id: m for m in messages}.values() if "ActivityRetrying" not in m.pairs]
    ends(ended)
    assert len(run_ends(messages)) == 1


@pytest.mark.skipif(not REPEATS.is_dir(), reason="the recordings of repeated runs are not here")
@pytest.mark.parametrize("path", sorted(REPEATS.glob("ev_*.jsonl")), ids=lambda path: path.stem)
def test_repeated_runs_of_one_workflow_end_as_they_were_recorded(path: Path) -> None:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    finished = {str(each["job_id"]) for each in records if each["event"] == "job_finished"}

    messages = replayed(records)

    assert {id for id, _ in ends(messages)} == finished
    assert run_ends(messages) == ["WorkflowCompleted"]
