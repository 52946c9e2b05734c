"""Bookmarks of WS-Management: each delivery says how far it goes, and a subscription with a
bookmark goes on after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import Served, served
from soap.wse_source import Client, Consumer, Received, consumer, publish
from tocsin.wire.soap.addressing import EndpointReference, header_text
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.names import WSA200408, WSMAN
from tocsin.wire.wse.messages import (
    EARLIEST,
    EVENTS,
    PULL,
    PUSH_WITH_ACK,
    Expression,
    Filter,
    Pull,
    PullResponse,
    Subscribe,
    Unsubscribe,
)

ACK = (
    b'<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="%b"><s:Header>'
    b"<a:Action>http://schemas.dmtf.org/wbem/wsman/1/wsman/Ack</a:Action></s:Header><s:Body/>"
    b"</s:Envelope>" % WSA200408.encode()
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        listening.answer = (200, ACK)
        yield listening


@pytest.fixture
def client(broker: Served) -> Client:
    return Client(broker, wsa=WSA200408, path="/wsman")


def bookmark(envelope: Envelope) -> str:
    found = header_text(envelope, WSMAN, "Bookmark")
    assert found, "there is no bookmark"
    return found


def only(kind: str) -> Filter:
    return Filter(Expression(f"//{kind}"))


@pytest.mark.parametrize("mode", ["", PUSH_WITH_ACK, EVENTS])
def test_a_subscription_goes_on_after_the_bookmark_of_the_last_delivery(
    client: Client, sink: Consumer, mode: str
) -> None:
    kind = f"e{len(mode)}"
    wish = {"mode": mode, "filter": only(kind), "send_bookmarks": True}
    made = client.subscribe(sink.url, **wish)
    publish(client.broker, f"<{kind}>1</{kind}>")
    seen = bookmark(sink.next().envelope)
    assert client.ask(Unsubscribe("wse04"), to=made.manager).status == 200
    publish(client.broker, f"<{kind}>2</{kind}>", f"<{kind}>3</{kind}>")

    again = client.subscribe(sink.url, **wish, bookmark=seen)

    received = sink.next()
    text = received.body
    while b">3</" not in text:
        received = sink.next()
        text += received.body
    assert b">1</" not in text
    assert text.index(b">2</") < text.index(b">3</")
    assert int(bookmark(received.envelope)) > int(seen)
    client.ask(Unsubscribe("wse04"), to=again.manager)


def test_two_consumers_of_one_form_differ_in_nothing_but_the_bookmark(
    client: Client, sink: Consumer
) -> None:
    with_one = client.subscribe(f"{sink.url}/with", filter=only("pair"), send_bookmarks=True)
    without = client.subscribe(f"{sink.url}/without", filter=only("pair"))

    publish(client.broker, "<pair/>")
    received: dict[str, Received] = {each.path: each for each in (sink.next(), sink.next())}

    assert bookmark(received["/with"].envelope)
    assert header_text(received["/without"].envelope, WSMAN, "Bookmark") is None
    for made in (with_one, without):
        client.ask(Unsubscribe("wse04"), to=made.manager)


def test_the_earliest_bookmark_begins_with_the_first_event_there_is(
    client: Client, sink: Consumer
) -> None:
    publish(client.broker, "<old/>")

    made = client.subscribe(sink.url, filter=only("old"), bookmark=EARLIEST)

    assert b"<old/>" in sink.next().body
    client.ask(Unsubscribe("wse04"), to=made.manager)


def test_who_pulls_gets_a_bookmark_and_may_go_on_from_it(client: Client) -> None:
    wish = {"mode": PULL, "filter": only("pulled"), "send_bookmarks": True}
    made = client.subscribe(None, **wish)
    publish(client.broker, "<pulled>1</pulled>", "<pulled>2</pulled>")
    answer = client.ask(Pull(made.context or "", 1, time_max="PT5S"))

    again = client.subscribe(None, **wish, bookmark=bookmark(answer.envelope))

    message = client.ask(Pull(again.context or "", 5, time_max="PT5S")).message
    assert isinstance(message, PullResponse)
    assert message.items == (b"<pulled>2</pulled>",)


@pytest.mark.parametrize(
    ("written", "detail"),
    [("nonsense", b"InvalidFormat"), ("", b"InvalidFormat"), ("9999999", b"Expired")],
)
def test_a_bookmark_that_leads_nowhere_is_refused_by_name(
    client: Client, sink: Consumer, written: str, detail: bytes
) -> None:
    asked = Subscribe("wse04", EndpointReference(sink.url, WSA200408), bookmark=written)
    answer = client.ask(asked)

    assert (answer.status, answer.subcode) == (400, "InvalidBookmark")
    assert b"faultDetail/" + detail in answer.body


def test_a_bookmark_survives_a_restart_and_its_subscription_too(
    client: Client, sink: Consumer
) -> None:
    broker = client.broker
    client.subscribe(sink.url, filter=only("kept"), send_bookmarks=True)
    publish(broker, "<kept>1</kept>")
    before = bookmark(sink.next().envelope)

    broker.stop()
    broker.start()
    publish(broker, "<kept>2</kept>")

    assert int(bookmark(sink.next().envelope)) > int(before)
