"""What a running broker refuses in WS-BaseNotification: by name, in kind, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from notification_peers import PEERS, Consumer, Peer, Refused, ask, notify, post

from schemas import validator
from served import Served, served
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import http_headers, read_envelope, write_envelope
from tocsin.wire.soap.names import (
    LIFETIME12,
    RESOURCE13,
    TOPICS13,
    WSA2005,
    WSN10,
    WSN12,
    WSN13,
    XPATH10,
)
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wsn import messages as say

T = (("t", "urn:t"),)
CONCRETE = f"{TOPICS13}/TopicExpression/Concrete"
FULL = f"{TOPICS13}/TopicExpression/Full"
P13 = PEERS[0]
WORDS = "<n:NotificationMessage><n:Message>words</n:Message></n:NotificationMessage>"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def consumer() -> Iterator[Consumer]:
    with Consumer() as listening:
        yield listening


def source(broker: Served, peer: Peer) -> EndpointReference:
    return EndpointReference(f"{broker.url}/soap", peer.wsa)


def count(broker: Served) -> int:
    _, listing = broker.call("GET", "/subscriptions")
    return int(listing["total"])


def fault(peer: Peer, message: say.Request, to: EndpointReference) -> Refused:
    with pytest.raises(Refused) as refused:
        ask(peer, message, to)
    return refused.value


def subscribe_body(consumer: str, more: str) -> bytes:
    return (
        f'<n:Subscribe xmlns:n="{WSN13}"><n:ConsumerReference><a:Address xmlns:a="{WSA2005}">'
        f"{consumer}</a:Address></n:ConsumerReference>{more}</n:Subscribe>"
    ).encode()


def asked(broker: Served, soap: str, body: bytes) -> Refused:
    """The fault that a message gets which our own writer would not write."""
    status, answer = post(
        f"{broker.url}/soap", write_envelope(soap, body=body), http_headers(soap, "")
    )
    validator("wsn13")(answer)
    content = read_envelope(answer).content
    assert content is not None
    return Refused(status, content)


@pytest.mark.parametrize("peer", PEERS, ids=str)
@pytest.mark.parametrize(
    ("topic", "now", "older"),
    [
        (
            say.Expression("t:a", "urn:no-such-dialect", T),
            "TopicExpressionDialectUnknownFault",
            "TopicPathDialectUnknownFault",
        ),
        (
            say.Expression("t:a//b", CONCRETE, T),
            "InvalidTopicExpressionFault",
            "InvalidTopicExpressionFault",
        ),
    ],
)
def test_a_bad_topic_expression_is_refused_and_nothing_is_subscribed(
    peer: Peer,
    topic: say.Expression,
    now: str,
    older: str,
    broker: Served,
    consumer: Consumer,
) -> None:
    wanted = say.Subscribe(EndpointReference(consumer.url, peer.wsa), (topic,))
    before = count(broker)

    refused = fault(peer, wanted, source(broker, peer))

    assert refused.name == (now if peer.spec == "wsn13" else older)
    assert count(broker) == before


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ({"contents": (say.Expression("//a[", XPATH10),)}, "InvalidMessageContentExpressionFault"),
        (
            {"contents": (say.Expression("//*" * 40 + "//*[//*//*//*]", XPATH10),)},
            "InvalidMessageContentExpressionFault",
        ),
        (
            {"properties": (say.Expression("//[", XPATH10),)},
            "InvalidProducerPropertiesExpressionFault",
        ),
        ({"termination": "2001-01-01T00:00:00Z"}, "UnacceptableInitialTerminationTimeFault"),
        ({"termination": "-PT5S"}, "UnacceptableInitialTerminationTimeFault"),
        ({"termination": "P999999999Y"}, "UnacceptableInitialTerminationTimeFault"),
        ({"termination": "tomorrow"}, "UnacceptableInitialTerminationTimeFault"),
        ({"termination": ""}, "UnacceptableInitialTerminationTimeFault"),
        ({"consumer": EndpointReference("http://10.1.2.3/x")}, "SubscribeCreationFailedFault"),
        (
            {"consumer": EndpointReference("http://169.254.169.254/")},
            "SubscribeCreationFailedFault",
        ),
        ({"consumer": EndpointReference("http://far.example/x")}, "SubscribeCreationFailedFault"),
        ({"consumer": EndpointReference("file:///etc/passwd")}, "SubscribeCreationFailedFault"),
        ({"consumer": EndpointReference(f"{WSA2005}/anonymous")}, "SubscribeCreationFailedFault"),
    ],
)
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_what_cannot_be_subscribed_is_refused_by_name_and_nothing_is_left(
    soap: str, wanted: dict[str, object], name: str, broker: Served, consumer: Consumer
) -> None:
    peer = Peer("wsn13", soap, WSA2005)
    fields = {"consumer": EndpointReference(consumer.url), **wanted}
    before = count(broker)

    refused = fault(peer, say.Subscribe(**fields), source(broker, peer))  # type: ignore[arg-type]

    assert refused.name == name
    assert count(broker) == before


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
@pytest.mark.parametrize(
    ("more", "name", "tag"),
    [
        ('<n:Filter><o:Odd xmlns:o="urn:o"/></n:Filter>', "InvalidFilterFault", "UnknownFilter"),
        (
            '<n:SubscriptionPolicy><o:Odd xmlns:o="urn:o"/></n:SubscriptionPolicy>',
            "UnrecognizedPolicyRequestFault",
            "UnrecognizedPolicy",
        ),
    ],
)
def test_what_is_unknown_is_named(
    soap: str, more: str, name: str, tag: str, broker: Served, consumer: Consumer
) -> None:
    refused = asked(broker, soap, subscribe_body(consumer.url, more))

    assert refused.name == name
    assert refused.detail is not None
    unknown = refused.detail.find(f"{{{WSN13}}}{tag}")
    assert unknown is not None
    prefix, _, local = (unknown.text or "").partition(":")
    assert (unknown.nsmap[prefix], local) == ("urn:o", "Odd")


@pytest.mark.parametrize(
    ("peer", "message", "namespace"),
    [
        (PEERS[0], say.Renew("PT1H"), RESOURCE13),
        (PEERS[1], say.Unsubscribe(), RESOURCE13),
        (PEERS[1], say.PauseSubscription(), RESOURCE13),
        (PEERS[0], say.ResumeSubscription(), RESOURCE13),
        (PEERS[2], say.Renew("PT1H"), LIFETIME12),
        (PEERS[3], say.Unsubscribe(), LIFETIME12),
        (PEERS[2], say.PauseSubscription(), WSN12),
        (PEERS[4], say.Unsubscribe(), WSN10),
    ],
)
def test_an_unknown_subscription_is_an_unknown_resource(
    peer: Peer, message: say.Request, namespace: str, broker: Served
) -> None:
    nobody = EndpointReference(f"{broker.url}/soap/subscriptions/no-such", peer.wsa)

    refused = fault(peer, message, nobody)

    assert refused.detail is not None
    assert refused.detail.tag == f"{{{namespace}}}ResourceUnknownFault"


def test_a_renewal_into_the_past_changes_nothing(broker: Served, consumer: Consumer) -> None:
    made = ask(
        P13,
        say.Subscribe(EndpointReference(consumer.url), termination="PT1H"),
        source(broker, P13),
    )
    assert isinstance(made, say.SubscribeResponse)
    identity = made.reference.address.rpartition("/")[2]
    _, before = broker.call("GET", f"/subscriptions/{identity}")

    for termination in ("", "PT0S", "2001-01-01T00:00:00Z"):
        refused = fault(P13, say.Renew(termination), made.reference)
        assert refused.name == "UnacceptableTerminationTimeFault"

    assert broker.call("GET", f"/subscriptions/{identity}")[1]["expires"] == before["expires"]
    ask(P13, say.Unsubscribe(), made.reference)


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        (say.Expression("t:a/*", FULL, T), "MultipleTopicsSpecifiedFault"),
        (say.Expression("t:a//b", CONCRETE, T), "InvalidTopicExpressionFault"),
        (say.Expression("t:never-heard-of", CONCRETE, T), "NoCurrentMessageOnTopicFault"),
        (say.Expression("t:a", "urn:odd", T), "TopicExpressionDialectUnknownFault"),
    ],
)
def test_a_current_message_that_cannot_be_is_refused_by_name(
    topic: say.Expression, name: str, broker: Served
) -> None:
    assert fault(P13, say.GetCurrentMessage(topic), source(broker, P13)).name == name


@pytest.mark.parametrize(
    "inside", ["", "<n:NotificationMessage><n:Message>words</n:Message></n:NotificationMessage>"]
)
def test_a_notify_that_notifies_of_nothing_is_refused(inside: str, broker: Served) -> None:
    body = f'<n:Notify xmlns:n="{WSN13}">{inside}</n:Notify>'.encode()

    assert asked(broker, "1.2", body).status == 400


def test_of_several_messages_none_is_published_if_one_is_bad(
    broker: Served, consumer: Consumer
) -> None:
    topic = TopicName("t:all-or-none", T)
    wanted = (say.Expression(topic.text, CONCRETE, T),)
    made = ask(P13, say.Subscribe(EndpointReference(consumer.url), wanted), source(broker, P13))
    assert isinstance(made, say.SubscribeResponse)
    good = say.NotificationMessage(b"<a/>", topic)
    bad = say.NotificationMessage(b"words", topic)

    assert notify(P13, f"{broker.url}/soap", good, bad, message_id="urn:m:bad") == 400

    assert consumer.is_silent()
    ask(P13, say.Unsubscribe(), made.reference)
