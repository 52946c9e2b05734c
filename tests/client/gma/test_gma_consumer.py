"""A consumer on real sockets: what it asks, what it filters itself, and how it comes back."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from gma_peers import EVENTS, PROTOCOL, RawPeer, accept, event, proxied, raw_listener

from tocsin.client.gma import Consumer, EventName, Producer, inbox
from tocsin.client.gma import subscription as subscription_module
from tocsin.errors import BadSetting, BrokerRefused, CannotReachBroker
from waiting import wait_until


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer() as running:
        running.offer("Alarm")
        running.offer("Load", lambda _: {"Load5": 5.5})
        yield running


def closed_port() -> str:
    with Producer() as gone:
        assert gone.address is not None
        return gone.address


def test_nobody_there_is_an_error_with_an_address_in_it() -> None:
    address = closed_port()
    with Consumer(address) as consumer:
        for ask in (
            consumer.event_names,
            lambda: consumer.query("Load"),
            lambda: consumer.subscribe("Load"),
        ):
            with pytest.raises(CannotReachBroker, match=address):
                ask()


def test_a_producer_that_never_answers_is_waited_for_so_long() -> None:
    with raw_listener(lambda peer: time.sleep(5)) as address:
        began_s = time.monotonic()
        with Consumer(address, timeout_s=0.2) as consumer:
            with pytest.raises(CannotReachBroker, match="no reply within"):
                consumer.query("Load")
            with pytest.raises(CannotReachBroker, match="did not reply to a SubscribeRequest"):
                consumer.subscribe("Load")

    assert time.monotonic() - began_s < 4


def test_a_failure_is_reported_in_the_words_of_the_producer() -> None:
    def refuse(peer: RawPeer) -> None:
        for kind in ("QueryReply", "EventNamesReply"):
            peer.hear()
            number = 1 if kind == "QueryReply" else 2
            peer.say(
                f'<{kind} xmlns="{PROTOCOL}" requestID="{number}"><Return>Failure</Return>'
                f"<ReturnDetail>the probe is broken</ReturnDetail></{kind}>"
            )
        peer.hear()

    with raw_listener(refuse) as address, Consumer(address) as consumer:
        with pytest.raises(BrokerRefused, match="the probe is broken"):
            consumer.query("Load")
        with pytest.raises(BrokerRefused, match="the probe is broken"):
            consumer.event_names()


def test_the_paper_s_way_to_end_a_list_of_names_is_understood() -> None:
    def serve(peer: RawPeer) -> None:
        peer.hear()
        peer.say(
            f'<EventNamesReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
            f'<Event name="UptimeCPULoadEvent" namespace="{EVENTS}"/></AvailableEventsReply>'
        )
        peer.hear()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        assert consumer.event_names() == [EventName("UptimeCPULoad")]


def test_a_consumer_asks_many_things_on_one_connection(producer: Producer) -> None:
    assert producer.address is not None
    with proxied(producer.address) as proxy, Consumer(proxy.address) as consumer:
        for _ in range(5):
            assert consumer.query("Load")["Load5"] == 5.5
        assert proxy.connections == 1

        proxy.cut()

        assert consumer.query("Load")["Load5"] == 5.5
        assert proxy.connections == 2


def test_many_threads_may_ask_at_once(producer: Producer) -> None:
    found: list[object] = []
    with Consumer(producer.address) as consumer:
        threads = [
            threading.Thread(target=lambda: found.append(consumer.query("Load")["Load5"]))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)

    assert found == [5.5] * 8


def test_an_error_in_place_of_an_event_is_reported_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def serve(peer: RawPeer) -> None:
        identity, _ = accept(peer)
        peer.say(
            f'<Event xmlns="{PROTOCOL}" subscriptionID="{identity}"><Error>NoSensor</Error>'
            "<ErrorDetail>it fell off</ErrorDetail></Event>"
        )
        peer.say(event(identity, "Count", "<N>1</N>"))
        peer.hear()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Count")
        assert subscription.take(5)["N"] == 1  # type: ignore[index]

    assert (subscription.errors, subscription.error) == (1, "NoSensor: it fell off")
    assert "it fell off" in caplog.text


def test_a_cut_connection_is_made_again_and_subscribed_again(producer: Producer) -> None:
    assert producer.address is not None
    with proxied(producer.address) as proxy, Consumer(proxy.address) as consumer:
        subscription = consumer.subscribe("Alarm", filter="N >= 0")
        producer.emit("Alarm", {"N": 1})
        assert subscription.take(5)["N"] == 1  # type: ignore[index]

        proxy.stop()
        wait_until(lambda: subscription.reconnects >= 2)
        proxy.start()
        wait_until(lambda: proxy.connections == 2)

        def comes() -> bool:
            producer.emit("Alarm", {"N": 2})
            return subscription.take(0.05) is not None

        wait_until(comes)
        assert subscription.ended is None


def test_where_there_is_a_log_a_subscription_goes_on_where_it_was() -> None:
    requests: list[str] = []

    def serve(peer: RawPeer) -> None:
        identity, request = accept(peer, '<Options xmlns="urn:tocsin:gma:1" context="true"/>')
        requests.append(request)
        # The second connection begins with an event that the first brought already.
        for seq in (5, 6, 7) if len(requests) == 1 else (7, 8):
            context = f'<Context xmlns="urn:tocsin:gma:1" seq="{seq}" id="i" source="s" topic="t"/>'
            peer.say(
                event(identity, "Count", f"<N>{seq}</N>").replace("</Event>", context + "</Event>")
            )
        if len(requests) == 1:
            peer.close()
        else:
            peer.hear()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Count", after=4)
        found = [subscription.take(5)["N"] for _ in range(4)]  # type: ignore[index]
        assert found == [5, 6, 7, 8]
        assert subscription.seq == 8

    assert 'after="4"' in requests[0]
    assert 'after="7"' in requests[1]


def test_a_producer_that_stays_away_ends_the_subscription_in_the_end(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_module, "RECONNECT_S_MAX", 0.3)
    assert producer.address is not None
    with proxied(producer.address) as proxy, Consumer(proxy.address) as consumer:
        subscription = consumer.subscribe("Alarm")
        producer.emit("Alarm", {"N": 1})

        wait_until(lambda: subscription._receiver.inbox._arrivals)
        proxy.stop()

        wait_until(lambda: subscription._receiver.why)
        assert subscription.take(5)["N"] == 1  # type: ignore[index]
        with pytest.raises(CannotReachBroker):
            next(subscription)
        assert subscription.ended is not None


def test_unsubscribing_tells_the_producer_and_ends_the_loop() -> None:
    received: list[str] = []

    def serve(peer: RawPeer) -> None:
        identity, _ = accept(peer)
        peer.say(event(identity, "Count", "<N>1</N>"))
        received.append(peer.hear())
        peer.say(
            f'<UnsubscribeReply xmlns="{PROTOCOL}" requestID="2"><Return>Success</Return>'
            "</UnsubscribeReply>"
        )

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Count")
        events = []
        for each in subscription:
            events.append(each)
            subscription.unsubscribe()

    assert len(events) == 1
    assert subscription.ended == "it was unsubscribed"
    assert "<SubscriptionID>p1</SubscriptionID>" in received[0]


def test_a_consumer_that_closes_ends_the_loop_of_another_thread(producer: Producer) -> None:
    consumer = Consumer(producer.address)
    subscription = consumer.subscribe("Alarm")
    threading.Timer(0.1, consumer.close).start()

    assert list(subscription) == []
    with pytest.raises(CannotReachBroker, match="closed"):
        consumer.query("Load")


def test_a_consumer_that_closes_ends_what_another_thread_asks() -> None:
    said: list[str] = []

    def ask(what: Callable[[], object]) -> None:
        try:
            what()
        except CannotReachBroker as error:
            said.append(error.problem)

    with raw_listener(lambda peer: time.sleep(5)) as address:
        consumer = Consumer(address)
        asking = (lambda: consumer.subscribe("Load"), lambda: consumer.query("Load"))
        threads = [threading.Thread(target=ask, args=(each,)) for each in asking]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        consumer.close()
        for thread in threads:
            thread.join(5)

    assert len(said) == 2
    assert all("close" in each for each in said)


def test_a_program_that_takes_nothing_has_the_producer_wait(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox.Inbox.__init__, "__defaults__", (20, 1 << 30))
    with Consumer(producer.address) as consumer:
        subscription = consumer.subscribe("Alarm")
        for number in range(400):
            producer.emit("Alarm", {"N": number, "Text": "x" * 50_000})
        wait_until(lambda: producer.dropped)
        time.sleep(0.1)
        # A read of 256 KiB brings a few at once; the rest is not read.
        assert len(subscription._receiver.inbox._arrivals) < 40

        numbers = []
        while (each := subscription.take(0.5)) is not None:
            numbers.append(each["N"])
        wait_until(lambda: subscription.errors)

    assert numbers == sorted(numbers)  # type: ignore[type-var]
    assert len(numbers) == 400 - producer.dropped
    assert numbers[-1] == 399
    assert "Lost" in (subscription.error or "")


def test_take_waits_no_longer_than_its_timeout(producer: Producer) -> None:
    with Consumer(producer.address) as consumer:
        began_s = time.monotonic()
        assert consumer.subscribe("Alarm").take(0.1) is None

    assert time.monotonic() - began_s < 2


def test_a_consumer_that_does_not_listen_has_nothing_to_take(producer: Producer) -> None:
    with Consumer(producer.address) as consumer:
        assert consumer.address is None
        with pytest.raises(BadSetting, match="does not listen"):
            consumer.take(0)


def test_a_forgotten_consumer_leaves_no_thread(producer: Producer) -> None:
    assert Consumer(producer.address).query("Load")["Load5"] == 5.5
    for each in Consumer(producer.address).subscribe("Load", period=0.01):
        assert each["Load5"] == 5.5
        break
    del each
    gc.collect()

    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "tocsin-consumer"])
