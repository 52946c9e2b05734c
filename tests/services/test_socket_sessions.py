"""WebSockets without a socket: what a session answers, when it waits, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from wires import CLIENT, Wire, stream, trimmed
from wsproto import ConnectionType, WSConnection
from wsproto.events import CloseConnection, Message, Ping, Pong, Request, TextMessage
from wsproto.frame_protocol import CloseReason

from manual_runtime import ManualRuntime
from tocsin.access.decision import DecidedBy, deny_all
from tocsin.errors import BadRequest, NotAllowed
from tocsin.event.filter import Filter
from tocsin.services.blackboard.board import Board
from tocsin.services.blackboard.socket import BoardSocket
from tocsin.services.streams import websocket
from tocsin.services.streams.event_socket import EventSocket
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.services.streams.transport import SocketLimits
from tocsin.services.streams.websocket import PING_S, PONG_S_MAX, UpgradeRequest, WebSocketSession
from tocsin.wire.api.stream_request import read_board_request
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.write import socket_message

LIMITS = SocketLimits(Limits(), 10_000, 3)


def structured(number: int) -> dict[str, object]:
    return {"specversion": "1.0", "id": str(number), "source": "/s", "type": "t", "topic": "a/b"}


# WebSockets

MakeSocket = Callable[[ManualRuntime, Wire, UpgradeRequest], WebSocketSession]


def event_socket(runtime: ManualRuntime, wire: Wire, request: UpgradeRequest) -> WebSocketSession:
    frames = FrameCache(socket_message)
    return EventSocket(runtime.port, CLIENT, LIMITS, wire, request, frames)


def board_socket(runtime: ManualRuntime, wire: Wire, request: UpgradeRequest) -> WebSocketSession:
    board = Board(runtime.port)
    return BoardSocket(runtime.port, CLIENT, LIMITS, wire, request, board)


class SocketClient:
    """A WebSocket client that talks to a session, byte by byte as they would be sent."""

    def __init__(
        self,
        runtime: ManualRuntime,
        make: MakeSocket = event_socket,
        target: str = "/events/socket",
    ) -> None:
        self.runtime = runtime
        self.wire = Wire()
        self._protocol = WSConnection(ConnectionType.CLIENT)
        raw = self._protocol.send(Request(host="localhost", target=target))
        lines = raw.split(b"\r\n")[1:-2]
        headers = [(name.lower(), value) for name, _, value in (x.partition(b": ") for x in lines)]
        self.session = make(runtime, self.wire, UpgradeRequest(target, headers))
        self.session.start()
        assert [type(each).__name__ for each in self.events()] == ["AcceptConnection"]

    def events(self) -> list[Any]:
        self._protocol.receive_data(self.wire.taken())
        return list(self._protocol.events())

    def messages(self) -> list[Any]:
        return [json.loads(each.data) for each in self.events() if isinstance(each, TextMessage)]

    def closed(self) -> CloseReason | int | None:
        found = [each.code for each in self.events() if isinstance(each, CloseConnection)]
        return found[0] if found else None

    def send(self, message: object) -> None:
        self.send_text(json.dumps(message))

    def send_text(self, text: str, *, is_finished: bool = True) -> None:
        message = TextMessage(data=text, message_finished=is_finished)
        self.session.received(self._protocol.send(message))

    def send_raw(self, event: Any) -> None:
        self.session.received(self._protocol.send(event))


def test_what_is_published_by_socket_is_answered_once_it_is_on_disk() -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)
    runtime.is_disk_slow = True
    client.send(structured(1))
    runtime.settle()
    assert client.messages() == []

    runtime.is_disk_slow = False
    runtime.settle()

    answer, delivered = client.messages()
    assert answer == {"accepted": 1, "first": 1, "last": 1, "duplicates": 0}
    assert (delivered["id"], delivered["tocsinsequence"]) == ("1", "1")


def test_a_refusal_waits_for_the_answers_before_it() -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)
    runtime.is_disk_slow = True
    client.send(structured(1))
    client.send({"id": "no event"})
    runtime.settle()
    assert client.messages() == []

    runtime.is_disk_slow = False
    runtime.settle()

    first, second, *_ = client.messages()
    assert first["accepted"] == 1
    assert second["status"] == 400
    assert client.wire.refused == 1


def test_a_client_is_not_read_from_while_too_much_of_it_waits_for_the_disk() -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)
    runtime.is_disk_slow = True
    for number in range(LIMITS.unanswered_max):
        assert not client.wire.is_paused
        client.send(structured(number))
    assert client.wire.is_paused
    client.send(structured(99))
    runtime.settle()

    runtime.is_disk_slow = False
    runtime.settle()

    assert not client.wire.is_paused
    answers = [each for each in client.messages() if "accepted" in each]
    assert [each["first"] for each in answers] == [1, 2, 3, 4]


def test_a_client_that_reads_no_answers_is_not_read_from() -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)
    client.wire.is_full = True

    client.send(structured(1))

    assert client.wire.is_paused
    client.wire.is_full = False
    client.session.writable()
    assert not client.wire.is_paused


def test_a_burst_gives_others_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime, board_socket, "/blackboard/socket")
    monkeypatch.setattr(websocket, "TURN_S", -1.0)  # every message takes a whole turn

    client.session.received(
        b"".join(
            client._protocol.send(TextMessage(data=json.dumps({"unsubscribe": True, "ref": ref})))
            for ref in range(3)
        )
    )

    assert [each["ref"] for each in client.messages()] == [0]
    assert client.wire.is_paused
    runtime.pass_s(0.0)
    assert [each["ref"] for each in client.messages()] == [1, 2]
    assert not client.wire.is_paused


@pytest.mark.parametrize(
    ("send", "code"),
    [
        (lambda client: client.send_text("x" * 10_001), CloseReason.MESSAGE_TOO_BIG),
        (lambda client: client.send_raw(Message(data=b"x")), CloseReason.UNSUPPORTED_DATA),
        (lambda client: client.session.received(b"\xff\xff"), CloseReason.PROTOCOL_ERROR),
        (lambda client: client.session.stop(), CloseReason.GOING_AWAY),
        (lambda client: client.session.end("slow"), CloseReason.GOING_AWAY),
    ],
)
def test_a_socket_is_closed_with_the_code_that_says_why(
    send: Callable[[SocketClient], None], code: CloseReason
) -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)

    send(client)

    assert client.closed() == code
    assert client.wire.is_closed
    assert runtime.streams_open == 0


def test_a_message_in_parts_needs_room_while_it_is_incomplete() -> None:
    client = SocketClient(ManualRuntime())
    client.send_text("{", is_finished=False)
    assert client.closed() is None

    client.wire.has_room = False
    client.send_text(" ", is_finished=False)

    assert client.closed() == CloseReason.TRY_AGAIN_LATER


def test_who_does_not_answer_a_ping_is_cut_off() -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)
    runtime.pass_s(PING_S)
    assert client.session.tick() == pytest.approx(PONG_S_MAX)
    assert [type(each) for each in client.events()] == [Ping]

    runtime.pass_s(PONG_S_MAX)
    client.session.tick()

    assert client.wire.is_aborted


def test_who_answers_a_ping_stays() -> None:
    runtime = ManualRuntime()
    client = SocketClient(runtime)
    runtime.pass_s(PING_S)
    client.session.tick()
    client.send_raw(Pong())

    runtime.pass_s(PONG_S_MAX)

    assert client.session.tick() == pytest.approx(PING_S - PONG_S_MAX)
    assert not client.wire.is_aborted


def test_a_socket_that_begins_in_what_was_trimmed_is_told_how_much_is_gone() -> None:
    runtime = trimmed(through=7, last=9)

    client = SocketClient(runtime, target="/events/socket?after=2")
    runtime.settle()

    dropped, *events = client.messages()
    assert dropped == {"dropped": 5}
    assert [each["tocsinsequence"] for each in events] == ["8", "9"]


def test_what_is_no_handshake_is_refused_and_opens_nothing() -> None:
    runtime, wire = ManualRuntime(), Wire()
    request = UpgradeRequest("/events/socket", [(b"host", b"localhost")])

    with pytest.raises(BadRequest, match="handshake"):
        event_socket(runtime, wire, request).start()

    assert runtime.streams_open == 0
    assert wire.written == b""


def test_who_may_not_gets_no_socket_of_either_kind() -> None:
    runtime = ManualRuntime(access=DecidedBy(deny_all))

    for make, target in ((event_socket, "/events/socket"), (board_socket, "/blackboard/socket")):
        with pytest.raises(NotAllowed):
            SocketClient(runtime, make, target)

    assert runtime.streams_open == 0


# The blackboard by socket


def board_client(runtime: ManualRuntime) -> SocketClient:
    return SocketClient(runtime, board_socket, "/blackboard/socket")


def test_a_subscriber_by_socket_gets_the_pairs_it_asked_for() -> None:
    runtime = ManualRuntime()
    client = board_client(runtime)
    client.send({"subscribe": ["RunId"], "ref": "s"})
    client.send({"publish": [{"pairs": {"RunId": "r1", "ExitCode": "0"}}], "ref": "p"})
    runtime.settle()

    subscribed, published, message = client.messages()
    assert (subscribed["after"], subscribed["ref"]) == (0, "s")
    assert (published["accepted"], published["ref"]) == (1, "p")
    assert message["pairs"] == {"RunId": "r1"}


def test_a_publisher_by_socket_hears_of_another_profile_and_of_the_latest_alone() -> None:
    runtime = ManualRuntime()
    client = board_client(runtime)
    board: Board = client.session._board  # type: ignore[attr-defined]
    client.send({"register": True})
    [first] = client.messages()
    client.wire.is_full = True
    for concept in ("RunId", "ExitCode"):
        runtime.port.open_stream(
            CLIENT, stream(runtime, Wire()), read_board(concept), None, "another"
        )
        board.interest_changed()
    assert client.messages() == []

    client.wire.is_full = False
    client.session.writable()

    [latest] = client.messages()
    assert latest["profile"]["version"] > first["profile"]["version"]
    assert {"RunId", "ExitCode"} <= set(latest["profile"]["concepts"])


def test_who_leaves_is_sent_no_profile() -> None:
    runtime = ManualRuntime()
    client = board_client(runtime)
    board: Board = client.session._board  # type: ignore[attr-defined]
    client.send({"register": True})

    client.session.lost()

    assert board.on_profile == []


def read_board(concept: str) -> Filter:
    return read_board_request(f"concepts={concept}".encode(), None).filter
