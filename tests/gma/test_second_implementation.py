"""The product's library and the plain implementation of the paper, each against the other.

The plain side reads strictly: whatever the paper does not have ends its connection, and its
`close` raises. So each test here also proves that everything the product sent could be read.
Where a plain side is made with `passes_foreign=True`, it is one that passes over elements of
other namespaces at the end of a message, as many readers of XML do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from minimal_consumer import PlainArchive, PlainConsumer
from minimal_messages import Failed, SubscribeRequest, UnsubscribeReply, UnsubscribeRequest, Value
from minimal_producer import PlainProducer
from minimal_wire import EVENTS, PARAMETERS
from plain_peers import FAST, MEASURES, OWN, SLOW, WAIT_S, dark, strict

from tocsin.client.gma import Consumer, Producer, Quantity, Subscription
from tocsin.errors import TocsinError


def drained(subscription: Subscription) -> bool:
    """Take what there is of a product's subscription; whether it has then ended."""
    while subscription.take(WAIT_S) is not None:
        pass
    return bool(subscription.ended)


# The plain consumer at the product's producer


@pytest.fixture
def producer() -> Iterator[Producer]:
    running = Producer(host="foo.gov")
    counted = itertools.count(1)
    running.offer(
        "UptimeCPULoad",
        lambda parameters: {"Load1": Quantity(1.5, "procs", "+/-0.1"), "Nth": next(counted)},
        period_s=0.05,
    )
    running.offer(f"{OWN}/Current", lambda parameters: {"Ampere": 0.3}, period_s=0.05)
    running.offer("Dark", dark, period_s=0.05)
    running.offer("Beam")
    yield running
    running.close()


@pytest.fixture
def consumer(producer: Producer) -> Iterator[PlainConsumer]:
    with PlainConsumer(producer.address) as connected:
        yield connected


def test_a_producers_events_are_listed_with_their_namespaces(consumer: PlainConsumer) -> None:
    assert set(consumer.event_names()) == {
        ("UptimeCPULoad", EVENTS),
        ("Current", OWN),
        ("Dark", EVENTS),
        ("Beam", EVENTS),
    }


@pytest.mark.parametrize("written_in", [EVENTS, PARAMETERS])
def test_a_query_in_either_namespace_brings_one_event(
    consumer: PlainConsumer, written_in: str
) -> None:
    event = consumer.query("UptimeCPULoad", written_in=written_in)

    assert event.values["Load1"] == Value("1.5", "procs", "+/-0.1")
    assert event.text("HostName") == "foo.gov"


def test_an_event_of_a_groups_own_namespace_comes_in_it(consumer: PlainConsumer) -> None:
    assert consumer.query("Current", OWN).text("Ampere") == "0.3"
    assert consumer.subscribe("Current", OWN, period=FAST).next_event().text("Ampere") == "0.3"


def test_what_cannot_be_had_is_a_failure_with_words(consumer: PlainConsumer) -> None:
    with pytest.raises(Failed, match="Nothing"):
        consumer.query("Nothing")
    with pytest.raises(Failed, match="Nothing"):
        consumer.subscribe("Nothing")
    with pytest.raises(Failed, match="fortnight"):
        consumer.subscribe("UptimeCPULoad", period=("1", "fortnight"))
    with pytest.raises(Failed, match="shutter"):
        consumer.query("Dark")


def test_an_error_comes_in_the_place_of_an_event(consumer: PlainConsumer) -> None:
    subscription = consumer.subscribe("Dark", period=FAST)

    with pytest.raises(Failed, match="shutter"):
        subscription.next_event()
    subscription.unsubscribe()


def test_two_periods_at_once_give_two_rates(consumer: PlainConsumer) -> None:
    slow = consumer.subscribe("UptimeCPULoad", period=SLOW)
    fast = consumer.subscribe("UptimeCPULoad", period=FAST)
    by_default = consumer.subscribe("UptimeCPULoad")

    for _ in range(10):
        fast.next_event()
    by_default.next_event()

    assert slow.events.qsize() <= 1


def test_two_consumers_with_different_periods_get_different_rates(
    consumer: PlainConsumer, producer: Producer
) -> None:
    with PlainConsumer(producer.address) as other:
        slow = other.subscribe("UptimeCPULoad", period=SLOW)
        fast = consumer.subscribe("UptimeCPULoad", period=FAST)
        for _ in range(10):
            fast.next_event()

        assert slow.events.qsize() <= 1


