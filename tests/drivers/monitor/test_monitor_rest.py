"""Runs over REST: a real broker is told of a run by its blackboard, and asked about it."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from monitor.runs import activity_pairs, at, run_pairs
from served import Served
from tocsin.wire.api.openapi.document import description
from tocsin.wire.api.openapi.operation import Operation
from tocsin.wire.api.openapi.run_operations import RUN_OPERATIONS

PLAN = json.dumps(
    [
        {"id": "split-1", "type": "split", "parents": []},
        {"id": "align-1", "type": "align", "parents": ["split-1"]},
    ]
)
GOOD = [
    run_pairs("WorkflowStarted", 0, run="good/1", WorkflowName="blast", ActivityPlan=PLAN),
    activity_pairs("split-1", "ActivityExecuting", 1, run="good/1"),
    activity_pairs("split-1", "ActivitySucceeded", 11, run="good/1", OutputFile="a.fa"),
    activity_pairs("align-1", "ActivityExecuting", 11, run="good/1", InputFile="a.fa"),
    activity_pairs("align-1", "ActivitySucceeded", 31, run="good/1", CpuSeconds="19"),
    run_pairs("WorkflowCompleted", 32, run="good/1"),
]
BAD = [
    run_pairs("WorkflowStarted", 100, run="bad", WorkflowName="blast", WorkflowVersion="2"),
    activity_pairs("align-1", "ActivityExecuting", 101, run="bad"),
    activity_pairs("align-1", "ActivityFailed", 102, run="bad", ErrorMessage="no space left"),
    run_pairs("WorkflowTerminated", 103, run="bad", ErrorMessage="align-1 failed"),
    run_pairs("WorkflowStarted", 200, run="now", WorkflowName="blast", ActivityPlan=PLAN),
    {"WorkflowName": "blast", "WorkflowVersion": "2", "VersionSaved": at(99)},
]
ASKED = {
    "workflow": "blast",
    "cores": 2,
    "tasks": [
        {"id": "a", "type": "split"},
        {"id": "b", "type": "align", "parents": ["a"], "external_bytes": 5},
    ],
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("monitor") / "data")
    try:
        for messages in (GOOD, BAD):
            posted = [{"pairs": pairs} for pairs in messages]
            status, _ = found.call("POST", "/blackboard/messages", posted)
            assert status == 202
        yield found
    finally:
        found.stop()


def ask(broker: Served, path: str) -> Any:
    status, answer = broker.call("GET", path)
    assert status == 200, answer
    return answer


def test_runs_are_listed_and_filtered_and_paged(broker: Served) -> None:
    assert [run["id"] for run in ask(broker, "/runs")["runs"]] == ["now", "bad", "good/1"]
    assert [run["id"] for run in ask(broker, "/runs?state=failed")["runs"]] == ["bad"]
    first = ask(broker, "/runs?limit=2")
    rest = ask(broker, f"/runs?limit=2&after={first['next']}")
    assert [run["id"] for run in rest["runs"]] == ["good/1"]
    assert rest["next"] is None


def test_a_run_whose_id_has_a_slash_is_found(broker: Served) -> None:
    run = ask(broker, "/runs/good%2F1")

    assert (run["state"], run["progress"], run["duration_s"]) == ("completed", 1.0, 32.0)
    assert run["activities"]["succeeded"] == 2
    assert run["resources"] == {"CpuSeconds": 19}


def test_activities_events_and_failures_are_told(broker: Served) -> None:
    (activity,) = ask(broker, "/runs/good%2F1/activities?type=align")["activities"]
    assert (activity["parents"], activity["duration_s"]) == (["split-1"], 20.0)
    events = ask(broker, "/runs/bad/events?last=2")["events"]
    assert [list(each["pairs"])[-1] for each in events] == ["ErrorMessage"] * 2
    why = ask(broker, "/runs/bad/failures?last=2")
    assert [each["error"] for each in why["failures"]] == ["no space left"]
    assert len(why["failures"][0]["before"]) == 2
    assert why["run"]["error"] == "align-1 failed"


def test_estimates_are_given_while_it_runs_and_before(broker: Served) -> None:
    assert ask(broker, "/workflows/blast/estimate")["total_s"] == pytest.approx(32, rel=0.2)
    status, found = broker.call("POST", "/estimates", ASKED)
    assert (status, found["past_runs"]) == (200, 1)
    assert ask(broker, "/runs/now/estimate")["past_runs"] == 1
    assert ask(broker, "/runs/bad/estimate")["method"] == "ended"


def test_a_plan_whose_tasks_wait_for_each_other_is_refused_with_their_names(
    broker: Served,
) -> None:
    waits = {"split": ["merge"], "align": ["split"], "merge": ["align"], "plot": ["merge"]}
    tasks = [{"id": name, "type": name, "parents": parents} for name, parents in waits.items()]

    status, problem = broker.call("POST", "/estimates", {"workflow": "blast", "tasks": tasks})

    assert status == 400
    assert problem["detail"].startswith("task 'split' waits for itself, through 'merge', 'align'")


def test_a_type_that_never_ended_brings_those_with_a_name_like_it(broker: Served) -> None:
    status, problem = broker.call("GET", "/activities/aling")

    assert status == 404
    assert "Did you mean align? `tocsin wf history` lists" in problem["remedy"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/runs/never", None, 404),
        ("GET", "/runs/never/activities", None, 404),
        ("GET", "/activities/never", None, 404),
        ("GET", "/runs?state=nonsense", None, 400),
        ("GET", "/runs?limit=0", None, 400),
        ("GET", "/runs?after=nonsense", None, 400),
        ("GET", "/runs/bad/provenance?format=pdf", None, 400),
        ("GET", "/workflows/never/estimate", None, 409),
        ("POST", "/estimates", {"workflow": "blast", "tasks": [{"id": "a"}]}, 400),
        ("POST", "/estimates", {"workflow": "x", "tasks": [{"id": "a", "type": "t"}] * 2}, 400),
        (
            "POST",
            "/estimates",
            {"workflow": "x", "tasks": [{"id": "a", "type": "t", "parents": ["b"]}]},
            400,
        ),
    ],
)
def test_what_cannot_be_answered_is_a_problem_with_a_remedy(
    broker: Served, method: str, path: str, body: Any, status: int
) -> None:
    got, problem = broker.call(method, path, body)

    assert got == status
    assert problem["remedy"]


@pytest.mark.parametrize("form", ["prov-json", "prov-n", "turtle", "crate"])
def test_provenance_is_told_in_every_form(broker: Served, form: str) -> None:
    url = f"{broker.url}/runs/good%2F1/provenance?format={form}"
    with urllib.request.urlopen(url) as answer:
        content = answer.read()

    assert b"split-1" in content or form == "crate"
    assert content[:2] == b"PK" or form != "crate"


PATHS = {
    "/runs/{id}/compare/{other}": "/runs/good%2F1/compare/bad",
    "/activities/{type}": "/activities/align",
    "/files": "/files?name=a.fa&depth=2",
}


@pytest.mark.parametrize("operation", RUN_OPERATIONS, ids=lambda each: each.path)
def test_each_answer_is_as_described(broker: Served, operation: Operation) -> None:
    path, method = operation.path, operation.method
    if path.endswith("/provenance"):
        return
    target = PATHS.get(path) or path.replace("{id}", "good%2F1").replace("{name}", "blast")
    body = ASKED if method == "post" else None
    status, answer = broker.call(method.upper(), target, body)
    assert status == 200, answer
    document = description()
    components = {"components": document["components"]}
    described = document["paths"][path][method]
    (media,) = described["responses"]["200"]["content"].values()

    jsonschema.validate(answer, {**media["schema"], **components})
    if body is not None:
        (sent,) = described["requestBody"]["content"].values()
        jsonschema.validate(body, {**sent["schema"], **components})


def test_metrics_tell_how_far_the_monitor_is_and_what_is_under_way(broker: Served) -> None:
    text = ""
    deadline_s = time.monotonic() + 30
    while 'tocsin_runs{state="running"} 1.0' not in text and time.monotonic() < deadline_s:
        time.sleep(0.05)
        with urllib.request.urlopen(f"{broker.url}/metrics") as answer:
            text = answer.read().decode()

    assert 'tocsin_runs{state="running"} 1.0' in text
    assert 'tocsin_runs{state="lost"} 0.0' in text
    assert "completed" not in text
    assert "tocsin_monitor_behind 0.0" in text
    assert "tocsin_monitor_missed_total 0.0" in text


def test_versions_are_paged_and_a_run_is_counted_by_type(broker: Served) -> None:
    first = ask(broker, "/workflows/blast/versions?limit=1")
    assert [each["version"] for each in first["versions"]] == ["2"]
    assert first["next"] is None
    assert ask(broker, f"/workflows/blast/versions?after={first['versions'][0]['seq']}") == {
        "versions": [],
        "next": None,
    }
    types = ask(broker, "/runs/good%2F1")["types"]
    assert types == {"align": {"succeeded": 1}, "split": {"succeeded": 1}}


def test_a_run_is_there_after_a_crash(broker: Served, tmp_path: Path) -> None:
    served = Served(tmp_path / "data")
    try:
        served.call("POST", "/blackboard/messages", [{"pairs": pairs} for pairs in GOOD])
        served.kill()
        served.start()
        run = ask(served, "/runs/good%2F1")
        assert run["activities"]["succeeded"] == 2
        assert len(ask(served, "/runs/good%2F1/events")["events"]) == len(GOOD)
    finally:
        served.stop()
