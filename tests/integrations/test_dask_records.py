"""What Dask's scheduler says, from a recording and made up, as messages."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from integrations.engine_room import ends, recording, run_ends, with_concept
from tocsin.integrations.dask_records import IDLE_AFTER_S, DaskRuns, GraphTask
from tocsin.ontology import built_in
from tocsin.wire.blackboard.messages import Message

CLIENT = "Client-1"


def graph_tasks(record: dict[str, Any]) -> list[GraphTask]:
    return [
        GraphTask(key, key.partition("-")[0], tuple(record["deps"][key])) for key in record["tasks"]
    ]


def received(runs: DaskRuns, record: dict[str, Any]) -> list[Message]:
    at_s = record["ts"]
    if record["event"] == "update_graph":
        return runs.graph(record["client"], graph_tasks(record), at_s, {"PlannedCores": "2"})
    if record["event"] == "remove_worker":
        return runs.worker(record["worker"], at_s, is_here=False, pairs={})
    if record["event"] != "transition":
        return []
    texts = {"exception_text": record["exc"], "traceback_text": record["tb"]}
    return runs.transition(
        record["key"], record["start"], record["finish"], at_s, {**record, **texts}
    )


def replayed(runs: DaskRuns | None = None) -> list[Message]:
    runs = runs or DaskRuns("demo")
    records = recording("dask_scheduler_plugin.jsonl")
    messages = [m for record in records for m in received(runs, record)]
    at_s = records[-1]["ts"]
    return [*messages, *runs.plans(at_s), *runs.closed(at_s)]


def begun(*keys: str, runs: DaskRuns | None = None) -> DaskRuns:
    runs = runs or DaskRuns()
    runs.graph(CLIENT, [GraphTask(key, "a") for key in keys], 1.0, {})
    return runs


def moved(runs: DaskRuns, key: str, *states: str, stimulus: str = "") -> list[Message]:
    details = {"stimulus_id": stimulus}
    return [
        message
        for start, finish in pairwise(states)
        for message in runs.transition(key, start, finish, 2.0, details)
    ]


def test_every_task_of_the_recording_ends_as_dask_says() -> None:
    messages = replayed()

    by_type: dict[str, list[str]] = {}
    for (key, attempt), concept in ends(messages).items():
        assert attempt == 1
        by_type.setdefault(f"{key.partition('-')[0]} {concept}", []).append(key)
    assert {kind: len(keys) for kind, keys in by_type.items()} == {
        "gen ActivitySucceeded": 6,
        "srt ActivitySucceeded": 5,
        "tot ActivitySucceeded": 1,
        "bad ActivityFailed": 1,
        "srt ActivitySkipped": 1,
        "user ActivitySucceeded": 1,
    }


def test_times_of_computing_are_the_workers_and_the_schedulers_goes_with_them() -> None:
    messages = replayed()

    done = with_concept(messages, "ActivitySucceeded")[0].pairs
    assert done["ActivityExecuting"] == "2026-11-15T18:19:47.044Z"
    assert done["ActivitySucceeded"] == "2026-11-15T18:19:47.346Z"
    assert done["ReceivedTime"] == "2026-11-15T18:19:47.336Z"  # before it was done, by that clock
    assert done["Duration"] == "0.30235"
    assert done["OutputBytes"] == "36056"


def test_each_graph_adds_to_the_plan_of_the_session() -> None:
    messages = replayed()

    plan = [task for m in with_concept(messages, "ActivityPlan") for task in _tasks(m)]
    total = next(task for task in plan if task["type"] == "tot")
    assert len(total["parents"]) == 5
    assert with_concept(messages, "ActivityPlan")[-1].pairs["PlannedActivities"] == str(len(plan))


def _tasks(message: Message) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(message.pairs["ActivityPlan"])
    return tasks


def test_every_pair_is_a_concept_and_every_id_is_new() -> None:
    messages = replayed()

    assert len({message.id for message in messages}) == len(messages)
    assert {key for message in messages for key in message.pairs} <= built_in().concepts.keys()


def test_a_task_that_raised_and_is_tried_again_has_a_second_attempt() -> None:
    runs = begun("x")

    reported = moved(
        runs, "x", "waiting", "processing", "released", "waiting", stimulus="task-erred-1"
    )
    reported += moved(runs, "x", "waiting", "processing", "memory")

    assert ends(reported) == {("x", 1): "ActivityRetrying", ("x", 2): "ActivitySucceeded"}


def test_a_result_that_is_lost_with_its_worker_is_computed_by_another_attempt() -> None:
    runs = begun("x")

    reported = moved(
        runs, "x", "waiting", "processing", "memory", "released", "waiting", "processing"
    )
    reported += moved(runs, "x", "processing", "memory")

    assert ends(reported) == {("x", 1): "ActivitySucceeded", ("x", 2): "ActivitySucceeded"}


def test_a_task_that_is_let_go_before_its_end_is_cancelled() -> None:
    runs = begun("x")

    reported = moved(runs, "x", "waiting", "processing", "released", "forgotten", stimulus="cancel")

    assert ends(reported) == {("x", 1): "ActivityCancelled"}
    assert run_ends(runs.closed(3.0)) == ["WorkflowCompleted"]


def test_the_same_key_after_it_was_forgotten_is_another_attempt_and_no_repetition() -> None:
    runs = begun("x")
    reported = moved(runs, "x", "waiting", "processing", "memory", "forgotten")

    begun("x", runs=runs)
    reported += moved(runs, "x", "waiting", "processing", "memory")

    assert ends(reported) == {("x", 1): "ActivitySucceeded", ("x", 2): "ActivitySucceeded"}


def test_a_client_that_leaves_work_undone_aborts_its_run() -> None:
    runs = begun("x", "y")
    moved(runs, "x", "waiting", "processing", "memory")
    moved(runs, "y", "waiting", "processing", "released", "forgotten", stimulus="remove-client-1")

    assert run_ends(runs.client_gone(CLIENT, 3.0)) == ["WorkflowAborted"]


def test_a_session_with_nothing_to_do_is_idle_until_the_next_graph() -> None:
    runs = begun("x")
    moved(runs, "x", "waiting", "processing", "memory")

    assert runs.idle(2.0 + IDLE_AFTER_S / 2) == []
    [idle] = runs.idle(2.0 + IDLE_AFTER_S)
    [resumed] = runs.graph(CLIENT, [GraphTask("y", "a")], 9.0, {})

    assert "WorkflowIdle" in idle.pairs
    assert "WorkflowResumed" in resumed.pairs


def test_a_computation_ends_with_its_last_task_and_a_result_that_is_there_is_cached() -> None:
    runs = begun("x", runs=DaskRuns(per="computation"))

    first = moved(runs, "x", "waiting", "processing", "memory")
    second = runs.graph(CLIENT, [GraphTask("x", "a", is_done=True), GraphTask("y", "a")], 3.0, {})

    assert run_ends(first) == ["WorkflowCompleted"]
    assert ends(second) == {("x", 1): "ActivityCached"}
    assert first[-1].pairs["RunId"] != second[0].pairs["RunId"]


def test_what_runs_for_long_is_reported_while_it_runs_and_once() -> None:
    runs = begun("x")
    moved(runs, "x", "waiting", "processing")

    [running] = runs.executing("x", 1.5, "tcp://w:1")

    assert running.pairs["ActivityExecuting"] == "1970-01-01T00:00:01.500Z"
    assert runs.executing("x", 1.6, "tcp://w:1") == []


STATES = [
    "released",
    "waiting",
    "queued",
    "no-worker",
    "processing",
    "memory",
    "erred",
    "forgotten",
]
steps = st.tuples(st.sampled_from("xyz"), st.sampled_from(STATES), st.sampled_from(STATES))


@given(walk=st.lists(steps, max_size=40), odd=st.dictionaries(st.text(max_size=9), st.integers()))
def test_no_transition_raises_or_ends_an_attempt_twice(
    walk: list[tuple[str, str, str]], odd: dict[str, int]
) -> None:
    runs = begun("x", "y")
    messages: list[Message] = []

    for key, start, finish in walk:
        messages += runs.transition(key, start, finish, 2.0, {"startstops": 3, **odd})
    messages += runs.closed(3.0)

    ends(messages)
    assert len(run_ends(messages)) == 1
    assert len({message.id for message in messages}) == len(messages)
