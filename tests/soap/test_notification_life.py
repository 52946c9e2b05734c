"""A subscription of WS-BaseNotification at a running broker, from its first message to its last."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from lxml import etree
from notification_peers import PEERS, Consumer, Peer, Refused, ask, notify, post

from schemas import validator
from served import Served, served
from tocsin.event.instant import xs_duration_ns
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSA200403, WSN12, WSN13, XPATH10
from tocsin.wire.soap.topics import TopicName, dialect_uri
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.expiry import LEASE_DEFAULT_S
from tocsin.wire.wsn.operations import NOTIFY_ACTIONS
from tocsin.wire.wsn.read import read
from tocsin.wire.wsn.write import write

NS_PER_S = 10**9
NUMBERS = itertools.count(1)
TAG = b'<k:tag xmlns:k="urn:k">abc</k:tag>'


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    with Consumer() as listening:
        yield listening


def own_topic() -> TopicName:
    """A topic that no other test here uses."""
    return TopicName(f"t:topic{next(NUMBERS)}/x", (("t", "urn:t"),))


def about(topic: TopicName, spec: str) -> tuple[say.Expression, ...]:
    dialect = dialect_uri(spec, is_root=False)
    return (say.Expression(topic.text, dialect, topic.namespaces),)


def source(broker: Served, wsa: str) -> EndpointReference:
    return EndpointReference(f"{broker.url}/soap", wsa)


def reference(consumer: Consumer, wsa: str) -> EndpointReference:
    if wsa == WSA200403:
        return EndpointReference(consumer.url, wsa, properties=(TAG,))
    return EndpointReference(consumer.url, wsa, parameters=(TAG,))


def publish(broker: Served, topic: TopicName, payload: bytes) -> str:
    """Publish as a Web-services client of 1.3 does; returns the message's id."""
    message_id = f"urn:uuid:m{next(NUMBERS)}"
    found = say.NotificationMessage(payload, topic)
    url = f"{broker.url}/soap"
    assert notify(PEERS[0], url, found, message_id=message_id) == 202
    return message_id


def subscribed(
    broker: Served, peer: Peer, asked: say.Subscribe
) -> tuple[EndpointReference, say.SubscribeResponse]:
    answer = ask(peer, asked, source(broker, peer.wsa))
    assert isinstance(answer, say.SubscribeResponse)
    return answer.reference, answer


def refused_by_name(peer: Peer, message: say.Request, to: EndpointReference) -> str:
    with pytest.raises(Refused) as refused:
        ask(peer, message, to)
    assert refused.value.status == (400 if peer.soap == "1.2" else 500)
    return refused.value.name


@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_the_whole_life_of_a_subscription(peer: Peer, broker: Served, consumer: Consumer) -> None:
    topic = own_topic()
    asked = say.Subscribe(reference(consumer, peer.wsa), about(topic, peer.spec))

    manager, _ = subscribed(broker, peer, asked)
    message_id = publish(broker, topic, b"<c><b>1</b></c>")

    first = consumer.next()
    validator(peer.spec)(first.raw)
    assert first.envelope.soap == peer.soap
    assert first.addressing.wsa == peer.wsa
    assert first.addressing.action == NOTIFY_ACTIONS[peer.spec]
    assert first.addressing.to == consumer.url
    assert first.addressing.message_id == message_id
    assert first.envelope.header is not None
    assert first.envelope.header.findtext("{urn:k}tag") == "abc"
    assert first.notification().payload == b"<c><b>1</b></c>"
    reported = first.notification().topic
    assert reported is not None
    assert (reported.text, reported.namespace) == (topic.text, "urn:t")
    if peer.spec == "wsn13":
        assert first.notification().subscription == manager

    if peer.spec != "wsn10":
        renewed = ask(peer, say.Renew("2099-01-01T00:00:00Z"), manager)
        assert isinstance(renewed, say.RenewResponse)
        assert renewed.termination_ns == 4_070_908_800 * NS_PER_S
        assert renewed.current_ns is not None

    assert ask(peer, say.PauseSubscription(), manager) == say.PauseSubscriptionResponse()
    publish(broker, topic, b"<c>2</c>")
    assert consumer.is_silent()
    assert refused_by_name(peer, say.PauseSubscription(), manager) == "PauseFailedFault"

    assert ask(peer, say.ResumeSubscription(), manager) == say.ResumeSubscriptionResponse()
    assert consumer.next().notification().payload == b"<c>2</c>"
    assert refused_by_name(peer, say.ResumeSubscription(), manager) == "ResumeFailedFault"

    assert ask(peer, say.Unsubscribe(), manager) == say.UnsubscribeResponse()
    publish(broker, topic, b"<c>3</c>")
    assert consumer.is_silent()
    assert refused_by_name(peer, say.Unsubscribe(), manager) == "ResourceUnknownFault"