def test_an_emitted_event_reaches_who_subscribed(
    consumer: PlainConsumer, producer: Producer
) -> None:
    subscription = consumer.subscribe("Beam")

    producer.emit("Beam", {"Energy": Quantity(6, "GeV"), "Note": "a < b & c"})

    event = subscription.next_event()
    assert event.values["Energy"] == Value("6", "GeV")
    assert event.text("Note") == "a < b & c"


def test_after_the_goodbye_of_the_consumer_nothing_comes(consumer: PlainConsumer) -> None:
    subscription = consumer.subscribe("UptimeCPULoad", period=FAST)
    subscription.next_event()

    subscription.unsubscribe()

    still = consumer.subscribe("UptimeCPULoad", period=FAST)
    # An event for the one that ended would end the connection.
    assert all(still.next_event() for _ in range(5))


def test_the_goodbye_to_a_subscription_that_never_was_is_a_failure(
    consumer: PlainConsumer,
) -> None:
    reply = consumer.conversation.ask(UnsubscribeRequest("goodbye", "4711"))

    assert isinstance(reply, UnsubscribeReply)
    assert not reply.success


def test_the_ids_of_one_producer_are_unique(consumer: PlainConsumer, producer: Producer) -> None:
    with PlainConsumer(producer.address) as other:
        subscriptions = [who.subscribe("UptimeCPULoad") for who in (consumer, other)]

        assert subscriptions[0].producer_id != subscriptions[1].producer_id


def test_a_producer_that_closes_takes_leave_of_every_subscription(
    consumer: PlainConsumer, producer: Producer
) -> None:
    subscriptions = [consumer.subscribe("UptimeCPULoad", period=SLOW) for _ in range(2)]

    producer.close()

    assert all(subscription.ended.wait(WAIT_S) for subscription in subscriptions)


def test_a_producer_without_events_says_so_in_words_of_the_paper() -> None:
    empty = Producer()
    try:
        with PlainConsumer(empty.address) as consumer, pytest.raises(Failed):
            consumer.event_names()
    finally:
        empty.close()


# The product's consumer at the plain producer


@pytest.fixture
def plain_producer() -> Iterator[PlainProducer]:
    with PlainProducer(MEASURES, every_s=0.05, passes_foreign=True) as running:
        yield running


@pytest.fixture
def asking(plain_producer: PlainProducer) -> Iterator[Consumer]:
    connected = Consumer(plain_producer.address, timeout_s=WAIT_S)
    yield connected
    connected.close()


def test_the_library_lists_the_events_of_a_plain_producer(asking: Consumer) -> None:
    names = {(name.local, name.namespace) for name in asking.event_names()}

    assert names == {("UptimeCPULoad", EVENTS), ("Current", OWN), ("Dark", EVENTS)}


def test_the_library_queries_a_plain_producer() -> None:
    # Reading strictly: there is nothing but the paper in a query.
    with PlainProducer(MEASURES) as knowing:
        asking = Consumer(knowing.address, timeout_s=WAIT_S)

        assert asking.event_names()
        assert asking.query("UptimeCPULoad").element("Load1").value == 1.5
        assert asking.query(f"{OWN}/Current").name.namespace == OWN
        with pytest.raises(TocsinError, match="no event Nothing"):
            asking.query("Nothing")
        with pytest.raises(TocsinError, match="shutter"):
            asking.query("Dark")
        asking.close()


def test_the_library_subscribes_at_a_producer_that_knows_only_the_paper() -> None:
    with strict(PlainProducer(MEASURES)) as knowing:
        asking = Consumer(knowing.address, timeout_s=WAIT_S)
        try:
            assert asking.subscribe("UptimeCPULoad", period=0.02).take(WAIT_S) is not None
        finally:
            asking.close()


def test_the_library_subscribes_with_different_periods_at_once(asking: Consumer) -> None:
    slow = asking.subscribe("UptimeCPULoad", period="10 min")
    fast = asking.subscribe("UptimeCPULoad", period=0.02)
    own = asking.subscribe(f"{OWN}/Current", period=0.02)

    for _ in range(5):
        event = fast.take(WAIT_S)
        assert event is not None
        assert event.element("Load1").accuracy == "+/-0.1"
    assert own.take(WAIT_S) is not None
    assert slow.take(WAIT_S) is not None
    assert slow.take(0) is None


