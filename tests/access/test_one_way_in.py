"""Where nobody may do anything, no endpoint does anything: so none of them forgot to ask.

Another protocol joins by one more entry in WALKS, which makes every call that it has.
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from frames_walk import walk_frames
from http_walk import BODIES, OPEN, ask, walk_http
from pegasus_walk import walk_pegasus
from refusing import Refusing, Walk, refusing
from soap_walk import CODE, PATHS, answer_to, envelope, walk_soap, walk_soap_tcp
from soap_walk import OPEN as OPEN_OPERATIONS
from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.decision import Action, Decide, deny_all, not_allowed
from tocsin.access.session import BROKER, Principal, Session, anonymous, internal
from tocsin.config import load
from tocsin.drivers.http import connection as connection_module
from tocsin.drivers.http.rest import app
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, Open
from tocsin.drivers.notes import Notes
from tocsin.drivers.soap_services import MailboxNode, soap_context
from tocsin.errors import NotAllowed
from tocsin.event.event import Event
from tocsin.services.performance import subscribe_rules
from tocsin.services.performance.service import PerformanceService
from tocsin.services.performance.session import PerformanceSession
from tocsin.services.soap.call import ACCEPTED, Reply, SoapCall
from tocsin.services.soap.call import Request as SoapRequest
from tocsin.services.soap.paths import PREFIXES, WHOLE
from tocsin.services.soap_services import mailbox_dispatcher
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.write import write
from tocsin.wire.soap import names

REST = Path(app.__file__).parent
WALKS: dict[str, Walk] = {
    "http": walk_http,
    "pegasus": walk_pegasus,
    "frames": walk_frames,
    "soap": walk_soap,
    "soap-tcp": walk_soap_tcp,
}


def run(
    directory: Path, script: Callable[[Refusing], Awaitable[None]], decide: Decide = deny_all
) -> None:
    async def main() -> None:
        async with refusing(directory, decide) as broker:
            await script(broker)

    uvloop.run(main())


@pytest.mark.parametrize("name", WALKS)
def test_whoever_may_do_nothing_is_refused_everywhere(name: str, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        before = broker.stored()

        assert await WALKS[name](broker) == []
        assert broker.stored() == before
        assert broker.reads == []

    run(tmp_path, script)


@pytest.mark.parametrize("access", [BY_PORT, Open("nobody thought about it")])
def test_an_endpoint_that_does_not_ask_is_found(
    access: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forgotten(request: Request) -> Response:
        return Response()

    known = app.endpoints
    later = Endpoint("GET", "/forgotten", forgotten, access)  # type: ignore[arg-type]
    monkeypatch.setattr(app, "endpoints", lambda *parts: [*known(*parts), later])

    async def script(broker: Refusing) -> None:
        wrong = await walk_http(broker)

        assert wrong
        assert all("/forgotten" in each for each in wrong)

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


@pytest.mark.parametrize("walk", [walk_soap, walk_soap_tcp])
def test_a_soap_operation_that_does_not_ask_is_found(walk: Walk, tmp_path: Path) -> None:
    async def forgotten(request: SoapRequest) -> Reply:
        return ACCEPTED

    async def script(broker: Refusing) -> None:
        broker.soap.dispatcher.operations["urn:some:service", "Forgotten"] = forgotten

        wrong = await walk(broker)

        assert wrong
        assert all("Forgotten" in each for each in wrong)

    run(tmp_path, script)


def test_the_walk_knows_every_path_of_soap() -> None:
    assert set(WHOLE) <= set(PATHS)
    assert all(any(path.startswith(prefix) for path in PATHS) for prefix in PREFIXES)


def test_soap_operations_that_are_listed_as_open_are_open(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        for namespace, name in OPEN_OPERATIONS:
            assert b"Response" in await answer_to(broker, namespace, name)

    run(tmp_path, script)


async def _names_for_anybody(self: object, request: m.EventNamesRequest, caller: object) -> bytes:
    return write(m.EventNamesReply(request.request_id, names=(EventName("A"),)))


async def _event_for_anybody(self: object, request: m.QueryRequest, caller: object) -> bytes:
    return write(m.QueryReply(request.request_id))


def _publish_for_anybody(self: PerformanceSession, events: list[Event], caller: object) -> object:
    return self._port.publish(internal("performance"), events)


FORGETFUL = {
    "EventNamesRequest": (PerformanceService, "names", _names_for_anybody),
    "QueryRequest": (PerformanceService, "query", _event_for_anybody),
    "UnsubscribeRequest": (PerformanceSession, "_may_end", lambda *_: True),
    "SubscribeRequest": (subscribe_rules, "check_caller", lambda *_: None),
    "EventMessage": (PerformanceSession, "_publish", _publish_for_anybody),
}


@pytest.mark.parametrize("kind", [kind.__name__ for kind in m.REPLY_TO])
def test_a_frame_message_that_does_not_ask_is_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*FORGETFUL[kind])

    async def script(broker: Refusing) -> None:
        before = broker.stored()
        wrong = await walk_frames(broker)

        assert all(kind in each for each in wrong)
        assert {each.split(":")[0] for each in wrong} >= {"frames", "udp", "POST /gma"}
        assert (broker.stored() != before) == (kind == "EventMessage")

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
    async def main() -> None:
        settings, _ = load({"log.directory": str(tmp_path)}, {})
        boxes = MailboxNode(settings, Notes(), decide=deny_all)
        dispatcher = mailbox_dispatcher(soap_context(boxes.open()), boxes.mailboxes)
        message = envelope("1.2", names.MSGBOX, "createMsgBox", "urn:x")
        kind = "application/soap+xml"
        path = "/axis2/services/MsgBoxService"
        call = SoapCall(message, kind, "", path, "", "http://b", anonymous("soap"))
        answer = await dispatcher.answer(call)
        dispatcher.close()
        await boxes.close()
        assert CODE in answer.body

    uvloop.run(main())
