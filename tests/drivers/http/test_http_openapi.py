"""/openapi.json is true to what runs: everything in it answers as it says."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from raw_http import Answer, Raw, get, once

from served import Served, served
from tocsin.wire.api.openapi.document import description

LINEAGE = (
    b'{"eventType":"START","eventTime":"2026-11-16T07:00:00Z","producer":"https://p.example/",'
    b'"run":{"runId":"0190f3a2-0000-7000-8000-000000000001"},'
    b'"job":{"namespace":"n","name":"j"}}'
)

SPEC: dict[str, Any] = description()
OPERATIONS = [
    (method, path) for path, methods in SPEC["paths"].items() for method in sorted(methods)
]


@pytest.fixture(scope="module")
def ids(broker: Served) -> dict[str, str]:
    """Things to ask for, by the first part of the path."""
    sink = "http://127.0.0.1:8999/hook"
    broker.publish({"topic": "a", "data": {"x": 1}}, {"id": "plain"})
    for run in ("r1", "r2"):
        assert broker.call("POST", "/blackboard/messages", reported_run(run))[0] == 202
    publisher = {"address": "http://127.0.0.1:8999/publisher"}
    subscriber = {"address": sink, "concepts": ["RunId"]}
    return {
        "subscriptions": broker.call("POST", "/subscriptions", {"sink": sink})[1]["id"],
        "boxes": broker.call("POST", "/boxes", {"config": {"from": 0}})[1]["id"],
        "deadletters": "none",
        "runs": "r1",
        "publishers": broker.call("POST", "/blackboard/publishers", publisher)[1]["id"],
        "subscribers": broker.call("PUT", "/blackboard/subscribers", subscriber)[1]["id"],
        "directory": broker.call(
            "POST", "/directory", {"kind": "producer", "name": "p", "host": "h"}
        )[1]["id"],
        "resources": broker.call("POST", "/resources", RESOURCE)[1]["id"],
        "discoveries": broker.call("POST", "/discoveries", {"model": "static continuous"})[1]["id"],
    }


def reported_run(run: str) -> list[dict[str, object]]:
    """A run of one activity, from its start to its end."""
    activity = {"ActivityId": "a", "ActivityType": "align"}
    events = [
        {"WorkflowName": "w", "WorkflowStarted": "2026-11-16T07:00:00Z"},
        {**activity, "ActivityExecuting": "2026-11-16T07:00:01Z"},
        {**activity, "ActivitySucceeded": "2026-11-16T07:00:05Z"},
        {"WorkflowCompleted": "2026-11-16T07:00:06Z"},
    ]
    return [{"pairs": {"RunId": run, **pairs}} for pairs in events]


RESOURCE = {"id": "node7", "model": "dynamic", "advertisement": "[memory,<=,2]"}

BODIES: dict[tuple[str, str], bytes] = {
    ("post", "/events"): b'{"specversion":"1.0","id":"o","source":"/o","type":"t"}',
    ("post", "/subscriptions"): b'{"sink":"http://127.0.0.1:8999/x","filters":[{"topic":"**"}]}',
    ("patch", "/subscriptions/{id}"): b'{"state":"paused"}',
    ("post", "/blackboard/messages"): b'{"pairs":{"RunId":"r9"}}',
    ("post", "/blackboard/publishers"): b'{"address":"http://127.0.0.1:8999/another"}',
    ("put", "/blackboard/subscribers"): b'{"address":"http://127.0.0.1:8999/s","concepts":["Cpu"]}',
    ("post", "/estimates"): b'{"workflow":"w","tasks":[{"id":"a","type":"align"}]}',
    ("post", "/ingest/nextflow"): b'{"runName":"n","runId":"n1","event":"started",'
    b'"utcTime":"2026-11-16T07:00:00Z"}',
    ("post", "/api/v1/lineage"): LINEAGE,
    ("post", "/api/v1/lineage/batch"): b"[" + LINEAGE + b"]",
    ("post", "/boxes"): b"{}",
    ("patch", "/boxes/{id}"): b'{"expires":"PT1H"}',
    ("post", "/directory"): b'{"kind":"consumer","name":"archive","host":"node7"}',
    ("put", "/directory/{id}"): b"{}",
    ("post", "/resources"): b'{"attributes":{"system":"Linux","disk":320}}',
    ("put", "/resources/{id}/attributes"): b'{"memory":1}',
    ("patch", "/resources/{id}/attributes"): b"{}",
    ("post", "/discoveries"): b'{"request":"disk > 120"}',
    ("patch", "/overlay/options"): b'{"similarity":true}',
    ("post", "/topics/messages"): b'{"topic":"Services/Discovery/Topics","kind":"find"}',
    ("post", "/gma"): b'<EventNamesRequest requestID="1" '
    b'xmlns="http://www.gridforum.org/Performance/Protocol"/>',
}
# Of those about who may do what a broker has nothing to say where everybody may do everything.
SIGNED_IN = "/access/"
OF_KEYS = ("/topics/sign-in", "/topics/grants", "/topics/revocations")
# Sockets are opened in test_http_streams, and what entities follow in test_http_control. DELETE
# comes last: it ends what the others look at.
ELSEWHERE = ("/socket", "/topics/messages/stream")
IN_ORDER = sorted(
    (
        each
        for each in OPERATIONS
        if not each[1].endswith(ELSEWHERE)
        and SIGNED_IN not in each[1]
        and not each[1].startswith(OF_KEYS)
    ),
    key=lambda operation: operation[0] == "delete",
)


@pytest.mark.parametrize(("method", "path"), IN_ORDER)
def test_each_operation_answers_as_described(
    broker: Served, ids: dict[str, str], method: str, path: str
) -> None:
    noun = path.split("/")[2 if path.startswith("/blackboard/") else 1]
    target = path.replace("{id}", ids.get(noun, "")).replace("{code}", "T101")
    target = target.replace("{other}", "r2").replace("{type}", "align").replace("{name}", "w")
    if method == "delete" and path in ("/blackboard/subscribers", "/blackboard/publishers"):
        target += "?address=http://127.0.0.1:8999/s"
    if path == "/files":
        target += "?name=a.txt"
    body = BODIES.get((method, path), b"")

    if path.endswith("/stream"):
        assert _opens_stream(broker, target)
        return
    answer = once(broker.address, _request(method, target, body), method.upper())

    operation = SPEC["paths"][path][method]
    described = operation["responses"].get(str(answer.status))
    if described is None:
        assert answer.status == 404 or path.endswith("/handshake")  # no such dead letter here
        described = SPEC["components"]["responses"]["Problem"]
    _check(answer, described)


ACCESS_BODIES = {
    "/access/tokens": b'{"principal":"ann","rights":[{"action":"read","topic":"a/**"}]}',
    "/access/rules": b'{"group":"ops","action":["read","manage"]}',
}


def test_each_operation_about_access_answers_as_described() -> None:
    """Where clients sign in, as the administrator."""
    made: dict[str, str] = {}
    of_access = [each for each in OPERATIONS if SIGNED_IN in each[1]]
    assert len(of_access) >= 8
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as broker:
        secret = (broker.directory / "admin.token").read_text().strip()
        for method, path in sorted(
            of_access, key=lambda each: ("post", "get", "delete").index(each[0])
        ):
            target = path.replace("{id}", made.get(path.removesuffix("/{id}"), ""))
            target += "?action=read&principal=ann&topic=a/b" if path == "/access/check" else ""
            body = ACCESS_BODIES.get(path, b"") if method == "post" else b""
            asked = _request(method, target, body, f"Authorization: Bearer {secret}\r\n")

            answer = once(broker.address, asked, method.upper())

            assert answer.status < 300, (method, path, answer.body)
            _check(answer, SPEC["paths"][path][method]["responses"][str(answer.status)])
            if method == "post":
                made[path] = answer.json["id"]


def _request(method: str, target: str, body: bytes, headers: str = "") -> bytes:
    return (
        f"{method.upper()} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}"
        f"Content-Type: application/cloudevents+json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def _opens_stream(broker: Served, path: str) -> bool:
    with Raw(broker.address) as raw:
        raw.send(get(path if path.startswith("/discoveries/") else f"{path}?after=0"))
        return raw.file.readline() == b"HTTP/1.1 200 OK\r\n"


def _check(answer: Answer, described: dict[str, Any]) -> None:
    content = described.get("content")
    if content is None:
        assert answer.body == b""
        return
    media_type = answer.headers["content-type"].partition(";")[0]
    assert media_type in content
    if "schema" in content[media_type]:
        schema = {**content[media_type]["schema"], "components": SPEC["components"]}
        jsonschema.validate(answer.json, schema)


def test_the_schemas_refuse_an_answer_of_another_shape() -> None:
    schema = {"$ref": "#/components/schemas/EventsPage", "components": SPEC["components"]}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"events": [{"id": 1}], "sequences": [], "next": 1}, schema)