@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_a_subscription_is_reached_by_its_address_alone_and_by_its_header_alone(
    peer: Peer, broker: Served, consumer: Consumer
) -> None:
    def made() -> EndpointReference:
        asked = say.Subscribe(reference(consumer, peer.wsa), about(own_topic(), peer.spec))
        return subscribed(broker, peer, asked)[0]

    by_address = EndpointReference(made().address, peer.wsa)
    second = made()
    by_header = EndpointReference(
        f"{broker.url}/soap", peer.wsa, second.properties, second.parameters
    )

    assert ask(peer, say.Unsubscribe(), by_address) == say.UnsubscribeResponse()
    assert ask(peer, say.Unsubscribe(), by_header) == say.UnsubscribeResponse()
    nowhere = source(broker, peer.wsa)
    assert refused_by_name(peer, say.Unsubscribe(), nowhere) == "ResourceUnknownFault"


@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_a_raw_subscription_gets_the_bare_payload(
    peer: Peer, broker: Served, consumer: Consumer
) -> None:
    topic = own_topic()
    asked = say.Subscribe(
        reference(consumer, peer.wsa), about(topic, peer.spec), raw=True, termination=None
    )
    subscribed(broker, peer, asked)

    publish(broker, topic, b'<e xmlns="urn:e">  kept <!-- to the byte --> </e>')

    got = consumer.next()
    assert b'<e xmlns="urn:e">  kept <!-- to the byte --> </e>' in got.raw
    assert etree.QName(got.content).namespace == "urn:e"
    assert got.addressing.action == "urn:e/e"


@pytest.mark.parametrize("speaker", PEERS, ids=str)
def test_whoever_publishes_by_notify_reaches_every_version(speaker: Peer, broker: Served) -> None:
    topic = own_topic()
    producer = EndpointReference("http://producer.example/p", speaker.wsa)
    found = [say.NotificationMessage(b"<n>%d</n>" % number, topic, producer) for number in (1, 2)]
    for peer in PEERS:
        with Consumer() as consumer:
            asked = say.Subscribe(reference(consumer, peer.wsa), about(topic, peer.spec))
            manager, _ = subscribed(broker, peer, asked)

            status = notify(
                speaker, f"{broker.url}/soap", *found, message_id=f"urn:m:{next(NUMBERS)}"
            )

            assert status == (200 if speaker.spec == "wsn10" else 202)
            got = [consumer.next().notification() for _ in found]
            assert [each.payload for each in got] == [b"<n>1</n>", b"<n>2</n>"]
            assert {each.producer.address for each in got if each.producer} == {producer.address}
            ask(peer, say.Unsubscribe(), manager)


def test_an_event_published_as_json_reaches_a_web_services_consumer(
    broker: Served, consumer: Consumer
) -> None:
    peer, topic = PEERS[0], own_topic()
    subscribed(broker, peer, say.Subscribe(reference(consumer, peer.wsa), about(topic, peer.spec)))

    broker.publish({"topic": topic.path, "data": {"degrees": 21}})

    got = consumer.next()
    validator("wsn13")(got.raw)
    assert b"degrees" in got.notification().payload


def test_content_is_filtered_by_xpath(broker: Served, consumer: Consumer) -> None:
    peer, topic = PEERS[0], own_topic()
    content = (say.Expression("/o/n > 5", XPATH10),)
    asked = say.Subscribe(reference(consumer, peer.wsa), about(topic, peer.spec), content)
    subscribed(broker, peer, asked)

    publish(broker, topic, b"<o><n>3</n></o>")
    publish(broker, topic, b"<o><n>7</n></o>")

    assert consumer.next().notification().payload == b"<o><n>7</n></o>"
    assert consumer.is_silent()


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("PT10M", 600), (None, LEASE_DEFAULT_S), ("P1DT2S", 86_402)],
)
def test_the_end_of_a_subscription_is_told_with_the_time_here(
    asked: str | None, seconds: int, broker: Served, consumer: Consumer
) -> None:
    peer = PEERS[0]
    wanted = say.Subscribe(
        reference(consumer, peer.wsa), about(own_topic(), peer.spec), termination=asked
    )

    _, answer = subscribed(broker, peer, wanted)

    assert asked is None or xs_duration_ns(asked) == seconds * NS_PER_S
    assert answer.current_ns is not None
    assert isinstance(answer.termination_ns, int)
    assert abs(answer.termination_ns - answer.current_ns - seconds * NS_PER_S) < 5 * NS_PER_S


def test_nil_is_never(broker: Served, consumer: Consumer) -> None:
    peer = PEERS[0]
    wanted = say.Subscribe(reference(consumer, peer.wsa), termination=say.NEVER)

    manager, answer = subscribed(broker, peer, wanted)

    assert answer.termination_ns is say.NEVER
    renewed = ask(peer, say.Renew(say.NEVER), manager)
    assert isinstance(renewed, say.RenewResponse)
    assert renewed.termination_ns is say.NEVER
    ask(peer, say.Unsubscribe(), manager)


