"""What somebody who means no good can do to the others at the frames door: not much."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from frames_peer import (
    Peer,
    content,
    event,
    event_names,
    filtered,
    new_name,
    options,
    query,
    stored,
    subscribe,
)

from served import Served, served

DEAR = "xpath 'count(//*[count(//*) > 1000]) > 5'"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def memory_mb(broker: Served) -> float:
    fields = Path(f"/proc/{broker.pid}/statm").read_text().split()
    return int(fields[1]) * 4096 / 1e6


def cpu_s(broker: Served) -> float:
    fields = Path(f"/proc/{broker.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_dear_questions_hold_nobody_up_and_end_with_who_asked_them(broker: Served) -> None:
    name = new_name()
    wide = "".join(f"<e{number}>1</e{number}>" for number in range(150))
    inner = f'<{name} xmlns="http://www.gridforum.org/Performance/Events">{wide}'
    inner += f"<TimeStamp>2000-11-09T21:51:45Z</TimeStamp></{name}>"
    with Peer(broker.frames) as producer:
        own = producer.open(subscribe(name, extra=options(role="producer"))).subscription
        producer.send(*[event(own, inner)] * 2_000, event_names("stored"))
        assert producer.hears("EventNamesReply")
    asking = Peer(broker.frames)
    asking.send(*(query(name, request=str(n), extra=filtered(DEAR)) for n in range(100)))

    slowest = 0.0
    for _ in range(20):
        began = time.monotonic()
        with Peer(broker.frames) as other:
            other.send(event_names("quick"))
            assert other.hears("EventNamesReply")
        slowest = max(slowest, time.monotonic() - began)
    reset = struct.pack("ii", 1, 0)
    asking.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    asking.socket.close()

    time.sleep(1.5)  # the one under way may end
    used = cpu_s(broker)
    time.sleep(1.0)
    assert cpu_s(broker) - used < 0.5
    assert slowest < 5.0


def test_a_question_that_takes_too_long_gets_a_failure_that_says_so(broker: Served) -> None:
    name = new_name()
    many = " or ".join(f"e{number} = 7" for number in range(250))
    wide = "".join(f"<e{number}>1</e{number}>" for number in range(60))
    inner = f'<{name} xmlns="http://www.gridforum.org/Performance/Events">{wide}'
    inner += f"<TimeStamp>2000-11-09T21:51:45Z</TimeStamp></{name}>"
    with Peer(broker.frames) as peer:
        own = peer.open(subscribe(name, extra=options(role="producer"))).subscription
        for _ in range(4):
            peer.send(*[event(own, inner)] * 1_000)
        peer.send(query(name, extra=filtered(many)))
        refused = peer.hears("QueryReply")
    assert refused.returned == "Failure"
    assert "too long" in refused.detail or "like that" in refused.detail


def test_who_comes_and_goes_with_half_a_message_leaves_no_memory_behind(broker: Served) -> None:
    half = struct.pack(">I", 4 << 20) + b"<" * (3 << 20)
    for _ in range(10):
        with Peer(broker.frames) as peer:
            peer.raw(half)
    before = memory_mb(broker)

    for _ in range(150):
        with Peer(broker.frames) as peer:
            peer.raw(half)

    assert memory_mb(broker) - before < 100


def test_ids_that_look_alike_when_joined_are_not_the_same(broker: Served) -> None:
    name = new_name()
    for acknowledge, number in ((f"{name}", "b/c"), (f"{name}/b", "c")):
        with Peer(broker.frames) as producer:
            asked = options(role="producer", acknowledge=acknowledge)
            own = producer.open(subscribe(name, extra=asked)).subscription
            producer.send(event(own, content(name), number=number))
            assert producer.hears("EventReply").returned == "Success"
    assert len(stored(broker, name)) == 2


def test_a_producer_without_a_host_is_known_again_wherever_it_comes_from(broker: Served) -> None:
    name = new_name()
    inner = f'<{name} xmlns="http://www.gridforum.org/Performance/Events">'
    inner += f"<TimeStamp>2000-11-09T21:51:45Z</TimeStamp></{name}>"
    for address in ("127.0.0.1", "127.0.0.9"):
        with Peer(broker.frames, source=address) as producer:
            asked = options(role="producer", acknowledge=f"nonce {name}")
            own = producer.open(subscribe(name, extra=asked)).subscription
            producer.send(event(own, inner, number="e1"))
            assert producer.hears("EventReply").returned == "Success"
    assert len(stored(broker, name)) == 1


def test_a_subscription_of_the_broker_cannot_push_into_its_own_door(broker: Served) -> None:
    sink = {"sink": "http://127.0.0.1:9/hook", "filters": [{"topic": "never"}]}
    subscription = broker.call("POST", "/subscriptions", sink)[1]["id"]
    with Peer(broker.frames) as looped:
        looped.send(subscribe("Load", extra=options(role="producer", acknowledge=subscription)))
        refused = looped.hears("SubscribeReply")
    assert refused.returned == "Failure"
    assert "this broker itself" in refused.detail


def test_a_place_that_the_log_has_not_reached_is_not_promised(broker: Served) -> None:
    with Peer(broker.frames) as consumer:
        asked = options(role="consumer", context="true", after="999999999999999999")
        reply = consumer.open(subscribe(new_name(), extra=asked))
    _, page = broker.call("GET", "/events?after=0&limit=1")
    assert int(reply.options["after"]) < 10**9, json.dumps(page)


def test_questions_by_http_are_answered_when_all_subscriptions_are_taken() -> None:
    with served(env={"TOCSIN_FRAMES__DATAGRAM_SUBSCRIPTIONS_MAX": "2"}) as small:
        assert [posted(small, subscribe(f"A{number}")) for number in range(2)] == [200, 200]
        assert posted(small, subscribe("A2")) == 503
        assert posted(small, event_names()) == 200


def posted(broker: Served, message: str) -> int:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("POST", "/gma", message.encode())
    return connection.getresponse().status


def test_what_was_taken_is_not_counted_against_others_any_more(broker: Served) -> None:
    long = event_names("long") + " " * (4 << 20)
    peers = [Peer(broker.frames) for _ in range(140)]  # together more than all may hold at once
    for peer in peers:
        peer.send(long[: 4 << 20])
        assert peer.hears("EventNamesReply")

    with Peer(broker.frames) as other:
        other.send(event_names("after"))
        assert other.hears("EventNamesReply").request == "after"
    for peer in peers:
        peer.socket.close()
