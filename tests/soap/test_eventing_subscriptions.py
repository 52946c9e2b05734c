"""WS-Eventing by a real broker and a real consumer: made, delivered, renewed, looked at, ended."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from served import Served, served
from soap.wse_source import Client, Consumer, consumer, publish, subscriptions
from tocsin.event.instant import xs_duration_ns
from tocsin.wire.soap.addressing import (
    EndpointReference,
    header_text,
    read_addressing,
    write_headers,
)
from tocsin.wire.soap.envelope import split, write_envelope
from tocsin.wire.soap.names import (
    NAMESPACE_OF,
    WSA2005,
    WSA200408,
    WSA_NAMESPACES,
    WSE04,
    WSE11,
    WSN10,
    WSRM10,
    WSRM11,
)
from tocsin.wire.wse.messages import (
    ACK_ACTION,
    EVENTS,
    PUSH_WITH_ACK,
    WRAP,
    Events,
    Expression,
    Filter,
    GetStatus,
    GetStatusResponse,
    Notify,
    Renew,
    RenewResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from tocsin.wire.wse.read import read

DPWS = "http://docs.oasis-open.org/ws-dd/ns/dpws/2009/01/Action"
STORM = '<w:storm xmlns:w="urn:w"><w:level>4</w:level></w:storm>'
COMBINATIONS = list(itertools.product(("wse04", "wse11"), ("1.1", "1.2"), WSA_NAMESPACES))


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def end(client: Client, made: SubscribeResponse) -> None:
    assert client.ask(Unsubscribe(client.spec), to=made.manager).status == 200


@pytest.mark.parametrize(("spec", "soap", "wsa"), COMBINATIONS)
def test_every_combination_of_versions_is_served_in_kind(
    broker: Served, sink: Consumer, spec: str, soap: str, wsa: str
) -> None:
    client = Client(broker, spec, soap, wsa)
    mark = b'<k:mark xmlns:k="urn:k">7</k:mark>'
    to = EndpointReference(f"{sink.url}/in", wsa, parameters=(mark,))

    made = client.subscribe(to)
    publish(broker, STORM, type="urn:storm")
    received = sink.next()
    end(client, made)

    assert made.manager.wsa == wsa
    assert received.path == "/in"
    assert STORM.encode() in received.body
    headers = read_addressing(received.envelope)
    assert (received.envelope.soap, headers.wsa) == (soap, wsa)
    assert (headers.action, headers.to) == ("urn:storm", f"{sink.url}/in")
    assert header_text(received.envelope, "urn:k", "mark") == "7"


def test_without_addressing_headers_the_reference_decides_about_them(
    broker: Served, sink: Consumer
) -> None:
    client = Client(broker, wsa="")
    made = client.subscribe(EndpointReference(sink.url, WSA200408))

    publish(broker, STORM)
    received = sink.next()
    end(client, made)

    assert made.manager.wsa == WSA200408
    assert read_addressing(received.envelope).wsa == WSA200408


@pytest.mark.parametrize("spec", ["wse04", "wse11"])
def test_a_subscription_is_renewed_looked_at_and_ended_by_its_address(
    broker: Served, sink: Consumer, spec: str
) -> None:
    client = Client(broker, spec)
    made = client.subscribe(sink.url)
    bare = EndpointReference(made.manager.address, made.manager.wsa)

    renewed = client.ask(Renew(spec, "PT2H"), to=bare).message
    status = client.ask(GetStatus(spec), to=bare).message
    gone = client.ask(Unsubscribe(spec), to=bare)

    assert renewed == RenewResponse(spec, "PT7200S")
    assert isinstance(status, GetStatusResponse)
    assert status.expires is not None
    left_ns = xs_duration_ns(status.expires)
    assert left_ns is not None
    assert 7190e9 < left_ns <= 7200e9
    assert gone.action == f"{NAMESPACE_OF[spec]}/UnsubscribeResponse"
    assert gone.message == (UnsubscribeResponse(spec) if spec == "wse11" else None)
    publish(broker, STORM)
    assert sink.is_silent()


@pytest.mark.parametrize("path", ["/soap", "/wsman", "/axis2/services/EventingService"])
def test_a_subscription_is_known_by_its_header_anywhere(
    broker: Served, sink: Consumer, path: str
) -> None:
    client = Client(broker, wsa=WSA200408)
    made = client.subscribe(sink.url)

    assert client.ask(Renew("wse04", "PT2H"), to=made.manager, path=path).status == 200
    assert client.ask(Unsubscribe("wse04"), to=made.manager, path=path).status == 200
    assert client.ask(GetStatus("wse04"), to=made.manager, path=path).subcode == "InvalidMessage"


def test_an_action_alone_ends_a_subscription(broker: Served, sink: Consumer) -> None:
    client = Client(broker)
    made = client.subscribe(sink.url)
    identifier = made.manager.parameters[0].decode()
    body = (
        '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header>'
        f'<a:Action xmlns:a="{WSA2005}">{WSE04}/Unsubscribe</a:Action>{identifier}'
        "</s:Header><s:Body/></s:Envelope>"
    )

    answer = client.post(body.encode(), headers={"content-type": "application/soap+xml"})

    assert answer.action == f"{WSE04}/UnsubscribeResponse"
    assert client.ask(GetStatus("wse04"), to=made.manager).subcode == "InvalidMessage"


def test_either_version_manages_what_the_other_made(broker: Served, sink: Consumer) -> None:
    older, newer = Client(broker, "wse04"), Client(broker, "wse11")
    made = older.subscribe(sink.url)

    renewed = newer.ask(Renew("wse11", "PT2H"), to=made.manager).message
    end(newer, made)

    assert renewed == RenewResponse("wse11", "PT7200S")


@pytest.mark.parametrize(
    ("asked", "ending"), [("PT600.000000S", "S"), ("2030-01-01T00:00:00Z", "Z"), ("86400000", "Z")]
)
def test_times_are_answered_as_they_were_asked(
    broker: Served, sink: Consumer, asked: str, ending: str
) -> None:
    client = Client(broker)

    made = client.subscribe(sink.url, expires=asked)
    status = client.ask(GetStatus("wse04"), to=made.manager).message
    again = client.ask(Renew("wse04"), to=made.manager).message
    end(client, made)

    assert made.expires.endswith(ending)
    assert isinstance(status, GetStatusResponse)
    assert isinstance(again, RenewResponse)
    assert str(status.expires).endswith(ending)
    assert str(again.expires).endswith(ending)


def test_an_expired_subscription_gets_nothing(broker: Served, sink: Consumer) -> None:
    client = Client(broker)
    made = client.subscribe(sink.url, expires="PT0.3S")

    assert sink.is_silent(0.6)
    publish(broker, STORM)

    assert sink.is_silent()
    assert client.ask(Renew("wse04", "PT1H"), to=made.manager).subcode == "UnableToRenew"


def test_filters_of_every_dialect_choose(broker: Served, sink: Consumer) -> None:
    client = Client(broker)
    full = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full"
    prefixed = (("w", "urn:w"),)
    wanted = {
        "payload": Expression("/w:storm/w:level > 3", "", prefixed),
        "envelope": Expression("//*[local-name()='Body']/w:storm[w:level > 3]", "", prefixed),
        "topic": Expression("weather//.", full),
        "action": Expression("urn:x http://example.org/Storm", DPWS),
    }
    made = [
        client.subscribe(f"{sink.url}/{name}", filter=Filter(expression))
        for name, expression in wanted.items()
    ]

    publish(broker, STORM, type="http://example.org/Storm", topic="weather/storm")
    reached = {sink.next().path for _ in made}
    publish(broker, STORM.replace("4", "1"), type="urn:calm", topic="news")
    silent = sink.is_silent()
    for each in made:
        end(client, each)

    assert reached == {f"/{name}" for name in wanted}
    assert silent


def test_the_topic_of_an_address_is_a_filter_too(broker: Served, sink: Consumer) -> None:
    client = Client(broker, soap="1.1", path="/axis2/services/EventingService/topic/storms")
    made = client.subscribe(sink.url)

    publish(broker, "<a/>", topic="calm")
    publish(broker, "<b/>", topic="storms")
    received = sink.next()
    end(client, made)

    assert b"<b/>" in received.body
    assert header_text(received.envelope, WSN10, "Topic") == "storms"


def test_wrapped_notifications_say_their_action(broker: Served, sink: Consumer) -> None:
    client = Client(broker, "wse11")
    made = client.subscribe(sink.url, format=WRAP)

    publish(broker, STORM, type="urn:storm")
    received = sink.next()
    end(client, made)

    assert read(received.envelope) == Notify(STORM.encode(), "urn:storm")


def test_batches_are_no_longer_than_was_asked_for(broker: Served, sink: Consumer) -> None:
    client = Client(broker, wsa=WSA200408, path="/wsman")
    made = client.subscribe(sink.url, mode=EVENTS, batch=2)

    publish(broker, "<a/>", "<b/>", "<c/>", "<d/>", "<e/>")
    sizes: list[int] = []
    while sum(sizes) < 5:
        batch = read(sink.next().envelope)
        assert isinstance(batch, Events)
        sizes.append(len(batch.events))
    end(client, made)

    assert max(sizes) == 2


def test_acknowledged_pushes_ask_for_it(broker: Served, sink: Consumer) -> None:
    client = Client(broker, wsa=WSA200408, path="/wsman")
    wsman = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
    sink.answer = (
        200,
        b'<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header>'
        b'<a:Action xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing">'
        b"http://schemas.dmtf.org/wbem/wsman/1/wsman/Ack</a:Action></s:Header><s:Body/>"
        b"</s:Envelope>",
    )
    made = client.subscribe(sink.url, mode=PUSH_WITH_ACK)

    publish(broker, "<a/>", "<b/>")
    first, second = sink.next(), sink.next()
    end(client, made)

    assert b"<a/>" in first.body
    assert b"<b/>" in second.body
    assert header_text(first.envelope, wsman, "AckRequested") == ""


def test_the_acknowledgement_of_another_message_is_none(broker: Served, sink: Consumer) -> None:
    client = Client(broker, wsa=WSA200408, path="/wsman")
    said = write_headers(WSA200408, action=ACK_ACTION, relates_to="urn:example:another")
    sink.answer = (200, write_envelope("1.2", header=said))
    made = client.subscribe(sink.url, mode=PUSH_WITH_ACK)

    publish(broker, "<a/>")
    first, again = sink.next(), sink.next()
    end(client, made)

    assert first.body == again.body


@pytest.mark.parametrize("wsrm", [WSRM10, WSRM11])
def test_who_asks_for_reliable_messages_is_offered_a_sequence_first(
    broker: Served, sink: Consumer, wsrm: str
) -> None:
    client = Client(broker)
    made = client.subscribe(sink.url, reliable=wsrm)

    publish(broker, STORM)
    received = sink.next()
    end(client, made)

    assert received.envelope.content is not None
    assert split(received.envelope.content.tag) == (wsrm, "CreateSequence")


FAULTS: list[tuple[str, dict[str, object], str]] = [
    ("wse04", {"mode": "urn:by:post"}, "DeliveryModeRequestedUnavailable"),
    ("wse11", {"format": "urn:in:paper"}, "DeliveryFormatRequestedUnavailable"),
    ("wse04", {"filter": Filter(Expression("a", "urn:d"))}, "FilteringRequestedUnavailable"),
    ("wse11", {"filter": Filter(Expression("a", "urn:d"))}, "FilteringRequestedUnavailable"),
    ("wse04", {"filter": Filter(Expression("/a["))}, "InvalidMessage"),
    ("wse11", {"filter": Filter(Expression("/a["))}, "CannotProcessFilter"),
    ("wse11", {"filter": Filter(Expression("/q:a"))}, "CannotProcessFilter"),
    ("wse11", {"filter": Filter(Expression(""))}, "EmptyFilter"),
    ("wse04", {"expires": "PT0S"}, "InvalidExpirationTime"),
    ("wse11", {"expires": "2001-01-01T00:00:00Z"}, "UnsupportedExpirationValue"),
    ("wse11", {"expires": "P99999Y"}, "UnsupportedExpirationValue"),
    ("wse04", {"expires": "soon"}, "UnsupportedExpirationType"),
    ("wse11", {"expires": "soon"}, "UnsupportedExpirationType"),
    ("wse04", {"notify_to": None}, "InvalidMessage"),
    ("wse11", {"notify_to": None}, "NoDeliveryMechanismEstablished"),
    ("wse11", {"notify_to": EndpointReference("ftp://example.org/")}, "UnusableEPR"),
    ("wse11", {"notify_to": EndpointReference("http://10.1.2.3/")}, "UnusableEPR"),
    ("wse11", {"notify_to": EndpointReference("http://169.254.169.254/")}, "UnusableEPR"),
    ("wse11", {"notify_to": EndpointReference(f"{WSA2005}/anonymous")}, "UnusableEPR"),
    ("wse04", {"end_to": EndpointReference("http://10.1.2.3/")}, "InvalidMessage"),
    ("wse11", {"end_to": EndpointReference(f"{WSA2005}/anonymous")}, "UnusableEPR"),
    ("wse04", {"bookmark": "none"}, "InvalidBookmark"),
    ("wse04", {"heartbeats": "PT0.01S"}, "UnsupportedFeature"),
    ("wse04", {"heartbeats": "often"}, "InvalidMessage"),
    (
        "wse04",
        {"mode": PUSH_WITH_ACK, "notify_to": EndpointReference("soap.tcp://127.0.0.1:9/")},
        "DeliveryModeRequestedUnavailable",
    ),
]


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_refused_subscription_leaves_nothing_behind(
    broker: Served, sink: Consumer, soap: str
) -> None:
    before = subscriptions(broker)

    for spec, changed, expected in FAULTS:
        client = Client(broker, spec, soap)
        asked: dict[str, object] = {"notify_to": EndpointReference(sink.url), **changed}
        answer = client.ask(Subscribe(spec, **asked))  # type: ignore[arg-type]

        assert answer.subcode == expected, answer.body
        assert answer.status == (400 if soap == "1.2" else 500)
        assert answer.envelope.soap == soap
        if expected not in ("UnsupportedFeature", "InvalidBookmark"):  # of WS-Management
            assert answer.action == f"{NAMESPACE_OF[spec]}/fault"
    assert subscriptions(broker) == before


def test_unknown_subscriptions_have_the_fault_of_their_version(broker: Served) -> None:
    nobody = EndpointReference(f"{broker.url}/soap/subscriptions/nobody")

    for spec, found in (
        ("wse04", ["UnableToRenew", "InvalidMessage", "InvalidMessage"]),
        ("wse11", ["UnknownSubscription"] * 3),
    ):
        client = Client(broker, spec)
        for to in (nobody, None):
            asked = (Renew(spec), GetStatus(spec), Unsubscribe(spec))
            assert [client.ask(message, to=to).subcode for message in asked] == found


def test_a_broken_subscribe_of_2011_is_the_senders_fault_without_a_name(broker: Served) -> None:
    client = Client(broker, "wse11")
    body = (
        '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body>'
        f'<e:Subscribe xmlns:e="{WSE11}"/></s:Body></s:Envelope>'
    )

    answer = client.post(body.encode(), headers={"content-type": "application/soap+xml"})

    assert (answer.status, answer.subcode) == (400, "Sender")
