"""An endpoint that forgets to ask is found: each test makes one forget."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames_walk import walk_frames
from http_walk import walk_http
from refusing import Refusing, Walk, run
from soap_walk import walk_soap, walk_soap_tcp
from sockets_walk import walk_sockets
from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.session import internal
from tocsin.broker.engine import Replier
from tocsin.drivers.http.rest import app
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, Open
from tocsin.event.event import Event
from tocsin.services.blackboard.board import Board
from tocsin.services.blackboard.messages import message_events
from tocsin.services.blackboard.socket import BoardSocket
from tocsin.services.directory.directory import Directory
from tocsin.services.discovery.resources import Resources
from tocsin.services.performance import subscribe_rules
from tocsin.services.performance.service import PerformanceService
from tocsin.services.performance.session import PerformanceSession
from tocsin.services.soap.call import ACCEPTED, Reply
from tocsin.services.soap.call import Request as SoapRequest
from tocsin.services.streams.event_socket import EventSocket, _Publication
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.write import write


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


@pytest.mark.parametrize(
    ("service", "path"), [(Resources, "/resources"), (Directory, "/directory")]
)
def test_a_service_that_does_not_ask_is_found(
    service: type, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_may", lambda *_: None)

    async def script(broker: Refusing) -> None:
        wrong = await walk_http(broker)

        assert wrong
        assert all(path in each for each in wrong)

    run(tmp_path, script)


def test_a_control_message_that_is_sent_unasked_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(broker: Refusing) -> None:
        assert broker.app.control is not None
        monkeypatch.setattr(broker.app.control._port, "check", lambda *_: None)

        wrong = await walk_http(broker)

        assert "POST /topics/messages: 202 " in wrong

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


def _publish_in_board(self: BoardSocket, body: bytes, reply: Replier) -> None:
    events = message_events(body, self._limits.event, self._port.runtime.new_id)
    self._port.submit(internal("socket"), events, reply)


def _publish_event(self: EventSocket, text: str) -> None:
    events = read_events("application/cloudevents+json", {}, text.encode(), self._limits.event)
    self._port.submit(internal("socket"), events, _Publication(self._new_reply()))


@pytest.mark.parametrize(
    ("session", "method", "forgetful", "found"),
    [
        (BoardSocket, "_publish", _publish_in_board, "/blackboard/socket publish"),
        (BoardSocket, "_subscribe", lambda *_: {"subscribed": 1}, "/blackboard/socket subscribe"),
        (Board, "check_read", lambda *_: None, "/blackboard/socket register"),
        (EventSocket, "_message", _publish_event, "/events/socket"),
    ],
)
def test_a_message_of_a_socket_that_does_not_ask_is_found(
    session: type,
    method: str,
    forgetful: object,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, method, forgetful)

    async def script(broker: Refusing) -> None:
        wrong = await walk_sockets(broker)

        assert [each.partition(":")[0] for each in wrong] == [found]

    run(tmp_path, script)