def test_the_library_learns_of_an_event_that_could_not_be_made(asking: Consumer) -> None:
    subscription = asking.subscribe("Dark", period=0.02)

    assert subscription.take(0.2) is None
    assert subscription.errors > 0
    assert "shutter" in str(subscription.error)


def test_the_goodbye_of_the_library_names_the_producers_id(
    asking: Consumer, plain_producer: PlainProducer
) -> None:
    subscription = asking.subscribe("UptimeCPULoad", period=0.02)
    assert subscription.take(WAIT_S) is not None

    subscription.unsubscribe()

    (serving,) = plain_producer.served.values()
    assert serving.ended.wait(WAIT_S)
    assert drained(subscription)


def test_a_plain_producer_ends_a_subscription_of_the_library(
    asking: Consumer, plain_producer: PlainProducer
) -> None:
    subscription = asking.subscribe("UptimeCPULoad", period=0.02)
    assert subscription.take(WAIT_S) is not None

    (serving,) = plain_producer.served.values()
    serving.unsubscribe()

    assert drained(subscription)


def test_the_ids_of_one_consumer_are_unique(
    asking: Consumer, plain_producer: PlainProducer
) -> None:
    for _ in range(2):
        asking.subscribe("UptimeCPULoad", period=0.02)

    requests = [r for r in plain_producer.requests if isinstance(r, SubscribeRequest)]
    assert len({request.subscription_id for request in requests}) == 2
    assert len({request.request_id for request in requests}) == 2


# Subscriptions that producers initiate


@pytest.fixture
def library_archive() -> Iterator[Consumer]:
    listening = Consumer(listen="127.0.0.1:0")
    yield listening
    listening.close()


def test_a_plain_producer_pushes_to_a_listening_consumer_and_ends_it(
    strict_producer: PlainProducer, library_archive: Consumer
) -> None:
    pushed = strict_producer.push_to(library_archive.address, "UptimeCPULoad", period=FAST)

    for _ in range(3):
        event = library_archive.take(WAIT_S)
        assert event is not None
        assert event.element("HostName").value == "foo.gov"
    pushed.unsubscribe()  # raises unless the answer is Success


def test_a_listening_consumer_that_closes_takes_leave_of_its_producers(
    strict_producer: PlainProducer, library_archive: Consumer
) -> None:
    pushed = strict_producer.push_to(library_archive.address, ("Current", OWN), period=FAST)
    assert library_archive.take(WAIT_S) is not None

    library_archive.close()

    assert pushed.ended.wait(WAIT_S)


def test_the_ids_of_a_listening_consumer_are_unique(
    strict_producer: PlainProducer, library_archive: Consumer
) -> None:
    pushed = [
        strict_producer.push_to(library_archive.address, "UptimeCPULoad", period=FAST)
        for _ in range(2)
    ]

    assert pushed[0].consumer_id != pushed[1].consumer_id


def test_the_library_pushes_to_a_plain_archive_and_ends_it(
    producer: Producer, plain_archive: PlainArchive
) -> None:
    feed = producer.push_to(plain_archive.address, "UptimeCPULoad", period=0.02)
    subscription = plain_archive.next_subscription()
    for _ in range(3):
        assert subscription.next_event().text("Load1") == "1.5"

    feed.close()

    assert subscription.ended.wait(WAIT_S)


def test_a_plain_archive_ends_what_the_library_pushes(
    producer: Producer, plain_archive: PlainArchive
) -> None:
    producer.push_to(plain_archive.address, "UptimeCPULoad", period=0.02)
    subscription = plain_archive.next_subscription()
    subscription.next_event()

    subscription.unsubscribe()  # raises unless the answer is Success, and if an event follows it

    assert subscription.ended.is_set()


def test_the_library_pushes_to_an_archive_that_knows_only_the_paper(producer: Producer) -> None:
    with strict(PlainArchive()) as knowing:
        producer.push_to(knowing.address, "UptimeCPULoad", period=0.02)
        assert knowing.next_subscription(wait_s=3).next_event()
