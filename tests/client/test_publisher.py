"""Publishing through the client to a real broker."""

from __future__ import annotations

import asyncio
import threading
from itertools import islice

import pytest

from served import served
from tocsin.client import AsyncPublisher, Consumer, Publisher
from tocsin.errors import BrokerRefused, CannotReachBroker, SomeFailed

NOBODY = "http://127.0.0.1:9"


def consumed(broker, topic: str, count: int) -> list:
    with Consumer(topic, after=0, broker=broker.url, timeout_s=10) as events:
        return list(islice(events, count))


def test_two_lines_publish_an_event_and_three_consume_it(broker, topic) -> None:
    seq = Publisher(broker.url).publish(topic, {"load5": 7}, subject="s", run="42")

    (event,) = consumed(broker, topic, 1)
    assert (event.seq, event.topic, event.data) == (seq, topic, {"load5": 7})
    assert (event.subject, event.attributes) == ("s", {"run": "42"})


@pytest.mark.parametrize("data", [{"a": 1}, [1], "text", 1.5, None, True, b"\x00\xff", b""])
def test_data_comes_out_as_it_went_in(broker, topic, data) -> None:
    with Publisher(broker.url) as publisher:
        publisher.publish(topic, data)

    (event,) = consumed(broker, topic, 1)
    assert event.data == data


def test_the_same_id_is_stored_once(broker, topic) -> None:
    with Publisher(broker.url) as publisher:
        publisher.publish(topic, 1, id="one")
        publisher.publish(topic, 1, id="one")
        publisher.publish(topic, 2, id="two")

    assert [event.id for event in consumed(broker, topic, 2)] == ["one", "two"]


def test_many_are_published_in_order(broker, topic) -> None:
    with Publisher(broker.url) as publisher:
        assert publisher.publish_many((topic, number) for number in range(1_234)) == 1_234

    assert [event.data for event in consumed(broker, topic, 1_234)] == list(range(1_234))


def test_a_refused_event_is_named_and_the_others_are_stored(broker, topic) -> None:
    events = [(topic, number) for number in range(100)]
    events[37] = ("a//b", 37)

    with Publisher(broker.url) as publisher, pytest.raises(SomeFailed, match="number 37"):
        publisher.publish_many(events)

    got = [event.data for event in consumed(broker, topic, 99)]
    assert got == [number for number in range(100) if number != 37]


def test_a_refused_event_does_not_let_later_ones_overtake(broker, topic) -> None:
    events = [(topic, number) for number in range(3_000)]
    events[37] = ("a//b", 37)

    with Publisher(broker.url) as publisher, pytest.raises(SomeFailed, match="number 37"):
        publisher.publish_many(events)

    got = [event.data for event in consumed(broker, topic, 2_999)]
    assert got == [number for number in range(3_000) if number != 37]


def test_an_async_publisher_stores_nothing_behind_a_refused_batch(broker, topic) -> None:
    async def publish() -> None:
        events = [(topic if number != 700 else "a//b", number) for number in range(2_000)]
        async with AsyncPublisher(broker.url) as publisher:
            with pytest.raises(BrokerRefused):
                await publisher.publish_many(events)
            await publisher.publish(topic, "after")

    asyncio.run(publish())

    assert [event.data for event in consumed(broker, topic, 501)] == [*range(500), "after"]


def test_a_refusal_has_the_brokers_code_and_words(broker) -> None:
    with Publisher(broker.url) as publisher, pytest.raises(BrokerRefused) as refused:
        publisher.publish("a//b", 1)

    assert refused.value.broker_code == "T102"
    assert refused.value.status == 400
    assert refused.value.remedy


def test_a_broker_that_is_not_there_is_reported_after_the_given_patience() -> None:
    with Publisher(NOBODY, patience_s=0.2) as publisher, pytest.raises(CannotReachBroker):
        publisher.publish("a/b", 1)


def test_in_the_background_everything_is_stored_once_flushed(broker, topic) -> None:
    with Publisher(broker.url, batching=True, in_flight_max=50) as publisher:
        for number in range(2_000):
            assert publisher.publish(topic, number) == 0
        publisher.flush()

        assert [event.data for event in consumed(broker, topic, 2_000)] == list(range(2_000))


def test_in_the_background_a_refusal_is_reported_by_flush(broker, topic) -> None:
    publisher = Publisher(broker.url, batching=True)
    publisher.publish(topic, 1)
    publisher.publish("a//b", 2)
    publisher.publish(topic, 3)

    with pytest.raises(SomeFailed):
        publisher.flush()
    publisher.close()

    assert [event.data for event in consumed(broker, topic, 2)] == [1, 3]


def test_in_the_background_a_missing_broker_is_reported_and_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    publisher = Publisher(NOBODY, batching=True, patience_s=0.1)
    publisher.publish("a/b", 1)

    with pytest.raises(CannotReachBroker):
        publisher.flush()
    with pytest.raises(CannotReachBroker):
        publisher.close()

    assert not set(threading.enumerate()) - before


def test_publishing_goes_on_when_the_broker_comes_back(topic) -> None:
    with served() as broker, Publisher(broker.url) as publisher:
        first = publisher.publish(topic, 1)
        broker.kill()
        back = threading.Timer(0.5, broker.start)
        back.start()
        second = publisher.publish(topic, 2)
        back.join()

        assert (first, second) == (1, 2)
        assert [event.data for event in consumed(broker, topic, 2)] == [1, 2]


def test_batches_under_way_are_sent_again_when_the_broker_comes_back(topic) -> None:
    with served() as broker, Publisher(broker.url, batching=True, patience_s=20) as publisher:
        for number in range(3_000):
            publisher.publish(topic, number)
            if number == 1_500:
                broker.kill()
                broker.start()
        publisher.flush()

        assert [event.data for event in consumed(broker, topic, 3_000)] == list(range(3_000))


def test_tasks_share_an_async_publisher(broker, topic) -> None:
    async def publish() -> None:
        async with AsyncPublisher(broker.url) as publisher:
            await asyncio.gather(*(publisher.publish(topic, number) for number in range(50)))
            assert await publisher.publish_many((topic, n) for n in range(50, 700)) == 650
            with pytest.raises(BrokerRefused):
                await publisher.publish("a//b", 1)
            await publisher.publish(topic, 700)

    asyncio.run(publish())

    assert {event.data for event in consumed(broker, topic, 701)} == set(range(701))


def test_an_async_publisher_survives_a_cancelled_publish(broker, topic) -> None:
    async def publish() -> list[int]:
        async with AsyncPublisher(broker.url) as publisher:
            await publisher.publish(topic, 0)
            cancelled = asyncio.create_task(publisher.publish(topic, 1, id="cancelled"))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            # Its answer must not be taken for that of the next.
            return [await publisher.publish(topic, n, id=f"after {n}") for n in (2, 3)]

    second, third = asyncio.run(publish())

    assert third == second + 1
