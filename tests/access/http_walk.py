"""Every REST endpoint with every method, both publish paths, streams and sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

from refusing import CUT, NO_CONNECTION, SECRET, Refusing, Way

from tocsin.drivers.http.publication import PUBLISHED
from tocsin.drivers.http.request import METHODS
from tocsin.drivers.http.rest.endpoint import Endpoint, Open
from tocsin.services.soap.paths import is_soap_path

NOTHING_THERE = (404, 405)
ANSWER_S = 30.0  # the first answer in Arrow loads a large library
CODE = "T215"

# Whoever opens another endpoint to everybody has to say so here too.
WSDL = "a description of the SOAP services, which tools ask for before they know a credential"
OPEN = {
    "/livez": "asked by orchestrators",
    "/readyz": "asked by orchestrators",
    "/openapi.json": "a description of the interface",
    "/asyncapi.json": "a description of the interface",
    "/login": "who signs in has not signed in yet",
    "/logout": "makes the browser forget",
    "/topics/sign-in": "who signs in has not signed in yet, and proves to have a key",
    "/topics/sign-in/nonce": "what such a proof has to name",
    "/access/whoami": "says who the caller is, and no more",
    "/docs": "a description of the interface",
    "/errors/{code}": "says what an error means",
    "/subscriptions/{id}/handshake": "the token that the sink was sent is the right to call it",
    "/soap": WSDL,
    "/soap/{below:path}": WSDL,
    "/axis2/services/{below:path}": WSDL,
    "/wsman": WSDL,
    "/wsman/{below:path}": WSDL,
    "/wsman-anon/identify": WSDL,
    "/onvif/{below:path}": WSDL,
}

_EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "topic": "a/b"}
_LINEAGE = {
    "eventType": "START",
    "eventTime": "2026-01-01T00:00:00Z",
    "producer": "https://example.org",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    "run": {"runId": "01941f29-7c00-7000-8000-000000000000"},
    "job": {"namespace": "n", "name": "j"},
}
_WEBLOG = {
    "runName": "r",
    "runId": "01941f29-7c00-7000-8000-000000000000",
    "event": "started",
    "utcTime": "2026-01-01T00:00:00Z",
}
_ENTRY = {"kind": "producer", "name": "p", "address": "gma://127.0.0.1:9", "events": ["Load"]}
# What is refused only once it was understood. All else is refused whatever it says.
BODIES: dict[str, object] = {
    "POST /events": _EVENT,
    "POST /blackboard/messages": {"pairs": {"RunId": "r1"}},
    "POST /access/tokens": {"principal": "somebody"},
    "POST /access/rules": {"principal": "ann", "action": "read"},
    "POST /subscriptions": {"sink": "http://127.0.0.1:9/hook"},
    "POST /boxes": {},
    "POST /blackboard/publishers": {"address": "http://127.0.0.1:9/p"},
    "PUT /blackboard/subscribers": {"address": "http://127.0.0.1:9/s", "concepts": ["RunId"]},
    "POST /directory": _ENTRY,
    "PUT /directory/{id}": _ENTRY,
    "POST /resources": {"model": "static", "advertisement": "system = Linux"},
    "PUT /resources/{id}/attributes": {"load": 1},
    "PATCH /resources/{id}/attributes": {"load": 1},
    "POST /discoveries": {"request": "system = Linux"},
    "PATCH /overlay/options": {"similarity": False},
    "POST /topics/messages": {"topic": "Services/Discovery/Topics", "kind": "find"},
    "POST /ingest/nextflow": _WEBLOG,
    "POST /api/v1/lineage": _LINEAGE,
    "POST /api/v1/lineage/batch": [_LINEAGE],
}
QUERIES = {
    "GET /access/check": "?action=read",
    "HEAD /access/check": "?action=read",
    "DELETE /blackboard/publishers": "?address=x",
    "DELETE /blackboard/subscribers": "?address=x",
}
# Further ways to ask the same endpoint for something else.
ALSO = [
    ("POST", "/discoveries", {"request": "system = Linux", "model": "static continuous"}),
    ("PUT", "/directory/x", {}),  # to renew
]
SOCKET = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def walk_http(broker: Refusing) -> list[str]:
    """The requests that were not refused as they should be."""
    wrong: list[str] = []
    endpoints = broker.endpoints()
    for path in dict.fromkeys(each.path for each in endpoints):
        for method in sorted(each.decode() for each in METHODS):
            has_walk = method == "POST" and (is_soap_path(path) or path == "/gma")  # of its own
            if not has_walk and not (method == "GET" and path in broker.http.long_lived):
                wrong += await _check(broker, endpoints, method, path)
    for target in PUBLISHED:  # spelt so that the connection does not know it, but the router does
        path = target.decode()
        spelt = f"/%{ord(path[1]):x}{path[2:]}"
        wrong += await _refused(broker, "POST", spelt, BODIES[f"POST {path}"])
    for path in broker.http.long_lived:
        target = example_of(path)
        wrong += await _refused(broker, "GET", target, headers=SOCKET if "socket" in path else {})
    for also in ALSO:
        wrong += await _refused(broker, *also)
    arrow = {"accept": "application/vnd.apache.arrow.stream"}
    wrong += await _refused(broker, "GET", "/events", headers=arrow)
    return wrong


def example_of(path: str) -> str:
    """A path of this pattern."""
    return re.sub(r"\{\w+(:path)?\}", "x", path)


async def _check(broker: Refusing, endpoints: list[Endpoint], method: str, path: str) -> list[str]:
    called = "GET" if method == "HEAD" else method
    found = next((e for e in endpoints if e.path == path and e.method == called), None)
    if found is not None and isinstance(found.access, Open):
        return [] if path in OPEN else [f"{method} {path} is open: {found.access.reason}"]
    target = example_of(path)
    if found is not None:
        key = f"{method} {path}"
        return await _refused(broker, method, target + QUERIES.get(key, ""), BODIES.get(key))
    status, code = await _ask(broker, method, target)
    is_refused = status in NOTHING_THERE or (status, code or broker.refusal[1]) == broker.refusal
    return [] if is_refused else [f"{method} {target}: {status} {code}"]


async def _refused(
    broker: Refusing,
    method: str,
    target: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> list[str]:
    status, code = await _ask(broker, method, target, body, headers)
    expected = "" if method == "HEAD" else broker.refusal[1]
    is_refused = (status, code) == (broker.refusal[0], expected)
    return [] if is_refused else [f"{method} {target}: {status} {code}"]


async def _ask(
    broker: Refusing,
    method: str,
    target: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    status, text = NO_CONNECTION
    every = {**broker.headers, **(headers or {})}
    with contextlib.suppress(*CUT):
        status, text = await exchange(await open_http(broker), method, target, body, every)
    code = code_in(text)
    broker.answers.append((f"{method} {target}", status, code))
    if SECRET in text:
        broker.shown.append(f"{method} {target}")
    return status, code


async def open_http(broker: Refusing) -> Way:
    """A connection, by which whoever is allowed that has asked who he is."""
    with broker.first():
        way = await broker.open(broker.http.address)
        if broker.is_allowed_first:
            kept = {**broker.headers, "connection": "keep-alive"}
            status, text = await exchange(way, "GET", "/access/whoami", None, kept)
            assert status == 200, text
    return way


async def ask(
    port: int,
    method: str,
    target: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    """The status of one request, and the code of the problem that it was answered with."""
    status, text = await fetch(port, method, target, body, headers)
    return status, code_in(text)


async def fetch(
    port: int,
    method: str,
    target: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    """The status of one request, and the body of the answer."""
    way = await asyncio.open_connection("127.0.0.1", port)
    return await exchange(way, method, target, body, headers)


async def exchange(
    way: Way,
    method: str,
    target: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, str]:
    """The same by a connection that is open. It is closed unless the headers say otherwise."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    kind = "application/cloudevents+json" if body is _EVENT else "application/json"
    lines = {
        "host": "127.0.0.1",
        "content-type": kind,
        "content-length": str(len(data)),
        "connection": "close",
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    reader, writer = way
    writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + data)
    answered = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_S)
    length = re.search(rb"content-length: (\d+)", answered)
    expected = int(length[1]) if length and method != "HEAD" else 0
    text = await asyncio.wait_for(reader.readexactly(expected), ANSWER_S) if expected else b""
    if lines["connection"] != "keep-alive":
        writer.close()
    return int(answered.split(b" ")[1]), text.decode(errors="replace")


def code_in(text: str) -> str:
    """The code of the problem that this is."""
    code = re.search(r'"code":"(T\d+)"', text)
    return code[1] if code else ""
