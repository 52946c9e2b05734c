"""Where nobody may do anything, no endpoint does anything: so none of them forgot to ask.

Another protocol joins by one more entry in WALKS, which makes every call that it has."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest
import uvloop
from frames_walk import post, requests, walk_frames
from http_walk import BODIES, OPEN, SOCKET, ask, example_of, walk_http
from link_walk import walk_dialled_link, walk_link
from pegasus_walk import walk_pegasus
from refusing import Refusing, Walk, run
from soap_walk import OPEN as OPEN_OPERATIONS
from soap_walk import PATHS, answer_to, envelope, walk_operations, walk_soap, walk_soap_tcp
from sockets_walk import walk_sockets

from tocsin.access.decision import Action, DecidedBy, allow_all, deny_all, not_allowed
from tocsin.access.resources import KINDS, kind_of
from tocsin.access.session import BROKER, Principal, Session, anonymous, internal
from tocsin.config import load
from tocsin.drivers.box_serve import MailboxListener
from tocsin.drivers.http import connection as connection_module
from tocsin.drivers.http.rest import app
from tocsin.drivers.http.rest.endpoint import Open
from tocsin.drivers.logger import Logger
from tocsin.drivers.plugins import BUILT_IN, DIALECTS
from tocsin.drivers.soap_services import MailboxNode, soap_context
from tocsin.errors import NotAllowed
from tocsin.event.event import Event
from tocsin.services.soap.paths import PREFIXES, WHOLE, is_soap_path
from tocsin.services.soap_services import mailbox_dispatcher
from tocsin.wire.api.openapi.document import description
from tocsin.wire.gma.write import write
from tocsin.wire.soap import names

OPEN_OF_BOXES = ("/livez", "/readyz")  # what a box service has beside its operations
REST = Path(app.__file__).parent
WALKS: dict[str, tuple[Walk, ...]] = {  # by the dialect that opens the listeners
    "http": (walk_http, walk_sockets, walk_soap),
    "frames": (walk_frames,),
    "soap_tcp": (walk_soap_tcp,),
    "pegasus": (walk_pegasus,),
    "link": (walk_link, walk_dialled_link),
}


@pytest.mark.parametrize("walk", [each for walks in WALKS.values() for each in walks])
def test_whoever_may_do_nothing_is_refused_everywhere(walk: Walk, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        before = broker.stored()

        assert await walk(broker) == []
        assert broker.stored() == before
        assert broker.reads == []
        asked = {resource for action, resource in broker.asked if action is not Action.PUBLISH}
        assert {kind_of(resource) for resource in asked} <= set(KINDS)

    run(tmp_path, script)


def test_what_is_read_of_memory_and_of_the_monitor_is_seen(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        assert (await ask(broker.http.port, "GET", "/runs"))[0] == 200
        assert broker.reads
        broker.reads.clear()
        assert b"Response" in await answer_to(broker, names.WSN13, "GetCurrentMessage")
        assert broker.reads

    async def published(broker: Refusing) -> None:
        event = Event("2", "/s", "t", topic="a")
        await broker.app.port.publish(internal("test"), [event])
        await script(broker)

    run(tmp_path, published, allow_all)


def test_every_listener_is_walked(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        assert set(BUILT_IN[DIALECTS]) == set(WALKS)
        assert set(WALKS) <= set(broker.listeners)

    run(tmp_path, script)


def test_only_the_broker_itself_holds_the_log_for_its_archive(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        port = broker.app.port
        port.hold_for_archive(internal("archive"), 0)

        with pytest.raises(NotAllowed):
            port.hold_for_archive(anonymous("http"), None)
        with pytest.raises(NotAllowed):
            port.subscription_ids(anonymous("http"))
        assert broker.app.node.broker._state.archived == 0

    run(tmp_path, script)


def test_the_walk_knows_every_path_of_soap() -> None:
    assert set(WHOLE) <= set(PATHS)
    assert all(any(path.startswith(prefix) for path in PATHS) for prefix in PREFIXES)


def test_soap_operations_that_are_listed_as_open_are_open(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        for namespace, name in OPEN_OPERATIONS:
            assert b"Response" in await answer_to(broker, namespace, name)

    run(tmp_path, script)


def test_routes_are_made_of_endpoints_alone() -> None:
    makers = {
        path.name
        for path in REST.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "starlette.routing"
    }

    assert makers == {"app.py", "endpoint.py"}
    assert "Route(" not in (REST / "app.py").read_text()


def test_every_stream_and_socket_is_in_the_table_of_what_stays_open(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        stays_open = {
            path
            for path, methods in description()["paths"].items()
            if "101" in (answers := methods.get("get", {}).get("responses", {}))
            or "text/event-stream" in answers.get("200", {}).get("content", {})
        }

        assert set(broker.http.long_lived) == stays_open
        assert stays_open <= {each.path for each in broker.endpoints() if each.method == "GET"}

    run(tmp_path, script)


def test_what_is_listed_as_open_is_open(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        endpoints = broker.endpoints()

        assert {each.path for each in endpoints if isinstance(each.access, Open)} == set(OPEN)
        assert await ask(broker.http.port, "GET", "/livez") == (200, "")

    run(tmp_path, script)


def test_each_request_is_decided_by_its_own_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads that were read before are shared by all connections; who sends them is not."""
    asked: list[tuple[str, str]] = []

    def decide(session: Session, action: Action, resource: str) -> None:
        if action is Action.PUBLISH and session.endpoint == "http":
            asked.append((session.principal.name, session.peer))
            if session.principal.name != "ann":
                raise not_allowed(session, action, resource)

    def by_credential(
        connection: connection_module.Connection, headers: dict[bytes, bytes]
    ) -> Session:
        name = headers.get(b"authorization", headers.get(b"cookie", b"anonymous")).decode()
        return Session(Principal(name), "http", connection.peer)

    monkeypatch.setattr(connection_module, "session_of", by_credential)
    event = json.dumps(BODIES["POST /events"]).encode()

    def post(credential: str = "") -> bytes:
        head = "POST /events HTTP/1.1\r\nhost: x.localhost\r\n"
        kind = "content-type: application/cloudevents+json\r\n"
        return f"{head}{credential}{kind}content-length: {len(event)}\r\n\r\n".encode() + event

    async def script(broker: Refusing) -> None:
        ways = [await asyncio.open_connection("127.0.0.1", broker.http.port) for _ in range(2)]
        heads = ("", "authorization: ann\r\n", "", "cookie: bob\r\n", "authorization: ann\r\n", "")
        names = ("anonymous", "ann", "anonymous", "bob", "ann", "anonymous")
        for credential, name in zip(heads, names, strict=True):
            for reader, writer in ways:
                writer.write(post(credential))
                answered = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                length = int(answered.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                host, port = writer.get_extra_info("sockname")[:2]

                assert asked[-1] == (name, f"{host}:{port}")
                assert answered.split(b" ")[1] == (b"202" if name == "ann" else b"403")
        for _, writer in ways:
            writer.close()
        remembered = broker.http.server.heads.find

        assert remembered(post()) is not None
        assert remembered(post("authorization: ann\r\n")) is None
        assert remembered(post("cookie: bob\r\n")) is None

    run(tmp_path, script, decide)


def test_whatever_is_asked_by_http_is_decided_by_the_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[tuple[str, str]] = set()

    def decide(session: Session, action: Action, resource: str) -> None:
        if session.principal != BROKER:
            asked.add((session.principal.name, session.endpoint))
            raise not_allowed(session, action, resource)

    def by_credential(
        connection: connection_module.Connection, headers: dict[bytes, bytes]
    ) -> Session:
        name = headers.get(b"authorization", b"nobody").decode()
        return Session(Principal(name), "http", connection.peer)

    for name, module in list(sys.modules.items()):
        if name.startswith("tocsin.drivers.http.") and hasattr(module, "session_of"):
            monkeypatch.setattr(module, "session_of", by_credential)
    ann = {"authorization": "ann"}
    soap = {**ann, "content-type": "text/xml"}

    async def script(broker: Refusing) -> None:
        async def deciders(request: Awaitable[object]) -> set[tuple[str, str]]:
            asked.clear()
            await request
            return set(asked)

        port = broker.http.port
        subscribe = envelope("1.2", names.WSE11, "Subscribe", "urn:x")
        for path in ("/soap", "/axis2/services/EventingService"):
            found = await deciders(ask(port, "POST", path, subscribe, soap))
            assert found == {("ann", "soap")}, path
        for path in broker.http.long_lived:
            is_socket = path.endswith("/socket")
            headers = {**ann, **SOCKET} if is_socket else ann
            found = await deciders(ask(port, "GET", example_of(path), headers=headers))
            assert found == {("ann", "websocket" if is_socket else "http")}, path
        for target in ("/gma", "/gma?role=consumer"):
            message = write(next(requests()))
            found = await deciders(post(broker, target, message, "authorization: ann\r\n"))
            assert found == {("ann", "http")}, target
        found = await deciders(ask(port, "POST", "/events", BODIES["POST /events"], ann))
        assert found == {("ann", "http")}
        assert await deciders(ask(port, "GET", "/topics", headers=ann)) == {("ann", "http")}

    run(tmp_path, script, decide)


def test_only_a_connection_takes_a_client_by_http_for_anonymous() -> None:
    makers = {
        path.name
        for path in Path(connection_module.__file__).parent.rglob("*.py")
        if "anonymous(" in path.read_text()
    }

    assert makers == {"transport.py"}


def test_a_publisher_needs_no_right_to_manage(tmp_path: Path) -> None:
    """What registrations and reliable sequences keep is kept by the broker itself."""
    asked: list[tuple[Action, str]] = []

    def decide(session: Session, action: Action, resource: str) -> None:
        if session.principal != BROKER:
            asked.append((action, resource))
            if action is Action.MANAGE:
                raise not_allowed(session, action, resource)

    async def script(broker: Refusing) -> None:
        for namespace, name in (
            (names.BR13, "RegisterPublisher"),
            (names.WSRM11, "CreateSequence"),
        ):
            assert f"{name}Response".encode() in await answer_to(broker, namespace, name)

    run(tmp_path, script, decide)

    assert (Action.PUBLISH, "*") in asked
    assert (Action.PUBLISH, "endpoint/soap") in asked


def test_a_box_service_alone_asks_too(tmp_path: Path) -> None:
    """It has a listener of its own, with fewer paths and operations."""

    async def main() -> None:
        settings, _ = load({"log.directory": str(tmp_path)}, {})
        boxes = MailboxNode(settings, Logger(), access=DecidedBy(deny_all))
        app_of_boxes = boxes.open()
        dispatcher = mailbox_dispatcher(soap_context(app_of_boxes), boxes.mailboxes)
        listener = MailboxListener(boxes, dispatcher.answer)
        await listener.open("127.0.0.1:0", None)
        app_of_boxes.addresses.http = listener.address
        try:
            assert await walk_operations(dispatcher, listener, publishes=False) == []
            wrong = []
            for endpoint in app.endpoints(listener._context, listener.server):
                if is_soap_path(endpoint.path) and endpoint.method == "POST":
                    continue
                target = example_of(endpoint.path)
                body = BODIES.get(f"{endpoint.method} {endpoint.path}")
                status, _ = await ask(listener.port, endpoint.method, target, body)
                if status != (200 if endpoint.path in OPEN_OF_BOXES else 404):
                    wrong.append(f"{endpoint.method} {target}: {status}")
            assert wrong == []
            assert app_of_boxes.port.head == 0
            assert app_of_boxes.port.views(internal("test")) == []
        finally:
            await listener.close()
            dispatcher.close()
            await boxes.close()

    uvloop.run(main())
