"""A broker, which is both producer and consumer, among peers that know only the paper.

How strictly they read is told in test_second_implementation.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping

import pytest
from minimal_consumer import PlainArchive, PlainConsumer, Subscription
from minimal_messages import Failed, Value
from minimal_producer import PlainProducer, Served
from minimal_wire import EVENTS
from plain_peers import FAST, SLOW, WAIT_S, load, strict

from served import Served as Broker
from served import served

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with served("--archive", "127.0.0.1:0") as running:
        yield running


@pytest.fixture
def at_broker(broker: Broker) -> Iterator[PlainConsumer]:
    with PlainConsumer(broker.frames) as connected:
        yield connected


def own_name() -> str:
    """An event that no other test here uses."""
    return f"Load{next(NUMBERS)}"


def pushing(producer: PlainProducer, address: str, name: str) -> Served:
    producer.measures[name, EVENTS] = load
    return producer.push_to(address, name, period=FAST)


@pytest.mark.parametrize("listener", ["frames", "archive"])
def test_what_a_plain_producer_pushes_reaches_a_plain_consumer_of_the_broker(
    broker: Broker, at_broker: PlainConsumer, strict_producer: PlainProducer, listener: str
) -> None:
    name = own_name()
    subscription = at_broker.subscribe(name)

    pushed = pushing(strict_producer, getattr(broker, listener), name)

    assert subscription.next_event().values["Load1"] == Value("1.5", accuracy="+/-0.1")
    assert (name, EVENTS) in at_broker.event_names()
    assert at_broker.query(name).text("HostName") == "foo.gov"
    pushed.unsubscribe()
    subscription.unsubscribe()


def test_what_a_plain_producer_pushes_is_an_event_of_the_broker(
    broker: Broker, at_broker: PlainConsumer, strict_producer: PlainProducer
) -> None:
    name = own_name()
    subscription = at_broker.subscribe(name)
    pushing(strict_producer, broker.archive, name)
    subscription.next_event()

    status, page = broker.call("GET", "/events?after=0")

    assert status == 200
    assert f"{EVENTS}/{name}" in {event["type"] for event in page["events"]}


def test_an_event_published_by_http_reaches_a_plain_consumer(
    broker: Broker, at_broker: PlainConsumer
) -> None:
    name = own_name()
    subscription = at_broker.subscribe(name)

    broker.publish({"type": f"{EVENTS}/{name}", "data": {"Load1": 1.5, "Note": "a < b"}})

    event = subscription.next_event()
    assert event.text("Load1") == "1.5"
    assert event.text("Note") == "a < b"
    assert (name, EVENTS) in at_broker.event_names()


def test_every_name_that_the_broker_lists_can_be_queried_and_subscribed(
    broker: Broker, at_broker: PlainConsumer
) -> None:
    broker.publish({"type": "org.example.scan", "data": {"Frames": 12}})
    broker.publish({"type": "org.example.note", "data": "in words"})

    names = [(name, where) for name, where in at_broker.event_names() if "example" in where + name]

    assert len(names) == 2
    for name, namespace in names:
        assert at_broker.query(name, namespace)
        at_broker.subscribe(name, namespace).unsubscribe()


def test_consumers_of_the_broker_with_different_periods_get_different_rates(
    broker: Broker, at_broker: PlainConsumer, strict_producer: PlainProducer
) -> None:
    name = own_name()
    every = at_broker.subscribe(name)
    slow = at_broker.subscribe(name, period=SLOW)
    pushing(strict_producer, broker.frames, name)

    for _ in range(10):
        every.next_event()

    assert slow.events.qsize() <= 1


def test_producers_of_one_event_are_not_sent_each_others(
    broker: Broker, at_broker: PlainConsumer
) -> None:
    # Nothing in a plain SubscribeRequest says that its sender is a producer (see minimal_wire, 15);
    # an Event would end its connection, and make its `close` raise.
    name = own_name()
    subscription = at_broker.subscribe(name)
    with PlainProducer({}) as one, PlainProducer({}) as other:
        pushed = [pushing(producer, broker.frames, name) for producer in (one, other)]
        for _ in range(20):
            subscription.next_event()
        assert not any(serving.ended.is_set() for serving in pushed)


def test_an_error_of_a_producer_does_not_end_its_subscription(
    broker: Broker, strict_producer: PlainProducer
) -> None:
    recovered = threading.Event()
    name, tries = own_name(), itertools.count()

    def flickers(parameters: Mapping[str, Value]) -> Mapping[str, Value]:
        if next(tries) < 3:
            raise RuntimeError("no light")
        recovered.set()
        return {"Light": Value("7")}

    with PlainConsumer(broker.frames) as consumer:
        subscription = consumer.subscribe(name)
        strict_producer.measures[name, EVENTS] = flickers
        pushed = strict_producer.push_to(broker.frames, name, period=FAST)

        assert recovered.wait(WAIT_S)
        assert next_light(subscription) == "7"
        pushed.unsubscribe()


def next_light(subscription: Subscription) -> str:
    """The first value after any errors."""
    while (message := subscription.next_message()).content is None:
        pass
    return message.content.text("Light")


def pushed_by(broker: Broker, archive: PlainArchive, name: str) -> str:
    """Subscribe an archive at the broker by HTTP, and publish one event for it."""
    filters = [{"exact": {"type": f"{EVENTS}/{name}"}}]
    sink = {"sink": f"gma://{archive.address}", "filters": filters}
    status, subscription = broker.call("POST", "/subscriptions", sink)
    assert status == 201, subscription
    broker.publish({"type": f"{EVENTS}/{name}", "data": {"Load1": 1.5}})
    return str(subscription["id"])


def test_the_broker_pushes_to_a_plain_archive(broker: Broker, plain_archive: PlainArchive) -> None:
    name = own_name()
    subscription_id = pushed_by(broker, plain_archive, name)
    subscription = plain_archive.next_subscription()

    assert subscription.asked.name == name
    assert subscription.next_event().text("Load1") == "1.5"
    broker.call("DELETE", f"/subscriptions/{subscription_id}")


def test_a_plain_archive_learns_that_its_subscription_was_deleted(
    broker: Broker, plain_archive: PlainArchive
) -> None:
    subscription_id = pushed_by(broker, plain_archive, own_name())
    subscription = plain_archive.next_subscription()
    subscription.next_event()

    status, _ = broker.call("DELETE", f"/subscriptions/{subscription_id}")

    assert status == 204
    assert subscription.ended.wait(3)


def test_a_plain_archive_learns_that_its_subscription_has_lapsed(
    broker: Broker, plain_archive: PlainArchive
) -> None:
    subscription_id = pushed_by(broker, plain_archive, own_name())
    subscription = plain_archive.next_subscription()
    subscription.next_event()

    status, _ = broker.call("PATCH", f"/subscriptions/{subscription_id}", {"expires": "PT0.5S"})

    assert status == 200
    assert subscription.ended.wait(3)


def test_a_plain_archive_learns_that_the_broker_stops(plain_archive: PlainArchive) -> None:
    with served() as stopping:
        for _ in range(2):
            pushed_by(stopping, plain_archive, own_name())
        subscriptions = [plain_archive.next_subscription() for _ in range(2)]

        began_s = time.monotonic()
        assert stopping.stop() == 0

        assert time.monotonic() - began_s < 3
        assert all(each.ended.wait(3) for each in subscriptions)


def test_the_broker_pushes_to_an_archive_that_knows_only_the_paper(broker: Broker) -> None:
    with strict(PlainArchive()) as knowing:
        subscription_id = pushed_by(broker, knowing, own_name())
        try:
            assert knowing.next_subscription(wait_s=3).next_event()
        finally:
            broker.call("DELETE", f"/subscriptions/{subscription_id}")


def test_the_broker_refuses_in_words(at_broker: PlainConsumer) -> None:
    with pytest.raises(Failed, match="NeverSeen"):
        at_broker.query("NeverSeen")
    with pytest.raises(Failed, match="fortnight"):
        at_broker.subscribe("UptimeCPULoad", period=("1", "fortnight"))


def test_a_broker_without_events_has_at_least_the_errors_of_producers() -> None:
    with served() as fresh, PlainConsumer(fresh.frames) as consumer:
        assert len(consumer.event_names()) == 1


def test_an_event_with_structured_data_is_still_names_and_values(broker: Broker) -> None:
    name = own_name()
    with PlainConsumer(broker.frames) as consumer:
        subscription = consumer.subscribe(name)

        broker.publish({"type": f"{EVENTS}/{name}", "data": {"Site": {"Room": 2}, "Runs": [1, 2]}})

        assert subscription.next_event()
