"""Publishing on demand at a running broker: publishers are asked for what somebody wants."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from demanded_publisher import Publisher, answer_to, asks
from notification_peers import Consumer, Peer, Refused, notify

from served import Served, served
from tocsin.event.instant import rfc3339
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005, WSA200403
from tocsin.wire.soap.topics import TopicName, dialect_uri
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn_brokered import messages as brokered

NEW = Peer("wsn13", "1.2", WSA2005)
OLD = Peer("wsn12", "1.1", WSA200403)
NUMBERS = itertools.count(1)

ON_DISK_S = 1.0  # for the broker to write down what the publisher answered


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher() as running:
        yield running


def own_topic(spec: str = "wsn13") -> say.Expression:
    """One that no other test here uses."""
    return say.Expression(
        f"t:demanded{next(NUMBERS)}", dialect_uri(spec, is_root=True), (("t", "urn:t"),)
    )


def at(broker: Served, wsa: str = WSA2005) -> EndpointReference:
    return EndpointReference(f"{broker.url}/soap", wsa)


def register(
    broker: Served,
    publisher: Publisher,
    *topics: say.Expression,
    peer: Peer = NEW,
    termination: str | None = None,
) -> EndpointReference:
    asked = brokered.RegisterPublisher(
        publisher=EndpointReference(publisher.url, peer.wsa),
        topics=topics,
        demand=True,
        termination=termination,
    )
    answer = answer_to(peer, asked, at(broker, peer.wsa))
    assert isinstance(answer, brokered.RegisterPublisherResponse)
    return answer.registration


def consume(broker: Served, consumer: Consumer, topic: say.Expression) -> EndpointReference:
    dialect = dialect_uri("wsn13", is_root=True)
    wanted = say.Expression(topic.text, dialect, topic.namespaces)
    asked = say.Subscribe(EndpointReference(consumer.url), topics=(wanted,))
    answer = asks(NEW, asked, at(broker))
    assert isinstance(answer, say.SubscribeResponse)
    return answer.reference


@pytest.mark.parametrize("peer", [NEW, OLD], ids=str)
def test_a_publisher_flows_while_somebody_wants_its_topic(
    broker: Served, publisher: Publisher, peer: Peer
) -> None:
    topic = own_topic(peer.spec)
    register(broker, publisher, topic, peer=peer)
    publisher.waits_for("Subscribe", "PauseSubscription")

    with Consumer() as consumer:
        subscription = consume(broker, consumer, topic)
        publisher.waits_for("ResumeSubscription")
        assert publisher.is_flowing == [True]

        [asked] = publisher.subscribed.values()
        message = say.NotificationMessage(b"<m/>", TopicName(topic.text, topic.namespaces))
        assert asked.topics == (topic,)
        assert notify(peer, asked.consumer.address, message, message_id=f"urn:{peer.spec}") == 202
        assert consumer.next().notification().payload == b"<m/>"

        asks(NEW, say.Unsubscribe(), subscription)
    publisher.waits_for("PauseSubscription")
    assert publisher.is_flowing == [False]
    envelope = publisher.envelopes[0]
    assert envelope.soap == peer.soap


def test_only_the_topic_that_is_wanted_flows(broker: Served, publisher: Publisher) -> None:
    wanted, other = own_topic(), own_topic()
    with Consumer() as consumer:
        consume(broker, consumer, wanted)

        register(broker, publisher, other)
        publisher.waits_for("Subscribe", "PauseSubscription")
        register(broker, publisher, wanted)
        publisher.waits_for("Subscribe")

        assert publisher.is_left_alone()
        assert publisher.is_flowing == [False, True]


def test_a_paused_consumer_does_not_make_a_publisher_flow(
    broker: Served, publisher: Publisher
) -> None:
    topic = own_topic()
    with Consumer() as consumer:
        subscription = consume(broker, consumer, topic)
        register(broker, publisher, topic)
        publisher.waits_for("Subscribe")

        asks(NEW, say.PauseSubscription(), subscription)
        publisher.waits_for("PauseSubscription")
        asks(NEW, say.ResumeSubscription(), subscription)
        publisher.waits_for("ResumeSubscription")


def test_consumers_of_other_protocols_count_too(broker: Served, publisher: Publisher) -> None:
    topic = own_topic()
    register(broker, publisher, topic)
    publisher.waits_for("Subscribe", "PauseSubscription")

    path = topic.text.removeprefix("t:")
    with Consumer() as consumer:
        body = {"sink": consumer.url, "filters": [{"topic": path}]}
        status, answer = broker.call("POST", "/subscriptions", body)
        assert status == 201, answer
        publisher.waits_for("ResumeSubscription")
        broker.call("DELETE", f"/subscriptions/{answer['id']}")
        publisher.waits_for("PauseSubscription")


def test_whoever_leaves_and_comes_back_at_once_changes_nothing(
    broker: Served, publisher: Publisher
) -> None:
    topic = own_topic()
    with Consumer() as consumer:
        subscription = consume(broker, consumer, topic)
        register(broker, publisher, topic)
        publisher.waits_for("Subscribe")

        asks(NEW, say.Unsubscribe(), subscription)
        consume(broker, consumer, topic)

        assert publisher.is_left_alone()


def test_a_publisher_that_cannot_pause_is_subscribed_to_anew(broker: Served) -> None:
    topic = own_topic()
    with Publisher(pauses=False) as publisher, Consumer() as consumer:
        register(broker, publisher, topic)
        publisher.waits_for("Subscribe", "PauseSubscription", "Unsubscribe")

        subscription = consume(broker, consumer, topic)
        publisher.waits_for("Subscribe")
        asks(NEW, say.Unsubscribe(), subscription)
        publisher.waits_for("Unsubscribe")

        assert not publisher.subscribed


def test_the_end_of_a_registration_ends_the_subscription_at_the_publisher(
    broker: Served, publisher: Publisher
) -> None:
    registration = register(broker, publisher, own_topic())
    publisher.waits_for("Subscribe", "PauseSubscription")

    answer_to(NEW, brokered.DestroyRegistration(), registration)

    publisher.waits_for("Unsubscribe")
    with pytest.raises(Refused) as refused:
        answer_to(NEW, brokered.DestroyRegistration(), registration)
    assert refused.value.name == "ResourceUnknownFault"


def test_a_registration_that_expires_ends_it_too(broker: Served, publisher: Publisher) -> None:
    ends = rfc3339(time.time_ns() + 2 * 10**9)
    register(broker, publisher, own_topic(), termination=ends)
    publisher.waits_for("Subscribe", "PauseSubscription")

    publisher.waits_for("Unsubscribe")


def test_a_registration_that_expires_while_the_broker_is_down_ends_it_too() -> None:
    with served() as broker, Publisher() as publisher:
        ends = rfc3339(time.time_ns() + 2 * 10**9)
        register(broker, publisher, own_topic(), termination=ends)
        publisher.waits_for("Subscribe", "PauseSubscription")

        broker.kill()
        time.sleep(2)
        broker.start()

        publisher.waits_for("Unsubscribe")


def test_a_subscription_that_the_publisher_forgot_is_made_again(
    broker: Served, publisher: Publisher
) -> None:
    topic = own_topic()
    register(broker, publisher, topic)
    publisher.waits_for("Subscribe", "PauseSubscription")

    publisher.forget()
    with Consumer() as consumer:
        consume(broker, consumer, topic)
        publisher.waits_for("ResumeSubscription", "Subscribe")
    assert publisher.is_flowing == [True]


def test_a_lease_at_the_publisher_is_renewed_before_it_ends(broker: Served) -> None:
    with Publisher(lease_s=4.0) as publisher:
        register(broker, publisher, own_topic())

        publisher.waits_for("Subscribe", "PauseSubscription", "Renew")


def test_a_publisher_that_is_away_is_asked_when_it_is_back(broker: Served) -> None:
    topic = own_topic()
    with Publisher() as there:
        port = there.port
        away = there
    register(broker, away, topic)

    with Publisher(port) as publisher:
        publisher.waits_for("Subscribe", "PauseSubscription")


def test_taps_are_taken_up_after_a_power_cut() -> None:
    topic, over = own_topic(), own_topic()
    with served() as broker, Publisher() as publisher, Consumer() as consumer:
        register(broker, publisher, topic)
        publisher.waits_for("Subscribe", "PauseSubscription")
        ended = register(broker, publisher, over)
        publisher.waits_for("Subscribe", "PauseSubscription")
        subscription = consume(broker, consumer, topic)
        publisher.waits_for("ResumeSubscription")
        time.sleep(ON_DISK_S)

        broker.kill()
        broker.start()
        assert publisher.is_left_alone()

        asks(NEW, say.Unsubscribe(), subscription)
        publisher.waits_for("PauseSubscription")
        answer_to(NEW, brokered.DestroyRegistration(), ended)
        publisher.waits_for("Unsubscribe")
