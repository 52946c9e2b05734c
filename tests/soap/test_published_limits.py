"""What comes in by SOAP is held to the limits of every event: consumers get it in headers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from notification_peers import post

from served import Served, served
from tocsin.errors import BadEvent
from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.soap.names import WSA2005


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.mark.parametrize(
    ("payload", "message_id", "action", "code"),
    [
        (b"<a>%b</a>" % (b"x" * (1 << 20)), "urn:1", "urn:a", b"T202"),
        (b"<a/>", "urn:" + "m" * 10_000, "urn:a", b"T101"),
        (b"<a/>", "urn:2", "urn:" + "m" * 10_000, b"T101"),
        (b"<a/>", "urn:3", "urn:a\nb", b"T101"),
        (b"<a/>", "urn:4\tb", "urn:a", b"T101"),
    ],
    ids=["payload", "id", "action", "line in action", "tab in id"],
)
def test_what_no_event_may_be_is_refused_and_not_stored(
    broker: Served, payload: bytes, message_id: str, action: str, code: bytes
) -> None:
    header = write_headers(WSA2005, action=action, message_id=message_id)
    message = write_envelope("1.2", header=header, body=payload)

    status, answer = post(f"{broker.url}/soap", message, http_headers("1.2", "urn:a"))

    assert status == 400
    assert code in answer
    assert broker.call("GET", "/events")[1]["events"] == []


@pytest.mark.parametrize(
    "event",
    [
        Event("1", "/s", "t", extensions={"n": 1 << 63}),
        Event("1", "/s", "t", attributes={"n": Quantity(1 << 63)}),
        Event("1", "/s", "t", extensions={"Not A Name": "x"}),
        Event("1", "/s", "t", extensions={"id": "2"}),
        Event("1", "/s", "t", time="yesterday"),
        Event("1", "a b", "t"),
        Event("", "/s", "t"),
    ],
    ids=["number", "quantity", "name", "twice", "time", "source", "no id"],
)
def test_an_event_that_the_log_or_a_consumer_could_not_take_is_refused(event: Event) -> None:
    with pytest.raises(BadEvent):
        check_event(event, Limits())


def test_an_ordinary_event_passes() -> None:
    check_event(
        Event("1", "/s", "t", topic="a", data=b"<a/>", extensions={"topicns": "urn:t"}), Limits()
    )
