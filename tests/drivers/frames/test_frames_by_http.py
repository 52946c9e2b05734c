"""Performance events by HTTP: one message a POST, or a subscription whose answer goes on."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest
from frames_peer import (
    Said,
    content,
    event,
    event_names,
    framed,
    new_name,
    options,
    query,
    subscribe,
    unsubscribe,
)

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def post(broker: Served, message: str | bytes, path: str = "/gma") -> tuple[int, bytes]:
    answer = opened(broker, message, path)
    return answer.status, answer.read()


def opened(broker: Served, message: str | bytes, path: str) -> http.client.HTTPResponse:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    body = message.encode() if isinstance(message, str) else message
    connection.request("POST", path, body, {"content-type": "text/xml"})
    return connection.getresponse()


def asked(broker: Served, message: str) -> Said:
    status, body = post(broker, message)
    assert status == 200, body
    return Said(body)


def next_frame(answer: http.client.HTTPResponse) -> Said:
    return Said(answer.read(int.from_bytes(answer.read(4), "big")))


def test_where_the_doors_are_is_told(broker: Served) -> None:
    status, reported = broker.call("GET", "/gma")
    assert status == 200
    assert reported == {
        "frames": broker.frames,
        "archive": None,
        "udp": True,
        "tls": False,
        "directory": "/directory",
    }


def test_a_producer_subscribes_pushes_and_unsubscribes(broker: Served) -> None:
    name = new_name()
    given = asked(broker, subscribe(name, own="7")).subscription
    assert post(broker, event(given, content(name, load5=7.5))) == (204, b"")
    assert asked(broker, query(name)).value("Load5") == "7.5"
    assert name in {local for local, _ in asked(broker, event_names()).names}
    assert asked(broker, unsubscribe(given)).returned == "Success"
    status, body = post(broker, event(given, content(name)))
    assert (status, json.loads(body)["code"]) == (400, "T214")


def test_an_acknowledged_event_is_answered_and_stored_once(broker: Served) -> None:
    name = new_name()
    wish = subscribe(name, extra=options(role="producer", acknowledge=f"nonce-{name}"))
    first, second = asked(broker, wish), asked(broker, wish)
    assert first.options["acknowledge"] == f"nonce-{name}"
    for given in (first.subscription, second.subscription):
        reply = asked(broker, event(given, content(name), number="e1"))
        assert (reply.kind, reply.request, reply.returned) == ("EventReply", "e1", "Success")
    kind = f"http://www.gridforum.org/Performance/Events/{name}"
    _, page = broker.call("GET", f"/events?after=0&limit=1000&filter=type%20%3D%20'{kind}'")
    assert len(page["events"]) == 1


def test_a_consumer_gets_its_events_in_the_answer(broker: Served) -> None:
    name = new_name()
    answer = opened(broker, subscribe(name), "/gma?role=consumer")
    assert next_frame(answer).returned == "Success"
    given = asked(broker, subscribe(name, own="7")).subscription
    post(broker, event(given, content(name, load5=7.5)))
    arrived = next_frame(answer)
    assert (arrived.kind, arrived.subscription, arrived.value("Load5")) == ("Event", "12", "7.5")
    answer.close()


def test_who_says_in_the_message_to_be_a_consumer_gets_the_stream_too(broker: Served) -> None:
    wish = subscribe(new_name(), extra=options(role="consumer", context="true"))
    answer = opened(broker, wish, "/gma")
    assert next_frame(answer).options["context"] == "true"
    answer.close()


def test_the_stream_of_a_refused_subscription_ends_with_the_refusal(broker: Served) -> None:
    wish = subscribe(new_name(), parameters='<Period units="sec">0</Period>')
    answer = opened(broker, wish, "/gma?role=consumer")
    assert next_frame(answer).returned == "Failure"
    assert answer.read() == b""


def test_a_length_in_front_does_no_harm(broker: Served) -> None:
    status, body = post(broker, framed(event_names("8")))
    assert status == 200
    assert Said(body).request == "8"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("", "T105"),
        ("rubbish", "T105"),
        ("<a/>", "T213"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "T105"),
        (event("nobody's", content("Load")), "T214"),
    ],
)
def test_what_cannot_be_replied_to_is_a_problem(broker: Served, message: str, code: str) -> None:
    status, body = post(broker, message)
    problem = json.loads(body)
    assert (status, problem["code"]) == (400, code)
    assert problem["remedy"]


def test_a_bad_request_gets_its_failure(broker: Served) -> None:
    refused = asked(broker, event_names().replace("/Protocol", "/Protokoll"))
    assert refused.returned == "Failure"
    assert "/Protocol" in refused.detail
