"""OpenLineage events become runs with activities, as their producers meant them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_streams import RECEIVED, check, fold
from tocsin.errors import BadRequest, TocsinError, TooLarge
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.openlineage import read_batch, read_event

HERE = Path(__file__).parent
RECORDED = (HERE / "openlineage_from_airflow3.jsonl").read_bytes().splitlines()
LISTENED = [json.loads(line) for line in (HERE / "airflow3_listener.jsonl").open()]
DAG_RUN = "01a1e07a-0b6a-73f2-b261-f16502d62adb"
DAG, TASK, APP, QUERY = ("0000000d-dag", "0000000d-task", "0000000d-spark", "0000000d-query")


def read(*events: bytes) -> list[Message]:
    return [message for event in events for message in read_event(event, RECEIVED)]


def event(
    kind: str = "START",
    run: str = DAG,
    job: str = "etl",
    *,
    parent: tuple[str, str] | None = None,
    root: tuple[str, str] | None = None,
    job_type: tuple[str, str] | None = None,
    at: str = "2026-11-16T06:00:00Z",
    run_facets: Mapping[str, Any] | None = None,
    job_facets: Mapping[str, Any] | None = None,
    **more: Any,
) -> bytes:
    """An event as a client writes it, with these of all the facets that there are."""
    facets: dict[str, Any] = dict(run_facets or {})
    if parent is not None:
        facets["parent"] = {"run": {"runId": parent[0]}, "job": {"name": parent[1]}}
        if root is not None:
            facets["parent"]["root"] = {"run": {"runId": root[0]}, "job": {"name": root[1]}}
    of_job: dict[str, Any] = dict(job_facets or {})
    if job_type is not None:
        of_job["jobType"] = {"jobType": job_type[0], "integration": job_type[1]}
    reported = {
        "eventType": kind,
        "eventTime": at,
        "run": {"runId": run, "facets": facets},
        "job": {"namespace": "lab", "name": job, "facets": of_job},
        "producer": "https://example.org/test",
    }
    return json.dumps(reported | more).encode()


def airflow(task: str, attempt: int, retries: int, index: int = -1) -> dict[str, Any]:
    return {
        "airflow": {
            "taskInstance": {"try_number": attempt, "map_index": index},
            "task": {
                "task_id": task,
                "retries": retries,
                "upstream_task_ids": "['first', 'second']",
            },
        }
    }


def test_a_recorded_dag_run_comes_to_what_airflow_itself_told_its_listeners() -> None:
    ends = {"success": "succeeded", "failed": "failed"}
    listened = {
        reported["task_id"]
        + (f"[{reported['map_index']}]" if reported["map_index"] >= 0 else ""): ends[state]
        for reported in LISTENED
        if (state := reported["event"].removeprefix("on_task_instance_")) in ends
    }

    runs = fold(read(*RECORDED))

    assert list(runs) == [DAG_RUN]
    run = runs[DAG_RUN]
    assert run.states == listened
    assert run.state == "failed"
    assert LISTENED[-1]["event"] == "on_dag_run_failed"
    assert run.reported("workflow") == "demo"
    assert (run.reported("engine"), run.reported("engine_version")) == ("airflow", "3.3.2")
    assert run.of("bad")["error"][2] == "disk quota exceeded"
    assert run.of("bad")["trace"][2].endswith("ValueError: disk quota exceeded\n")
    assert run.of("bad")["parents"] == ["add"]
    assert run.anomalies == set()


def test_a_dag_run_whose_start_was_lost_began_when_its_end_says() -> None:
    (last,) = read(RECORDED[-1])

    assert last.pairs["WorkflowStarted"] == "2026-11-15T18:30:57.130Z"
    assert last.pairs["WorkflowTerminated"] == "2026-11-15T18:31:20.987Z"


def test_the_order_of_events_makes_no_difference() -> None:
    backwards = fold(read(*reversed(RECORDED)))[DAG_RUN]

    assert backwards.states == fold(read(*RECORDED))[DAG_RUN].states
    assert backwards.state == "failed"


@pytest.mark.parametrize(
    ("kind", "run_state", "activity_state"),
    [
        ("START", "running", "running"),
        ("COMPLETE", "completed", "succeeded"),
        ("FAIL", "failed", "failed"),
        ("ABORT", "aborted", "cancelled"),
    ],
)
def test_a_job_without_a_parent_is_a_run_with_one_activity(
    kind: str, run_state: str, activity_state: str
) -> None:
    (run,) = fold(read(event(kind))).values()

    assert run.state == run_state
    assert run.states == {"etl": activity_state}


def test_spark_inside_an_airflow_task_is_a_run_of_its_own_under_the_dag_run() -> None:
    above, root = (TASK, "etl.load"), (DAG, "etl")
    task = airflow("load", 1, 0)
    runs = fold(
        read(
            event(run=DAG, job_type=("DAG", "AIRFLOW")),
            event(run=TASK, job="etl.load", parent=root, root=root, run_facets=task),
            event(
                run=APP, job="load_app", parent=above, root=root, job_type=("APPLICATION", "SPARK")
            ),
            event(
                "COMPLETE",
                QUERY,
                "load_app.insert",
                parent=(APP, "load_app"),
                root=root,
                job_type=("SQL_JOB", "SPARK"),
            ),
        )
    )

    assert set(runs) == {DAG, APP}
    assert runs[DAG].states == {"load": "running"}
    assert runs[APP].reported("parent") == DAG
    assert list(runs[APP].states.values()) == ["succeeded"]
    (activity,) = runs[APP].states
    assert runs[APP].of(activity)["type"][2] == "insert"


def test_a_query_that_runs_twice_in_one_application_is_two_activities() -> None:
    of = {"parent": (APP, "app"), "job_type": ("SQL_JOB", "SPARK"), "job": "app.insert"}

    (run,) = fold(
        read(event("COMPLETE", "q-000000000001", **of), event("COMPLETE", "q-000000000002", **of))
    ).values()

    assert run.counts == {"succeeded": 2}


def test_dbt_models_are_activities_of_the_invocation_and_called_by_their_names() -> None:
    models = [
        event(
            "COMPLETE", f"m{n}", f"shop.model{n}", parent=("d1", "shop"), job_type=("MODEL", "DBT")
        )
        for n in range(3)
    ]
    whole = event("COMPLETE", "d1", "shop", job_type=("JOB", "DBT"))

    (run,) = fold(read(*models, whole)).values()

    assert run.state == "completed"
    assert run.states == dict.fromkeys(("model0", "model1", "model2"), "succeeded")


def test_a_try_that_failed_is_tried_again_while_airflow_has_tries_left() -> None:
    of = {"job": "etl.load", "parent": (DAG, "etl")}
    tries = [
        event("FAIL", "t1", run_facets=airflow("load", 1, retries=1), **of),
        event("START", "t2", run_facets=airflow("load", 2, retries=1), **of),
    ]

    (run,) = fold(read(tries[0])).values()
    assert run.states == {"load": "retrying"}
    (run,) = fold(read(*tries)).values()
    assert run.states == {"load": "running"}
    last = event("FAIL", "t2", run_facets=airflow("load", 2, retries=1), **of)
    (run,) = fold(read(*tries, last)).values()
    assert run.states == {"load": "failed"}
    assert run.of("load")["parents"] == ["first", "second"]


def test_what_airflow_skipped_without_telling_anybody_is_told_at_the_end() -> None:
    states = {"a": "success", "b": "skipped", "c": "upstream_failed", "d": "removed", "e": None}
    facets = {"airflowDagRun": {"dagRun": {}}, "airflowState": {"tasksState": states}}

    (run,) = fold(read(event("FAIL", run_facets=facets))).values()

    assert run.states == {"b": "skipped", "c": "skipped", "d": "cancelled"}


def test_datasets_are_files_and_their_sizes_are_added_up() -> None:
    inputs = [
        {"namespace": "file", "name": "/data/a", "inputFacets": {"inputStatistics": {"size": 5}}},
        {"namespace": "s3://lab", "name": "b", "inputFacets": {"dataQualityMetrics": {"bytes": 7}}},
        {"namespace": "s3://lab"},
    ]
    outputs = [
        {
            "namespace": "pg://db:5432",
            "name": "t",
            "outputFacets": {"outputStatistics": {"size": 9}},
        }
    ]
    facets = {"sql": {"query": "SELECT 1"}, "sourceCodeLocation": {"version": "4bcced8"}}

    of = {"parent": (DAG, "etl"), "inputs": inputs, "outputs": outputs, "job_facets": facets}
    (message,) = read(event("COMPLETE", "t1", "etl.x", **of))

    reported = message.pairs
    assert reported["InputFile"] == '["/data/a","s3://lab/b"]'
    assert reported["OutputFile"] == '["pg://db:5432/t"]'
    assert (reported["InputBytes"], reported["OutputBytes"]) == ("12", "9")
    assert (reported["CommandLine"], reported["ActivityVersion"]) == ("SELECT 1", "4bcced8")


def test_source_code_without_a_version_is_its_own_version() -> None:
    def version(code: str) -> str:
        facets = {"sourceCode": {"language": "python", "sourceCode": code}}
        return read(event(job_facets=facets, job_type=("DAG", "AIRFLOW")))[0].pairs[
            "WorkflowVersion"
        ]

    assert version("print(1)") == version("print(1)") != version("print(2)")


def test_heartbeats_and_other_events_add_to_what_is_known_and_change_no_state() -> None:
    of = {"job": "etl.x", "parent": (DAG, "etl")}
    outputs = [{"namespace": "file", "name": "/out"}]
    (run,) = fold(
        read(
            event("START", "t1", **of),
            event("RUNNING", "t1", at="2026-11-16T07:00:00Z", **of),
            event("OTHER", "t1", at="2026-11-16T07:01:00Z", outputs=outputs, **of),
            event("RUNNING", DAG, job_type=("DAG", "AIRFLOW")),
        )
    ).values()

    assert list(run.states.values()) == ["running"]
    (activity,) = run.states
    assert run.of(activity)["outputs"] == ["/out"]
    assert run.state == "running"


def test_events_about_no_run_and_of_no_known_type_say_nothing() -> None:
    dataset = json.dumps({"eventTime": RECEIVED, "dataset": {"namespace": "a", "name": "b"}})
    job = json.dumps({"eventTime": RECEIVED, "job": {"namespace": "a", "name": "b"}})

    assert read(dataset.encode(), job.encode(), event("PAUSED"), b"{}") == []


def test_the_same_event_has_the_same_ids() -> None:
    assert [m.id for m in read(*RECORDED)] == [m.id for m in read(*RECORDED)]
    assert len({m.id for m in read(*RECORDED)}) == len(RECORDED)


def test_a_batch_is_read_event_by_event() -> None:
    body = b"[" + event() + b", 7, " + event("PAUSED") + b"]"

    found = read_batch(body, RECEIVED)

    assert [None if each is None else len(each) for each in found] == [2, None, 0]
    assert read_batch(b'{"events": ' + body + b"}", RECEIVED) == found


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"7", b"{" * 100_000, b'{"a": \xff}'])
def test_what_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_event(body, RECEIVED)


def test_a_batch_of_too_many_is_refused() -> None:
    with pytest.raises(TooLarge):
        read_batch(b"[" + b"0," * 10_000 + b"0]", RECEIVED)
    with pytest.raises(BadRequest):
        read_batch(b"{}", RECEIVED)


HOSTILE: list[Any] = [
    *(None, True, -1, 10**300, 1e308, "", "x" * 100_000, "\x00\n\x1b[31m", [], {}, [[]]),
    *("2026-99-99", "0001-01-01T00:00:00+14:00", ["x" * 900] * 300, {"a": {"b": []}}),
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
def test_a_value_of_the_wrong_kind_counts_as_none(value: Any) -> None:
    """Each member of a real event in turn is something that it should not be."""
    for line in (RECORDED[-2], RECORDED[-1]):
        for spoilt in _spoilt(json.loads(line), value):
            for message in read_event(json.dumps(spoilt).encode(), RECEIVED):
                check(message)


def _spoilt(table: Any, value: Any, depth: int = 0) -> list[Any]:
    if not isinstance(table, dict) or depth == 5:
        return []
    found: list[Any] = []
    for key, inner in table.items():
        found.append(table | {key: value})
        found += [table | {key: each} for each in _spoilt(inner, value, depth + 1)]
    return found


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)
_RUN_FACETS = ["parent", "airflow", "airflowDagRun", "airflowState", "errorMessage"]
_JOB_FACETS = ["jobType", "sql", "sourceCode", "sourceCodeLocation", "airflow"]
_FACETS = st.dictionaries(st.sampled_from([*_RUN_FACETS, *_JOB_FACETS]), _JSON)


@settings(max_examples=200, deadline=None)
@given(
    run=_FACETS | _JSON, job=_FACETS | _JSON, sets=_JSON, kind=_JSON, junk=st.binary(max_size=64)
)
def test_whatever_comes_is_messages_or_one_of_our_errors(
    run: Any, job: Any, sets: Any, kind: Any, junk: bytes
) -> None:
    reported = {
        "eventType": kind if isinstance(kind, dict) else "COMPLETE",
        "run": {"runId": "r", "facets": run},
        "job": {"name": "j", "facets": job},
        "inputs": sets,
        "outputs": [sets],
    }
    text = json.dumps(reported).encode()
    for body in (text, junk, text[:-7] + junk):
        try:
            messages = read_event(body, RECEIVED)
        except TocsinError:
            continue
        for message in messages:
            check(message)
