"""An archive in a program: producers bring their events to a consumer that listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from gma_peers import PROTOCOL, RawPeer, event, numbers, proxied, subscribe_request

from tocsin.client.gma import Consumer, Producer, inbox
from waiting import wait_until


@pytest.fixture
def archive() -> Iterator[Consumer]:
    with Consumer(listen="127.0.0.1:0") as running:
        yield running


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(None, host="foo.gov") as running:
        running.offer("Alarm")
        yield running


def test_one_archive_takes_the_events_of_many_producers(archive: Consumer) -> None:
    producers = [Producer(None, host=f"node{at}") for at in range(5)]
    for producer in producers:
        producer.offer("Alarm")
        producer.push_to(str(archive.address), "Alarm")
        producer.emit("Alarm", {})

    hosts = [archive.take(5)["HostName"] for _ in producers]  # type: ignore[index]

    assert sorted(hosts) == [f"node{at}" for at in range(5)]  # type: ignore[type-var]
    for producer in producers:
        producer.close()


def test_a_cut_connection_loses_nothing_and_repeats_nothing(
    producer: Producer, archive: Consumer
) -> None:
    found: list[object] = []

    def take() -> None:
        found.extend(event["N"] for event in archive)

    taking = threading.Thread(target=take, daemon=True)
    taking.start()
    with proxied(str(archive.address)) as proxy:
        feed = producer.push_to(proxy.address, "Alarm")
        for number in range(300):
            producer.emit("Alarm", {"N": number})
            if number % 60 == 59:
                time.sleep(0.01)
                proxy.cut()
                wait_until(lambda: feed.state == "open")
        assert feed.flush(15)
        assert proxy.connections >= 3

    archive.close()
    taking.join(5)
    assert found == list(range(300))
    assert (feed.sent, feed.acknowledged, feed.dropped) == (300, 300, 0)


def test_what_happens_while_the_archive_is_away_is_kept_and_sent_later(
    producer: Producer, archive: Consumer
) -> None:
    with proxied(str(archive.address)) as proxy:
        proxy.stop()
        feed = producer.push_to(proxy.address, "Alarm")
        for number in range(10):
            producer.emit("Alarm", {"N": number})
        wait_until(lambda: feed.error and feed.waiting == 10)
        assert (feed.state, feed.sent) == ("connecting", 0)
        assert "cannot reach" in (feed.error or "")

        proxy.start()

        assert numbers(archive, 10) == list(range(10))
        assert feed.flush(5)
        assert feed.error is None


def test_an_archive_that_is_started_again_is_found_again(producer: Producer) -> None:
    with Consumer(listen="127.0.0.1:0") as first:
        address = str(first.address)
        feed = producer.push_to(address, "Alarm")
        producer.emit("Alarm", {"N": 1})
        assert numbers(first, 1) == [1]
        assert feed.flush(5)
    wait_until(lambda: feed.state == "connecting")
    producer.emit("Alarm", {"N": 2})

    with Consumer(listen=address) as second:
        assert numbers(second, 1) == [2]
        assert feed.flush(5)
    assert feed.acknowledged == 2


def test_what_cannot_be_made_is_reported_to_the_archive(archive: Consumer) -> None:
    def make(parameters: object) -> dict[str, int]:
        raise RuntimeError("the probe is off")

    with Producer(None) as producer:
        producer.offer("Broken", make, period_s=0.05)
        feed = producer.push_to(str(archive.address), "Broken")
        wait_until(lambda: archive.errors)

        assert archive.error == "RuntimeError: the probe is off"
        assert feed.error == "RuntimeError: the probe is off"
        assert feed.sent == 0


def test_an_archive_whose_program_takes_nothing_has_producers_wait(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox.Inbox.__init__, "__defaults__", (1_000, 600_000))
    with Consumer(listen="127.0.0.1:0") as archive:
        feed = producer.push_to(str(archive.address), "Alarm")
        for number in range(200):
            producer.emit("Alarm", {"N": number, "Text": "x" * 60_000})
        wait_until(lambda: feed.sent > 10)
        time.sleep(0.2)
        assert archive._producer_peers is not None
        assert len(archive._producer_peers.inbox._arrivals) < 40

        assert numbers(archive, 200) == list(range(200))
        assert feed.flush(5)


def test_a_producer_of_the_paper_is_taken_in(archive: Consumer) -> None:
    peer = RawPeer.call(str(archive.address))
    peer.say(subscribe_request("Count", subscription="mine"))
    reply = peer.hear()
    identity = reply.partition("<SubscriptionID>")[2].partition("<")[0]

    peer.say(event(identity, "Count", "<N>7</N>"))

    assert numbers(archive, 1) == [7]
    peer.say(f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="2"/>')
    assert "this is a consumer" in peer.hear()
    peer.close()


def test_an_archive_that_closes_says_goodbye_to_its_producers() -> None:
    archive = Consumer(listen="127.0.0.1:0")
    peer = RawPeer.call(str(archive.address))
    peer.say(subscribe_request("Count", subscription="mine"))
    peer.hear()

    threading.Thread(target=archive.close, daemon=True).start()

    goodbye = peer.hear()
    assert goodbye.startswith("<UnsubscribeRequest")
    assert "<SubscriptionID>mine</SubscriptionID>" in goodbye
    peer.close()
    archive.close()
