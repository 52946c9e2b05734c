"""What a consumer is told besides events: that its subscription is over, that nothing happened."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from served import Served, served
from soap.wse_source import Client, Consumer, consumer, publish
from tocsin.wire.soap.addressing import EndpointReference, header_text, read_addressing
from tocsin.wire.soap.names import NAMESPACE_OF, WSA2005, WSA200408, WSMAN_URI
from tocsin.wire.wse.messages import EVENTS, SubscriptionEnd, Unsubscribe
from tocsin.wire.wse.read import read

BEAT = f"{WSMAN_URI}/Heartbeat"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def end_to(sink: Consumer, wsa: str) -> EndpointReference:
    mark = b'<k:mark xmlns:k="urn:k">e</k:mark>'
    return EndpointReference(f"{sink.url}/end", wsa, parameters=(mark,))


def subscription_id(address: str) -> str:
    return address.rpartition("/")[2]


@pytest.mark.parametrize(
    ("spec", "soap", "wsa"), [("wse04", "1.1", WSA200408), ("wse11", "1.2", WSA2005)]
)
def test_who_asked_for_it_is_told_that_its_subscription_was_deleted(
    broker: Served, sink: Consumer, spec: str, soap: str, wsa: str
) -> None:
    client = Client(broker, spec, soap, wsa)
    made = client.subscribe(f"{sink.url}/in", end_to=end_to(sink, wsa))

    broker.call("DELETE", f"/subscriptions/{subscription_id(made.manager.address)}")
    received = sink.next()

    assert received.path == "/end"
    assert received.envelope.soap == soap
    headers = read_addressing(received.envelope)
    assert headers.wsa == wsa
    assert headers.action == f"{NAMESPACE_OF[spec]}/SubscriptionEnd"
    assert headers.to == f"{sink.url}/end"
    assert header_text(received.envelope, "urn:k", "mark") == "e"
    end = read(received.envelope)
    assert isinstance(end, SubscriptionEnd)
    assert end.status == "SourceCancelling"
    assert f"{NAMESPACE_OF[spec]}/SourceCancelling".encode() in received.body
    manager = None if end.manager is None else end.manager.address
    assert manager == (made.manager.address if spec == "wse04" else None)


def test_a_consumer_that_is_gone_is_told_of_where_it_said(broker: Served, sink: Consumer) -> None:
    with consumer() as gone:
        gone.answer = (410, b"")
        Client(broker).subscribe(f"{gone.url}/in", end_to=end_to(sink, WSA2005))

        publish(broker, "<a/>")
        gone.next()
        end = read(sink.next().envelope)

    assert isinstance(end, SubscriptionEnd)
    assert end.status == "DeliveryFailure"
    assert "410" in end.reason


def test_the_end_is_told_again_if_it_was_not_taken(broker: Served, sink: Consumer) -> None:
    client = Client(broker)
    made = client.subscribe(f"{sink.url}/in", end_to=end_to(sink, WSA2005))
    sink.answer = (503, b"")

    broker.call("DELETE", f"/subscriptions/{subscription_id(made.manager.address)}")
    first = sink.next()
    sink.answer = (202, b"")
    second = sink.next()

    assert first.body == second.body
    assert sink.is_silent(1.5)


def test_who_ends_its_own_subscription_is_told_nothing(broker: Served, sink: Consumer) -> None:
    client = Client(broker)
    made = client.subscribe(f"{sink.url}/in", end_to=end_to(sink, WSA2005))

    client.ask(Unsubscribe("wse04"), to=made.manager)

    assert sink.is_silent()


def test_without_an_end_to_nobody_is_told(broker: Served, sink: Consumer) -> None:
    made = Client(broker).subscribe(f"{sink.url}/in")

    broker.call("DELETE", f"/subscriptions/{subscription_id(made.manager.address)}")

    assert sink.is_silent()


def test_an_end_to_that_leads_to_nobody_is_none(broker: Served, sink: Consumer) -> None:
    nobody = EndpointReference(f"{WSA2005}/none")
    made = Client(broker).subscribe(f"{sink.url}/in", end_to=nobody)

    broker.call("DELETE", f"/subscriptions/{subscription_id(made.manager.address)}")

    assert sink.is_silent()


def test_silence_is_broken_by_heartbeats_until_the_subscription_ends(
    broker: Served, sink: Consumer
) -> None:
    client = Client(broker, wsa=WSA200408, path="/wsman")
    made = client.subscribe(sink.url, heartbeats="PT1S", mode=EVENTS)

    beats = [sink.next() for _ in range(2)]
    client.ask(Unsubscribe("wse04"), to=made.manager)

    actions = [read_addressing(beat.envelope).action for beat in beats]
    ids = {read_addressing(beat.envelope).message_id for beat in beats}
    assert actions == [BEAT, BEAT]
    assert len(ids) == 2
    assert sink.is_silent(1.5)


def test_events_take_the_place_of_heartbeats(broker: Served, sink: Consumer) -> None:
    client = Client(broker, wsa=WSA200408, path="/wsman")
    made = client.subscribe(sink.url, heartbeats="PT1S")

    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        publish(broker, "<a/>")
        assert b"<a/>" in sink.next().body
        time.sleep(0.3)
    client.ask(Unsubscribe("wse04"), to=made.manager)


def test_heartbeats_go_on_after_a_restart(sink: Consumer) -> None:
    with served() as broker:
        Client(broker, wsa=WSA200408).subscribe(sink.url, heartbeats="PT1S")
        assert broker.stop() == 0
        while not sink.is_silent(1.2):
            pass

        broker.start()

        assert read_addressing(sink.next().envelope).action == BEAT
