"""A subscription made by SOAP is a subscription like any other, as far as its messages allow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from notification_peers import Consumer, Peer, Refused, ask

from served import Served, served
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.read import read

PEER = Peer("wsn13", "1.2", WSA2005)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    with Consumer() as listening:
        yield listening


def subscribe(broker: Served, consumer: Consumer, *, raw: bool) -> str:
    source = EndpointReference(f"{broker.url}/soap", WSA2005)
    wanted = say.Subscribe(EndpointReference(consumer.url, WSA2005), raw=raw)
    made = ask(PEER, wanted, source)
    assert isinstance(made, say.SubscribeResponse)
    return made.reference.address.rpartition("/")[2]


def xml(number: int) -> dict[str, object]:
    return {"datacontenttype": "application/xml", "data": f"<n>{number}</n>", "topic": "a/b"}


def test_it_is_shown_with_the_words_it_is_spoken_to(broker: Served, consumer: Consumer) -> None:
    made = subscribe(broker, consumer, raw=False)

    status, shown = broker.call("GET", f"/subscriptions/{made}")

    assert status == 200
    assert shown["dialect"] == "WS-Notification 1.3 wrapped, SOAP 1.2, WS-Addressing 2005/08"
    assert broker.call("DELETE", f"/subscriptions/{made}")[0] == 204


def test_what_waited_goes_together_if_the_operator_says_so(
    broker: Served, consumer: Consumer
) -> None:
    made = subscribe(broker, consumer, raw=False)
    where = f"/subscriptions/{made}"
    assert broker.call("PATCH", where, {"state": "paused", "config": {"batch": 3}})[0] == 200

    broker.publish(*map(xml, range(3)))
    broker.call("PATCH", where, {"state": "active"})
    came = consumer.next()

    found = read(came.envelope)
    assert isinstance(found, say.Notify)
    assert [message.payload for message in found.messages] == [
        b"<n>0</n>",
        b"<n>1</n>",
        b"<n>2</n>",
    ]
    broker.call("DELETE", where)


def test_a_message_that_is_the_event_itself_cannot_hold_three(
    broker: Served, consumer: Consumer
) -> None:
    made = subscribe(broker, consumer, raw=True)

    status, problem = broker.call("PATCH", f"/subscriptions/{made}", {"config": {"batch": 3}})

    assert status == 400
    assert "one event each" in problem["detail"]
    broker.call("DELETE", f"/subscriptions/{made}")


def test_a_broker_is_not_subscribed_to_itself(broker: Served) -> None:
    source = EndpointReference(f"{broker.url}/soap", WSA2005)
    port = broker.address.rpartition(":")[2]

    for address in (f"{broker.url}/soap", f"http://localhost:{port}/events"):
        with pytest.raises(Refused, match="deliver to itself"):
            ask(PEER, say.Subscribe(EndpointReference(address, WSA2005)), source)

    assert broker.call("GET", "/subscriptions")[1]["subscriptions"] == []


def test_what_went_into_a_box_here_goes_to_another_sink_once_it_has_one(
    broker: Served, consumer: Consumer
) -> None:
    """And whatever the path of that sink is here, nobody publishes by it as the broker itself."""
    source = EndpointReference(f"{broker.url}/soap", WSA2005)
    box = EndpointReference(f"{broker.url}/soap/boxes/x", WSA2005)
    made = ask(PEER, say.Subscribe(box), source)
    assert isinstance(made, say.SubscribeResponse)
    where = f"/subscriptions/{made.reference.address.rpartition('/')[2]}"
    host = consumer.url.split("/")[2]
    elsewhere = f"http://{host}/soap/topic/stolen"

    assert broker.call("PATCH", where, {"sink": elsewhere})[0] == 200
    broker.publish(xml(1))

    found = read(consumer.next().envelope)
    assert isinstance(found, say.Notify)
    assert [message.payload for message in found.messages] == [b"<n>1</n>"]
    status, topics = broker.call("GET", "/topics")
    assert status == 200
    assert "stolen" not in str(topics)
    broker.call("DELETE", where)
