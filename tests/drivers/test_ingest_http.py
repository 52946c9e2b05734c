"""Engines post their own messages to a running broker, with their own clients."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine_streams import RunSeen, fold, shared, trace_rows, weblog
from served import Served, served
from tocsin.wire.blackboard.messages import Message

RECORDED = Path(__file__).parents[1] / "wire" / "openlineage" / "openlineage_from_airflow3.jsonl"
STARTED = {
    "runName": "mad_hopper",
    "runId": "s-1",
    "event": "started",
    "utcTime": "2026-11-16T06:00:00Z",
}


class Posted:
    """One broker for all of these tests; each sees only what was stored since it began."""

    def __init__(self, broker: Served) -> None:
        self.broker = broker
        self.call = broker.call
        self._after = 0
        self._after = self._read()[1]

    def stored(self) -> list[Message]:
        return [Message(e["data"], e["id"], e["source"], e.get("time")) for e in self._read()[0]]

    def runs(self) -> dict[str, RunSeen]:
        return fold(self.stored())

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        found: list[dict[str, Any]] = []
        after = self._after
        while True:
            status, page = self.call("GET", f"/events?limit=1000&after={after}")
            assert status == 200
            if not page["events"]:
                return found, after
            found += page["events"]
            after = page["next"]


@pytest.fixture(scope="module")
def house() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def broker(house: Served) -> Posted:
    return Posted(house)


def test_what_nextflow_posts_is_on_disk_when_it_is_answered_and_stored_once(broker: Posted) -> None:
    posts = list(weblog(trace_rows(shared("traces", "openproblems_2021-03-04.tsv"))[:40]))

    first = [broker.call("POST", "/ingest/nextflow", post) for post in posts]
    broker.broker.kill()
    broker.broker.start()
    again = [broker.call("POST", "/ingest/nextflow", post) for post in posts]

    assert {status for status, _ in first} == {202}
    assert all(answer == {"accepted": 1} for _, answer in first)
    assert all(answer == {"accepted": 1, "duplicates": 1} for _, answer in again)
    (run,) = broker.runs().values()
    assert run.state == "completed"
    assert run.counts == {"succeeded": 40}


def test_a_message_of_an_engine_is_a_message_of_the_blackboard(broker: Posted) -> None:
    workflow = {"projectName": "lab/align", "userName": "ada"}
    post = STARTED | {"runId": "s-2", "metadata": {"workflow": workflow}}

    assert broker.call("POST", "/ingest/nextflow", post)[0] == 202

    _, page = broker.call("GET", "/events?limit=1000")
    event = page["events"][-1]
    assert event["type"] == "bb.WorkflowStarted"
    assert event["topic"] == "blackboard/lab_align/mad_hopper-s-2"
    assert event["data"]["UserName"] == "ada"


def test_recorded_lineage_comes_to_its_end_in_whatever_way_it_is_sent(broker: Posted) -> None:
    lines = RECORDED.read_bytes().splitlines()
    packed = {"content-encoding": "gzip"}

    for line in lines[:4]:
        assert broker.call("POST", "/api/v1/lineage", line) == (201, {"accepted": 1})
    for line in lines[4:8]:
        assert broker.call("POST", "/api/v1/lineage", gzip.compress(line), packed)[0] == 201
    batch = b"[" + b",".join(lines[6:]) + b", 7]"
    status, answer = broker.call("POST", "/api/v1/lineage/batch", batch)

    assert status == 200
    assert answer["status"] == "partial_success"
    assert answer["summary"]["received"] == len(lines) - 6 + 1
    assert [failed["index"] for failed in answer["failed_events"]] == [len(lines) - 6]
    assert len(broker.stored()) == len(lines)
    (run,) = broker.runs().values()
    assert run.counts == {"succeeded": 4, "failed": 1}
    assert run.state == "failed"


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_the_client_of_openlineage_itself_is_content(
    broker: Posted, compression: str | None
) -> None:
    client_of = pytest.importorskip("openlineage.client")
    event_v2 = pytest.importorskip("openlineage.client.event_v2")
    http = pytest.importorskip("openlineage.client.transport.http")
    parent_run = pytest.importorskip("openlineage.client.facet_v2").parent_run
    settings = {"url": broker.broker.url} | ({"compression": compression} if compression else {})
    config = http.HttpConfig.from_dict(settings)
    client = client_of.OpenLineageClient(transport=http.HttpTransport(config))
    number = 2 if compression else 1
    dag = event_v2.Run(runId=f"01a1e07a-0b6a-73f2-b261-f16502d62a0{number}")
    above = parent_run.ParentRunFacet(
        run=parent_run.Run(runId=dag.runId), job=parent_run.Job(namespace="lab", name="etl")
    )
    task = event_v2.Run(
        runId=f"01a1e07a-0b6a-73f2-b261-f16502d62b0{number}", facets={"parent": above}
    )

    def tell(kind: str, run: Any, job: str, second: int, **more: Any) -> None:
        client.emit(
            event_v2.RunEvent(
                eventType=event_v2.RunState[kind],
                eventTime=f"2026-11-16T06:00:0{second}+00:00",
                run=run,
                job=event_v2.Job(namespace="lab", name=job),
                producer="https://example.org/test",
                **more,
            )
        )

    tell("START", task, "etl.load", 1)
    out = event_v2.OutputDataset(namespace="s3://lab", name="table")
    tell("COMPLETE", task, "etl.load", 4, outputs=[out])
    client.close()

    (run,) = broker.runs().values()
    assert run.reported("workflow") == "etl"
    assert run.counts == {"succeeded": 1}
    (activity,) = run.states
    assert run.of(activity)["outputs"] == ["s3://lab/table"]


def test_many_may_post_at_once(broker: Posted) -> None:
    posts = [STARTED | {"runId": f"m-{n}"} for n in range(200)]

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda post: broker.call("POST", "/ingest/nextflow", post), posts))

    assert {status for status, _ in answers} == {202}
    assert len(broker.runs()) == 200


def test_what_cannot_be_read_is_a_problem_with_a_remedy(broker: Posted) -> None:
    for path in ("/ingest/nextflow", "/api/v1/lineage", "/api/v1/lineage/batch"):
        for body in (b"", b"no JSON", b"[" * 100_000, b"7", b'"\xff"'):
            status, problem = broker.call("POST", path, body)
            assert status == 400
            assert problem["remedy"]
    assert broker.stored() == []


def test_what_came_is_counted(broker: Posted) -> None:
    before = broker.call("GET", "/ingest")[1]

    broker.call("POST", "/ingest/nextflow", STARTED)
    broker.call("POST", "/ingest/nextflow", STARTED | {"event": "dreaming"})
    broker.call("POST", "/ingest/nextflow", b"no JSON")
    status, answer = broker.call("POST", "/api/v1/lineage", {"dataset": {"name": "d"}})

    assert (status, answer) == (201, {"accepted": 0, "ignored": 1})
    after = broker.call("GET", "/ingest")[1]
    more = {
        dialect: {name: count - before[dialect][name] for name, count in after[dialect].items()}
        for dialect in after
    }
    assert more == {
        "nextflow": {"posts": 3, "messages": 1, "ignored": 1, "refused": 1},
        "openlineage": {"posts": 1, "messages": 0, "ignored": 1, "refused": 0},
    }


def test_a_body_over_the_limit_is_refused(broker: Posted) -> None:
    body = gzip.compress(json.dumps(STARTED | {"metadata": "x" * (64 << 20)}).encode())

    status, problem = broker.call("POST", "/ingest/nextflow", body, {"content-encoding": "gzip"})

    assert (status, problem["code"]) == (413, "T202")


@pytest.mark.parametrize(
    "path", ["/estimates", "/api/v1/lineage", "/ingest/nextflow", "/subscriptions", "/boxes"]
)
def test_one_document_has_at_most_four_megabytes(house: Served, path: str) -> None:
    """It is read while everybody waits."""
    body = b"[" + b"1e300," * 700_000 + b"1]"

    status, problem = house.call("POST", path, body, {"content-type": "application/json"})

    assert (status, problem["code"]) == (413, "T202")
