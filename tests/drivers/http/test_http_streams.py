"""`GET /events/stream` and `/events/socket`: events as they come, at the reader's pace."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from raw_http import Raw, get, once, post, structured
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    Pong,
    Request,
    TextMessage,
)

from served import Served, served


class Stream(Raw):
    """A reader of server-sent events."""

    def __init__(self, address: str, query: str = "", extra: str = "", **options: Any) -> None:
        super().__init__(address, **options)
        self.send(get(f"/events/stream{query}", extra))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.file.readline()
        assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
        assert b"text/event-stream" in head

    def next(self) -> dict[str, str]:
        """The next event that is no comment and no hint about retrying."""
        while True:
            fields: dict[str, str] = {}
            while line := self.file.readline().decode().rstrip("\n"):
                name, _, value = line.partition(": ")
                fields[name] = value
            if "data" in fields:
                return fields


def publish(address: str, *ids: str, **members: object) -> None:
    for event_id in ids:
        assert once(address, post(structured(event_id, **members))).status == 202


def test_a_stream_has_each_event_with_its_sequence_number(broker: Served) -> None:
    with Stream(broker.address) as stream:
        publish(broker.address, "a", "b", topic="lead/ohio", data={"load5": 7})

        first, second = stream.next(), stream.next()

    assert int(second["id"]) == int(first["id"]) + 1
    event = json.loads(first["data"])
    assert (event["id"], event["topic"], event["data"]) == ("a", "lead/ohio", {"load5": 7})


def test_a_payload_with_line_breaks_stays_one_line_and_the_same_json(broker: Served) -> None:
    body = b'{"specversion":"1.0","id":"lines","source":"/s","type":"t","data":{\r\n "a":\n 1}}'
    with Stream(broker.address) as stream:
        assert once(broker.address, post(body)).status == 202

        assert json.loads(stream.next()["data"])["data"] == {"a": 1}


def test_a_filter_lets_only_its_events_through(broker: Served) -> None:
    with Stream(broker.address, "?filter=topic%20only/this%20and%20load5%20%3E=%205") as stream:
        publish(broker.address, "f1", topic="only/that", data={"load5": 9})
        publish(broker.address, "f2", topic="only/this", data={"load5": 1})
        publish(broker.address, "f3", topic="only/this", data={"load5": 5})

        assert json.loads(stream.next()["data"])["id"] == "f3"


def test_a_reader_resumes_after_the_last_event_it_saw(broker: Served) -> None:
    with Stream(broker.address) as stream:
        publish(broker.address, "r1", "r2", "r3")
        seen = stream.next()["id"]

    with Stream(broker.address, extra=f"Last-Event-ID: {seen}\r\n") as stream:
        assert json.loads(stream.next()["data"])["id"] == "r2"
        assert json.loads(stream.next()["data"])["id"] == "r3"
    with Stream(broker.address, f"?after={seen}") as stream:
        assert json.loads(stream.next()["data"])["id"] == "r2"


def test_a_stream_from_the_beginning_has_the_whole_log_in_order(broker: Served) -> None:
    head = broker.call("GET", "/events?limit=1000")[1]["next"]
    with Stream(broker.address, "?after=0") as stream:
        numbers = [int(stream.next()["id"]) for _ in range(head)]

    assert numbers == list(range(1, head + 1))


def test_a_reader_that_asks_past_the_end_is_told_where_the_end_is(broker: Served) -> None:
    publish(broker.address, "last of all")
    with Stream(broker.address, "?after=0") as stream:
        event = stream.next()
        while json.loads(event["data"])["id"] != "last of all":
            event = stream.next()

    with Stream(broker.address, "?after=999999999") as stream:
        hint = [stream.file.readline().decode().rstrip() for _ in range(2)]

    assert hint == ["retry: 3000", f"id: {event['id']}"]


@pytest.mark.parametrize("query", ["?after=-1", "?after=x", "?filter=%3E%3E", "?nothing=1"])
def test_a_stream_that_cannot_be_is_refused_like_any_request(broker: Served, query: str) -> None:
    answer = once(broker.address, get(f"/events/stream{query}"))

    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_reader_that_leaves_is_noticed(broker: Served) -> None:
    def streams_open() -> float:
        page = once(broker.address, get("/metrics")).body.decode()
        (line,) = [each for each in page.splitlines() if each.startswith("tocsin_streams_open ")]
        return float(line.split()[1])

    before = streams_open()
    readers = [Stream(broker.address) for _ in range(3)]
    assert streams_open() == before + 3

    for reader in readers:
        reader.__exit__()

    assert _soon(lambda: streams_open() == before)


def test_a_reader_that_takes_nothing_is_cut_off_and_the_others_go_on(strict: Served) -> None:
    with (
        Stream(strict.address, receive_buffer=4096) as stuck,
        Stream(strict.address) as brisk,
    ):
        for number in range(60):
            publish(strict.address, f"big-{number}", data="x" * 100_000)
            assert json.loads(brisk.next()["data"])["id"] == f"big-{number}"

        assert _soon(lambda: "did not read for too long" in strict.said(), 8)
        stuck.rest()
    assert "stream to 127.0.0.1" in strict.said()


def test_when_the_broker_stops_every_stream_hears_goodbye_within_a_second() -> None:
    with served() as running:
        box = running.call("POST", "/boxes", {})[1]["messages"]
        with (
            Stream(running.address) as stream,
            Socket(running.address) as socket,
            Raw(running.address) as waiting,
            Raw(running.address) as idle,
        ):
            waiting.send(get(f"{box}?wait=30"))
            assert idle.send(get("/livez")).answer().status == 200
            time.sleep(0.2)
            began = time.monotonic()

            assert running.stop() == 0

            assert time.monotonic() - began < 1.5
            bye = stream.next()
            assert (bye["event"], json.loads(bye["data"])) == (
                "bye",
                {"reason": "the broker is stopping"},
            )
            closed = socket.next()
            assert isinstance(closed, CloseConnection)
            assert closed.code == 1001
            assert waiting.answer().status in (200, 503)
            assert idle.rest() == b""


# Sockets


class Socket(Raw):
    """A WebSocket client."""

    def __init__(self, address: str, query: str = "", **options: Any) -> None:
        super().__init__(address, **options)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        target = f"/events/socket{query}"
        request = Request(host="localhost", target=target, subprotocols=["cloudevents.json"])
        self.send(self.protocol.send(request))
        self.events = self._events()
        accepted = next(self.events)
        assert isinstance(accepted, AcceptConnection), accepted
        assert accepted.subprotocol == "cloudevents.json"

    def _events(self) -> Iterator[Event]:
        while True:
            yield from self.protocol.events()
            data = self.socket.recv(65536)
            self.protocol.receive_data(data or None)

    def say(self, event: Event) -> Socket:
        self.send(self.protocol.send(event))
        return self

    def next(self) -> Any:
        """The next message as JSON, or another event as it is."""
        text = ""
        for event in self.events:
            if not isinstance(event, TextMessage):
                return event
            text += event.data
            if event.message_finished:
                return json.loads(text)
        raise AssertionError("no end")


def test_a_socket_has_each_event_as_a_text_message(broker: Served) -> None:
    with Socket(broker.address, "?filter=topic%20sock/**") as socket:
        publish(broker.address, "w1", topic="sock/a", data="x")
        publish(broker.address, "w2", topic="sock/a", data="x" * 300)
        publish(broker.address, "w3", topic="sock/a", data="x" * 70_000)

        events = [socket.next() for _ in range(3)]

    assert [event["id"] for event in events] == ["w1", "w2", "w3"]
    assert [len(event["data"]) for event in events] == [1, 300, 70_000]


def test_a_socket_is_resumed_where_the_last_event_says(broker: Served) -> None:
    query = "?filter=topic%20resumed"
    with Socket(broker.address, query) as socket:
        publish(broker.address, "z1", "z2", topic="resumed", data=1)
        place = socket.next()["tocsinsequence"]

    with Socket(broker.address, f"{query}&after={place}") as socket:
        assert socket.next()["id"] == "z2"


def test_what_a_socket_says_is_published_and_answered_in_order(broker: Served) -> None:
    with Socket(broker.address, "?filter=topic%20nowhere") as socket:
        for body in (structured("said-1"), b"{}", structured("said-2"), b"no json"):
            socket.say(TextMessage(body.decode()))

        answers = [socket.next() for _ in range(4)]

    assert answers[0]["accepted"] == 1
    assert answers[1]["code"] == "T101"
    assert answers[2]["first"] == answers[0]["first"] + 1
    assert answers[3]["code"] == "T101"


def test_a_socket_that_says_much_and_reads_nothing_is_made_to_wait_until_it_reads(
    broker: Served,
) -> None:
    query = "?filter=topic%20nowhere"
    with Socket(broker.address, query, receive_buffer=4096) as socket:
        ping = socket.protocol.send(Ping(b"x" * 125))
        said = 0
        socket.socket.settimeout(1)
        until = time.monotonic() + 5
        is_waiting = False  # if it never is, the broker reads on, and keeps the answers
        while not is_waiting and time.monotonic() < until:
            try:
                said += socket.socket.send(ping * 100)
            except TimeoutError:
                is_waiting = True

        assert is_waiting
        socket.socket.settimeout(20)
        assert all(isinstance(socket.next(), Pong) for _ in range(said // len(ping)))


def test_a_message_in_many_frames_is_one_event(broker: Served) -> None:
    text = structured("in-parts").decode()
    with Socket(broker.address, "?filter=topic%20nowhere") as socket:
        for part in (text[:10], text[10:20]):
            socket.say(Message(data=part, message_finished=False))
        socket.say(Message(data=text[20:], message_finished=True))

        assert socket.next()["accepted"] == 1


def test_a_socket_answers_a_ping(broker: Served) -> None:
    with Socket(broker.address) as socket:
        pong = socket.say(Ping(b"there?")).next()

    assert isinstance(pong, Pong)
    assert pong.payload == b"there?"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (BytesMessage(b"\0"), 1003),
        (TextMessage("x" * 1_100_000), 1009),
        (CloseConnection(code=1000, reason="done"), 1000),
    ],
    ids=["binary", "too large", "goodbye"],
)
def test_a_socket_is_closed_with_the_code_that_says_why(
    broker: Served, said: Event, code: int
) -> None:
    with Socket(broker.address) as socket:
        closed = socket.say(said).next()

    assert isinstance(closed, CloseConnection)
    assert closed.code == code


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"\x81\x05hello", b"\x83\x80\0\0\0\0"])
def test_garbage_on_a_socket_closes_it(broker: Served, garbage: bytes) -> None:
    with Socket(broker.address) as socket:
        socket.send(garbage)

        closed = socket.next()

    assert isinstance(closed, CloseConnection)
    assert closed.code == 1002


def test_a_plain_get_of_the_socket_is_told_what_it_is(broker: Served) -> None:
    answer = once(broker.address, get("/events/socket"))

    assert answer.status == 400
    assert "WebSocket" in answer.json["detail"]


def test_what_follows_the_handshake_at_once_is_not_lost(broker: Served) -> None:
    protocol = WSConnection(ConnectionType.CLIENT)
    opening = protocol.send(Request(host="localhost", target="/events/socket?filter=topic%20no"))
    # A masked text frame, as a client would make it once the handshake is through.
    body = structured("eager")
    frame = bytes([0x81, 0x80 | len(body)]) + b"\0\0\0\0" + body
    assert len(body) < 126
    with Raw(broker.address) as raw:
        raw.send(post(structured("before")) + opening + frame)
        assert raw.answer().status == 202
        received = b""
        while b'"accepted"' not in received:
            received += raw.file.read1(65536)

    assert received.startswith(b"HTTP/1.1 101 ")


def _soon(holds: Any, patience_s: float = 5.0) -> bool:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False
