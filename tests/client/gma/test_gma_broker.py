"""The library and a real broker: pushed to it, consumed from it, through its restarts."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from gma_peers import proxied

from served import Served, served
from tocsin.client.gma import Consumer, EventName, Producer, Quantity
from tocsin.errors import BrokerRefused, CannotReachBroker
from waiting import wait_until


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Served]:
    """One that may be stopped and killed."""
    with served() as running:
        yield running


@pytest.fixture
def name() -> str:
    """A name of events that no other test uses."""
    return f"Test{os.urandom(6).hex()}"


def test_what_a_producer_pushes_is_on_the_broker_s_disk_once_acknowledged(
    own_broker: Served, name: str
) -> None:
    with Producer(None, host="foo.gov") as producer:
        producer.offer(name)
        feed = producer.push_to(own_broker.frames, name)
        for number in range(50):
            producer.emit(name, {"N": number, "Free": Quantity(2, "GiB", "+/-1")})
        assert feed.flush(10)

        assert (feed.sent, feed.acknowledged, feed.dropped) == (50, 50, 0)
        with Consumer(own_broker.frames) as consumer:
            assert EventName(name) in consumer.event_names()
            event = consumer.query(name)

    assert (event["N"], event["HostName"]) == (49, "foo.gov")
    assert event.element("Free").units == "GiB"
    assert event.element("Free").accuracy == "+/-1"


def test_a_consumer_begins_anywhere_in_the_log_with_its_filter(
    own_broker: Served, name: str
) -> None:
    with Producer(None) as producer, Consumer(own_broker.frames) as consumer:
        producer.offer(name)
        feed = producer.push_to(own_broker.frames, name)
        for number in range(10):
            producer.emit(name, {"N": number})
        assert feed.flush(10)

        whole = consumer.subscribe(name, after=0, filter="N >= 4")
        found = [whole.take(5)["N"] for _ in range(3)]  # type: ignore[index]
        assert found == [4, 5, 6]
        rest = consumer.subscribe(name, after=whole.seq)
        assert rest.take(5)["N"] == 7  # type: ignore[index]


def test_a_cut_line_to_the_broker_loses_and_repeats_nothing(own_broker: Served, name: str) -> None:
    with (
        proxied(own_broker.frames) as up,
        proxied(own_broker.frames) as down,
        Producer(None) as producer,
        Consumer(down.address) as consumer,
    ):
        producer.offer(name)
        feed = producer.push_to(up.address, name)
        subscription = consumer.subscribe(name, after=0)
        found = []
        for number in range(200):
            producer.emit(name, {"N": number})
            if number == 60:
                up.cut()
            if number == 120:
                down.cut()
            if number == 160:
                up.cut()
                down.cut()
        assert feed.flush(20)
        while len(found) < 200 and (event := subscription.take(10)) is not None:
            found.append(event["N"])

        assert found == list(range(200))
        assert subscription.take(0.2) is None
        assert subscription.reconnects >= 1
        assert up.connections >= 2


def test_who_takes_slowly_gets_all_of_it_and_keeps_nobody_waiting(
    own_broker: Served, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client.gma.inbox.Inbox.__init__.__defaults__", (20, 1 << 20))
    with Producer(None) as producer, Consumer(own_broker.frames) as consumer:
        producer.offer(name)
        feed = producer.push_to(own_broker.frames, name)
        slow, fast = consumer.subscribe(name), consumer.subscribe(name)
        for number in range(3_000):
            producer.emit(name, {"N": number})
        assert feed.flush(20)

        for subscription in (fast, slow):
            found = [subscription.take(10)["N"] for _ in range(3_000)]  # type: ignore[index]
            assert found == list(range(3_000))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_that_is_started_again_gets_and_gives_all_of_it(
    own_broker: Served, name: str, how: str
) -> None:
    with Producer(None) as producer, Consumer(own_broker.frames) as consumer:
        producer.offer(name)
        feed = producer.push_to(own_broker.frames, name)
        subscription = consumer.subscribe(name)
        for number in range(20):
            producer.emit(name, {"N": number})
        first = subscription.take(10)
        assert first is not None
        assert first["N"] == 0

        getattr(own_broker, how)()
        for number in range(20, 40):
            producer.emit(name, {"N": number})
        wait_until(lambda: feed.state == "connecting")
        own_broker.start()

        found = [subscription.take(30)["N"] for _ in range(39)]  # type: ignore[index]
        assert found == list(range(1, 40))
        assert feed.flush(10)
        assert (feed.acknowledged, feed.dropped) == (40, 0)


def test_the_broker_s_refusal_says_why(own_broker: Served) -> None:
    with Consumer(own_broker.frames) as consumer, pytest.raises(BrokerRefused) as caught:
        consumer.query("NoSuchEventEver")

    assert "NoSuchEventEver" in str(caught.value)


def test_a_period_at_the_broker_is_a_rate(own_broker: Served, name: str) -> None:
    with Producer(None) as producer, Consumer(own_broker.frames) as consumer:
        producer.offer(name)
        feed = producer.push_to(own_broker.frames, name)
        slow = consumer.subscribe(name, period="1h")
        fast = consumer.subscribe(name)
        for number in range(10):
            producer.emit(name, {"N": number})
        assert feed.flush(10)

        assert [fast.take(5)["N"] for _ in range(10)] == list(range(10))  # type: ignore[index]
        assert slow.take(5)["N"] == 0  # type: ignore[index]
        assert slow.take(0.2) is None


def entries(broker: Served, name: str) -> list[dict]:
    status, answer = broker.call("GET", "/directory?kind=producer")
    assert status == 200, answer
    return [each for each in answer["entries"] if each["name"] == name]


def test_a_producer_is_in_the_directory_while_it_lives(own_broker: Served, name: str) -> None:
    with Producer(host="node7") as producer:
        producer.offer("UptimeCPULoad", lambda _: {})
        producer.register(own_broker.url, name=name, attributes={"site": "ohio", "cores": 64})
        assert producer.registration_error is None
        [entry] = entries(own_broker, name)

        assert entry["address"] == f"gma://{producer.address}"
        assert (entry["host"], entry["attributes"]["cores"]) == ("node7", 64)
        assert entry["events"][0]["name"] == "UptimeCPULoad"
        with Consumer(entry["address"]) as consumer:
            assert consumer.query("UptimeCPULoad")["HostName"] == "node7"

    assert entries(own_broker, name) == []


def test_a_registration_is_renewed_and_follows_the_offers(
    own_broker: Served, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client.gma.registration.RENEW_AT", 0.02)
    with Producer() as producer:
        producer.register(own_broker.url, name=name, lease_s=10)
        [before] = entries(own_broker, name)
        producer.offer("Late")

        wait_until(lambda: entries(own_broker, name)[0]["events"])

        [entry] = entries(own_broker, name)
        assert entry["id"] == before["id"]
        assert entry["expires"] > before["expires"]
        assert [each["name"] for each in entry["events"]] == ["Late"]


def test_a_directory_that_is_not_there_is_reported_and_tried_again(
    own_broker: Served, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with proxied(own_broker.address) as proxy, Producer() as producer:
        proxy.stop()
        producer.register(f"http://{proxy.address}", name=name)
        assert "cannot reach" in (producer.registration_error or "")
        assert "could not register" in caplog.text

        proxy.start()

        wait_until(lambda: producer.registration_error is None)
        assert len(entries(own_broker, name)) == 1


def test_a_broker_without_frames_is_an_error_at_once() -> None:
    with Consumer("127.0.0.1:1") as consumer, pytest.raises(CannotReachBroker):
        consumer.subscribe("UptimeCPULoad")
