"""Streams of entities: what is for them and nothing else, and as much as they take."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from manual_runtime import ManualRuntime
from tocsin.access.decision import Action, DecidedBy, deny_all, not_allowed
from tocsin.access.session import Principal, Session, internal
from tocsin.errors import (
    Busy,
    ControlRateReached,
    NoEntity,
    NotAllowed,
    TocsinError,
)
from tocsin.event.control_topic import NODES, TOPICS
from tocsin.overlay.control.options import ControlOptions
from tocsin.services.control.bus import ControlBus
from tocsin.services.control.entities import SWEEP_S
from tocsin.services.control.stream import ControlStream
from tocsin.wire.api.control_request import ControlRequest

DEFAULTS = ControlOptions()
SERVICE = internal("test")


class Wire:
    """A transport that keeps what is written, and is full when a test says so."""

    def __init__(self) -> None:
        self.written = b""
        self.is_full = self.is_closed = False

    def begin(self, first: bytes) -> None:
        self.written += first

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def hold(self, size: int) -> bool:
        return True

    def count_refused(self) -> None: ...

    def read(self) -> list[tuple[str, Any]]:
        """The events since the last call: their names and data."""
        found: list[tuple[str, Any]] = []
        for frame in self.written.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in frame.split("\n") if ": " in line)
            if "data" in fields:
                found.append((fields.get("event", ""), json.loads(fields["data"])))
        self.written = b""
        return found


class Site:
    """A broker; who is an entity is called so."""

    def __init__(self, options: ControlOptions = DEFAULTS, access: DecidedBy | None = None) -> None:
        self.runtime = ManualRuntime(**({} if access is None else {"access": access}))
        self.bus = ControlBus(
            self.runtime.port, "here", options, lambda s: s.principal.name.partition(":")[2]
        )

    def open(self, name: str, *, requests: bool = False) -> tuple[ControlStream, Wire]:
        wire = Wire()
        stream = ControlStream(
            self.bus, self.runtime, session_of(name), wire, has_requests=requests
        )
        stream.start()
        return stream, wire

    def send(self, topic: str, body: bytes = b"x", *, to: str = "here") -> None:
        self.bus.send(SERVICE, ControlRequest(topic, "test", body, to))


def session_of(name: str) -> Session:
    return Session(Principal(name), "http", "192.0.2.1:1")


def kinds(wire: Wire) -> list[str]:
    return [name for name, _ in wire.read()]


def test_an_entity_gets_what_is_sent_to_it_and_nothing_of_others() -> None:
    site = Site()
    (_, ann), (_, bob) = site.open("entity:ann"), site.open("entity:bob")
    assert ann.read() == [("open", {"entity": "ann", "broker": "here"})]
    assert kinds(bob) == ["open"]

    site.send("Entity/ann", b"\x00\xff")
    site.send("Entity/annabel")
    site.send(TOPICS, to="*")
    site.send(NODES)

    [(name, message)] = ann.read()
    assert name == "message"
    assert (message["topic"], message["origin"], message["kind"]) == ("Entity/ann", "here", "test")
    assert b64decode(message["body"]) == b"\x00\xff"
    assert bob.read() == []


def test_each_stream_of_an_entity_gets_its_messages_and_one_that_has_left_none() -> None:
    site = Site()
    (first, one), (_, two) = site.open("entity:ann"), site.open("entity:ann")
    first.ended_by_client()
    one.read()
    two.read()

    site.send("Entity/ann")

    assert (kinds(one), kinds(two)) == ([], ["message"])
    assert len(site.bus.entities) == 1


def test_who_answers_requests_gets_those_for_everybody() -> None:
    site = Site()
    (_, ann), (_, bob) = site.open("entity:ann", requests=True), site.open("entity:bob")
    ann.read()
    bob.read()

    site.send(TOPICS, to="*")
    site.send(TOPICS)
    site.send(f"{TOPICS}/tdn", to="here")

    assert (kinds(ann), kinds(bob)) == (["message"], [])


def test_who_is_no_entity_has_no_stream() -> None:
    site = Site()

    with pytest.raises(NoEntity):
        site.open("somebody")
    assert len(site.bus.entities) == 0


def test_a_stream_needs_the_right_to_its_topic_and_one_for_requests_another() -> None:
    asked: list[tuple[Action, str]] = []

    def decide(session: Session, action: Action, resource: str) -> None:
        asked.append((action, resource))
        if resource not in ("filter/topic Entity/ann", "Entity/ann"):
            raise not_allowed(session, action, resource)

    site = Site(access=DecidedBy(decide))
    site.open("entity:ann")
    for refused, requests in (("entity:ann", True), ("entity:bob", False), ("somebody", False)):
        with pytest.raises(NotAllowed):
            site.open(refused, requests=requests)

    assert {action for action, _ in asked} == {Action.SUBSCRIBE}
    assert ("filter/topic " + TOPICS) in {resource for _, resource in asked}
    site.bus.send(session_of("x"), ControlRequest("Entity/ann", "test", b"", "here"))
    with pytest.raises(NotAllowed):
        site.bus.send(session_of("x"), ControlRequest("Entity/bob", "test", b"", "here"))
    assert (Action.PUBLISH, "Entity/bob") in asked


def test_a_stream_ends_with_its_right_also_where_nothing_is_sent() -> None:
    decisions = [lambda *_: None]
    site = Site(access=DecidedBy(lambda *asked: decisions[-1](*asked)))
    (_, ann), (_, bob) = site.open("entity:ann"), site.open("entity:bob")
    ann.read()
    bob.read()
    decisions.append(deny_all)

    site.bus.send(SERVICE, ControlRequest("Entity/ann", "test", b"secret", "here"))

    assert kinds(ann) == ["bye"]
    assert ann.is_closed
    assert not bob.is_closed
    site.runtime.pass_s(SWEEP_S)
    assert kinds(bob) == ["bye"]
    assert bob.is_closed
    assert len(site.bus.entities) == 0


def test_what_a_slow_entity_has_no_room_for_is_dropped_and_it_is_told_in_its_place() -> None:
    site = Site(replace(DEFAULTS, mailbox_messages_max=3))
    stream, wire = site.open("entity:ann")
    wire.is_full = True
    for number in range(5):
        site.send("Entity/ann", b"%d" % number)
    wire.is_full = False
    wire.read()

    stream.writable()

    got = wire.read()
    assert [name for name, _ in got] == ["message"] * 3 + ["dropped"]
    assert got[-1][1] == {"count": 2}
    assert site.bus.entities.dropped == 2
    site.send("Entity/ann", b"later")
    assert kinds(wire) == ["message"]


def test_the_bytes_that_wait_are_bounded_for_one_stream_and_for_all() -> None:
    site = Site(replace(DEFAULTS, mailbox_bytes_max=5_000, mailbox_bytes_total_max=8_000))
    streams = [site.open(f"entity:e{number}") for number in range(3)]
    for _, wire in streams:
        wire.is_full = True
        wire.read()

    for number in range(3):
        for _ in range(10):
            site.send(f"Entity/e{number}", b"x" * 600)

    entities = site.bus.entities
    boxes = [stream._mailbox for stream, _ in streams]
    assert all(box is not None and 0 <= box.bytes <= 5_000 for box in boxes)
    assert 5_000 < entities.waiting_bytes <= 8_000
    got = 0
    for stream, wire in streams:
        wire.is_full = False
        stream.writable()
        told = wire.read()
        got += sum(name == "message" for name, _ in told)
        assert sum(data["count"] for name, data in told if name == "dropped") == 10 - sum(
            name == "message" for name, _ in told
        )
    assert got == 30 - entities.dropped
    assert entities.waiting_bytes == 0


def test_what_waits_for_a_stream_that_ends_is_given_up() -> None:
    site = Site()
    stream, wire = site.open("entity:ann")
    wire.is_full = True
    site.send("Entity/ann", b"x" * 10_000)
    assert site.bus.entities.waiting_bytes > 10_000

    stream.ended_by_client()

    assert site.bus.entities.waiting_bytes == 0


def test_an_entity_is_sent_no_more_than_its_rate_and_told_what_it_missed() -> None:
    site = Site(replace(DEFAULTS, entity_rate=5))
    _, wire = site.open("entity:ann")
    wire.read()

    for _ in range(15):
        site.send("Entity/ann")

    names = kinds(wire)
    assert names[:10] == ["message"] * 10
    assert names[10:] == ["dropped"] * 5
    site.runtime.pass_s(1)
    site.send("Entity/ann")
    assert kinds(wire) == ["message"]


def test_one_client_sends_no_more_than_its_rate_and_others_go_on() -> None:
    site = Site(replace(DEFAULTS, entity_rate=100))
    asked = ControlRequest(TOPICS, "create")
    for _ in range(200):
        site.bus.send(session_of("entity:ann"), asked)

    for _ in range(9_800):
        with pytest.raises(ControlRateReached) as refused:
            site.bus.send(session_of("entity:ann"), asked)
        assert refused.value.retry_after_s == pytest.approx(0.01)
    site.bus.send(session_of("entity:bob"), asked)
    site.bus.send(session_of("somebody"), asked)


def test_one_entity_has_few_streams_and_all_of_them_not_too_many() -> None:
    site = Site(replace(DEFAULTS, streams_per_entity_max=2, streams_max=3))
    opened = [site.open(f"entity:{name}")[0] for name in ("ann", "ann", "bob")]

    for name in ("ann", "bob"):
        with pytest.raises(Busy):
            site.open(f"entity:{name}")
    opened[0].ended_by_client()
    site.open("entity:ann")


@pytest.mark.parametrize(
    "asked",
    [
        ControlRequest("lead/radar", "test"),
        ControlRequest("Entity/ann", "test"),
        ControlRequest(NODES, "test", to="*"),
        ControlRequest(TOPICS, "test", to="*", ttl=8),
    ],
)
def test_a_message_that_cannot_go_there_is_refused(asked: ControlRequest) -> None:
    site = Site()

    with pytest.raises(TocsinError):
        site.bus.send(session_of("entity:ann"), asked)

    assert not site.bus.core.counts.sent


def test_what_a_broker_without_links_sends_stays_here() -> None:
    site = Site()
    came: list[bytes] = []
    site.bus.serve("tdn", lambda message: came.append(message.body))

    sent = site.bus.send(session_of("x"), ControlRequest(NODES, "find", b"who"))

    assert (sent.tdns, sent.neighbours, sent.dropped) == (1, 0, 0)
    assert came == [b"who"]


def test_no_two_topic_discovery_nodes_have_one_id() -> None:
    site = Site()
    stop = site.bus.serve("tdn", lambda message: None)

    with pytest.raises(TocsinError):
        site.bus.serve("tdn", lambda message: None)
    stop()
    site.bus.serve("tdn", lambda message: None)
    stop()

    assert site.bus.core.serving.own == ("tdn",)
