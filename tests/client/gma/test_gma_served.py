"""Those whom a producer serves: who comes, who is slow, who goes, and how many there may be."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from gma_peers import PARAMETERS, PROTOCOL, RawPeer, counting, subscribe_request

from tocsin.client.gma import Consumer, Producer, consumer_peers, listener
from tocsin.client.gma import consumer_peers as backlog_module
from tocsin.errors import BadSetting, CannotReachBroker
from waiting import wait_until


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(host="foo.gov") as running:
        yield running


@pytest.fixture
def consumer(producer: Producer) -> Iterator[Consumer]:
    with Consumer(producer.address) as running:
        yield running


def test_the_ids_of_a_producer_are_its_own_on_all_connections(producer: Producer) -> None:
    producer.offer("Alarm")
    peers = [RawPeer.call(str(producer.address)) for _ in range(3)]
    replies = []
    for peer in peers:
        peer.say(subscribe_request("Alarm"))
        replies.append(peer.hear().partition("<SubscriptionID>")[2].partition("<")[0])
        peer.close()

    assert len(set(replies)) == 3


def test_a_producer_that_closes_ends_its_subscriptions(
    producer: Producer, consumer: Consumer
) -> None:
    producer.offer("Count")
    subscription = consumer.subscribe("Count")
    for number in (1, 2):
        producer.emit("Count", {"N": number})

    producer.close()

    wait_until(lambda: subscription._receiver.why)
    assert subscription.ended is None  # not before everything that came was taken
    assert [event["N"] for event in subscription] == [1, 2]
    assert "ended the subscription" in (subscription.ended or "")
    with pytest.raises(CannotReachBroker):
        consumer.event_names()


def test_the_goodbye_of_a_producer_is_an_unsubscribe_request(producer: Producer) -> None:
    producer.offer("Alarm")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Alarm", subscription="mine"))
    assert "Success" in peer.hear()

    threading.Thread(target=producer.close, daemon=True).start()
    goodbye = peer.hear()
    peer.say(
        f'<UnsubscribeReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
        "</UnsubscribeReply>"
    )

    assert goodbye.startswith("<UnsubscribeRequest")
    assert "<SubscriptionID>mine</SubscriptionID>" in goodbye
    assert peer.hear_end() == []
    peer.close()


def test_an_unsubscribed_consumer_gets_nothing_more(producer: Producer) -> None:
    calls = counting(producer, period_s=0.01)
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Count"))
    reply = peer.hear()
    identity = reply.partition("<SubscriptionID>")[2].partition("<")[0]

    peer.say(
        f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="2">'
        f"<SubscriptionID>{identity}</SubscriptionID></UnsubscribeRequest>"
    )
    while "UnsubscribeReply" not in (received := peer.hear()):
        assert received.startswith("<Event")
    made = len(calls)
    time.sleep(0.1)
    peer.say(f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="3"/>')

    assert peer.hear().startswith("<EventNamesReply")
    assert len(calls) <= made + 1
    peer.close()


def test_a_lost_consumer_costs_nothing_more(producer: Producer) -> None:
    calls = counting(producer, period_s=0.01)
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Count"))
    peer.hear()
    peer.close()

    def is_quiet() -> bool:
        before = len(calls)
        time.sleep(0.05)
        return len(calls) == before

    wait_until(is_quiet)


def test_a_consumer_that_does_not_read_loses_its_oldest_events_and_is_notified(
    producer: Producer, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_module.Backlog.__init__, "__defaults__", (200_000,))
    producer.offer("Large")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Large"))
    peer.hear()

    count = 0
    while producer.dropped < 10:
        producer.emit("Large", {"N": count, "Text": "x" * 50_000})
        count += 1
        assert count < 5_000
    consumer.event_names()  # all of it has come to the loop that answers this
    dropped = producer.dropped
    producer.emit("Large", {"N": -1})

    received: list[str] = []
    while not received or "<N>-1</N>" not in received[-1]:
        received.append(peer.hear())
    reported = [each for each in received if "<Error>Lost</Error>" in each]
    numbers = [
        int(each.partition("<N>")[2].partition("<")[0]) for each in received if "<N>" in each
    ]
    peer.close()
    assert reported
    assert "events were given up" in reported[0]
    assert len(numbers) == count + 1 - producer.dropped
    assert producer.dropped >= dropped
    assert numbers[0] == 0
    assert numbers[-2] == count - 1  # the newest were kept


def test_a_consumer_that_never_reads_again_is_cut_off(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tocsin.client.gma.connection.STALLED_S_MAX", 0.3)
    producer.offer("Large")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)
    peer.say(subscribe_request("Large"))
    peer.hear()

    for _ in range(200):
        producer.emit("Large", {"Text": "x" * 50_000})

    wait_until(lambda: "it has not read for" in caplog.text)
    peer.close()


def test_there_is_room_for_so_many_connections_and_subscriptions(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(consumer_peers, "SUBSCRIPTIONS_MAX", 1)
    producer.offer("Alarm")
    assert producer.address is not None
    one, two = RawPeer.call(producer.address), RawPeer.call(producer.address)
    one.say(subscribe_request("Alarm"))
    assert "Success" in one.hear()
    two.say(subscribe_request("Alarm"))
    assert "no room for more subscriptions" in two.hear()

    three = RawPeer.call(producer.address)

    assert three.hear_end() == []
    assert "refused a connection" in caplog.text
    for peer in (one, two, three):
        peer.close()


def test_the_paper_s_own_messages_are_understood(producer: Producer) -> None:
    counting(producer, "UptimeCPULoad")
    assert producer.address is not None
    peer = RawPeer.call(producer.address)

    peer.say(
        f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="1"><SubscriptionID>12</SubscriptionID>'
        f'<UptimeCPULoad xmlns="{PARAMETERS}"><Period units="sec">600</Period></UptimeCPULoad>'
        "</SubscribeRequest>"
    )

    assert peer.hear() == (
        f'<SubscribeReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
        "<SubscriptionID>1</SubscriptionID></SubscribeReply>"
    )
    assert peer.hear().startswith(f'<Event xmlns="{PROTOCOL}" subscriptionID="12"><UptimeCPULoad ')
    peer.close()


def test_a_hundred_subscriptions_need_no_hundred_threads(
    producer: Producer, consumer: Consumer
) -> None:
    counting(producer)
    before = threading.active_count()

    subscriptions = [consumer.subscribe("Count", period=60) for _ in range(100)]

    assert all(each.take(5) is not None for each in subscriptions)
    assert threading.active_count() <= before + 1  # the one that makes the events


def test_a_port_that_is_taken_is_reported(producer: Producer) -> None:
    with pytest.raises(BadSetting, match="cannot listen"):
        Producer(producer.address)


def test_a_producer_that_does_not_listen_has_no_address() -> None:
    with Producer(None) as quiet:
        assert quiet.address is None
        with pytest.raises(BadSetting, match="does not listen"):
            quiet.register()


def test_closing_ends_serve_forever() -> None:
    producer = Producer()
    threading.Timer(0.1, producer.close).start()

    producer.serve_forever()
    producer.close()

    assert not [each for each in threading.enumerate() if each.name == "tocsin-producer"]