def test_a_subscription_is_known_after_a_restart_and_delivers_in_its_own_versions() -> None:
    peer, topic = Peer("wsn12", "1.1", WSA200403), own_topic()
    with served() as broker, Consumer() as consumer:
        asked = say.Subscribe(reference(consumer, peer.wsa), about(topic, peer.spec))
        manager, _ = subscribed(broker, peer, asked)

        broker.kill()
        broker.start()
        publish(broker, topic, b"<after/>")

        got = consumer.next()
        validator("wsn12")(got.raw)
        assert got.addressing.wsa == WSA200403
        assert got.envelope.header is not None
        assert got.envelope.header.findtext("{urn:k}tag") == "abc"
        assert ask(peer, say.Unsubscribe(), manager) == say.UnsubscribeResponse()


def test_the_current_message_is_the_last_on_its_topic(broker: Served) -> None:
    for peer in PEERS:
        topic = own_topic()
        question = say.GetCurrentMessage(about(topic, peer.spec)[0])
        to = source(broker, peer.wsa)
        assert refused_by_name(peer, question, to) == "NoCurrentMessageOnTopicFault"

        publish(broker, topic, b"<e>1</e>")
        publish(broker, topic, b"<e>2</e>")

        assert ask(peer, question, to) == say.GetCurrentMessageResponse(b"<e>2</e>")


def test_a_namesake_in_another_namespace_is_another_topic(broker: Served) -> None:
    peer = PEERS[0]
    topic = own_topic()
    namesake = TopicName(topic.text, (("t", "urn:other"),))

    publish(broker, topic, b"<e>mine</e>")
    publish(broker, namesake, b"<e>theirs</e>")

    for asked, payload in ((topic, b"<e>mine</e>"), (namesake, b"<e>theirs</e>")):
        question = say.GetCurrentMessage(about(asked, peer.spec)[0])
        answer = ask(peer, question, source(broker, peer.wsa))
        assert answer == say.GetCurrentMessageResponse(payload)


def test_a_client_without_addressing_is_answered_without(
    broker: Served, consumer: Consumer
) -> None:
    plain = EndpointReference(consumer.url, WSA2005)
    body = write_envelope("1.1", body=write(say.Subscribe(plain), "wsn13", WSA2005))

    status, answer = post(
        f"{broker.url}/soap", body, [("content-type", "text/xml"), ("soapaction", '""')]
    )

    envelope = read_envelope(answer)
    assert status == 200
    assert envelope.header is None
    assert envelope.content is not None
    made = read(envelope)
    assert isinstance(made, say.SubscribeResponse)
    assert made.reference.wsa == WSA2005


@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_the_address_may_name_the_topic_of_a_subscription_without_one(
    peer: Peer, broker: Served, consumer: Consumer
) -> None:
    topic = TopicName(f"by-address-{next(NUMBERS)}")
    at = f"{broker.url}/axis2/services/NotificationService/topic/{topic.path}"
    asked = say.Subscribe(reference(consumer, peer.wsa))
    made = ask(peer, asked, EndpointReference(at, peer.wsa))
    assert isinstance(made, say.SubscribeResponse)

    publish(broker, own_topic(), b"<other/>")
    publish(broker, topic, b"<this/>")

    assert consumer.next().notification().payload == b"<this/>"
    ask(peer, say.Unsubscribe(), made.reference)


def test_a_subscription_ends_when_its_time_is_over(broker: Served, consumer: Consumer) -> None:
    peer, topic = PEERS[0], own_topic()
    asked = say.Subscribe(
        reference(consumer, peer.wsa), about(topic, peer.spec), termination="PT1S"
    )
    manager, _ = subscribed(broker, peer, asked)

    time.sleep(1.3)
    publish(broker, topic, b"<late/>")

    assert consumer.is_silent()
    assert refused_by_name(peer, say.Renew("PT1H"), manager) == "ResourceUnknownFault"


def test_a_renewal_gives_a_subscription_more_time(broker: Served, consumer: Consumer) -> None:
    peer, topic = PEERS[2], own_topic()
    asked = say.Subscribe(
        reference(consumer, peer.wsa), about(topic, peer.spec), termination="PT1S"
    )
    manager, _ = subscribed(broker, peer, asked)

    ask(peer, say.Renew("PT1H"), manager)
    time.sleep(1.3)
    publish(broker, topic, b"<late/>")

    assert consumer.next().notification().payload == b"<late/>"


@pytest.mark.parametrize(
    ("peer", "namespace"), [(PEERS[0], WSN13), (PEERS[2], WSN12)], ids=["1.3", "1.2"]
)
@pytest.mark.parametrize("fixed", ["true", "false"])
def test_a_condition_on_the_producer_is_asked_of_the_brokers_properties(
    peer: Peer, namespace: str, fixed: str, broker: Served, consumer: Consumer
) -> None:
    topic = own_topic()
    question = f"//n:FixedTopicSet = '{fixed}'"
    condition = say.Expression(question, XPATH10, (("n", namespace),))
    asked = say.Subscribe(
        reference(consumer, peer.wsa), about(topic, peer.spec), properties=(condition,)
    )
    manager, _ = subscribed(broker, peer, asked)

    publish(broker, topic, b"<e/>")

    if fixed == "false":
        assert consumer.next().notification().payload == b"<e/>"
    else:
        assert consumer.is_silent()
    ask(peer, say.Unsubscribe(), manager)
