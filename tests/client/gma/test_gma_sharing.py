"""What one producer or consumer has to do with one peer goes over one connection, and what becomes
of one part of it is no matter of the others."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from gma_archives import Archive, failure, reply_to, requested, success
from gma_peers import PROTOCOL, RawPeer, proxied, raw_listener

from tocsin.client.gma import Consumer, Producer, outgoing_connection
from waiting import wait_until

NAMES = [f"Kind{number}" for number in range(8)]


@pytest.fixture
def archive() -> Iterator[Consumer]:
    with Consumer(listen="127.0.0.1:0") as running:
        yield running


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(None, host="foo.gov") as running:
        for name in NAMES:
            running.offer(name)
        yield running


def test_the_feeds_of_a_producer_to_one_archive_share_a_connection(
    producer: Producer, archive: Consumer
) -> None:
    with proxied(str(archive.address)) as proxy:
        feeds = [producer.push_to(proxy.address, name) for name in NAMES]
        for number in range(5):
            for name in NAMES:
                producer.emit(name, {"N": number})
        found = [archive.take(5) for _ in range(40)]
        assert all(feed.flush(5) for feed in feeds)

        assert proxy.connections == 1
        assert [feed.acknowledged for feed in feeds] == [5] * 8
        for name in NAMES:
            assert [e["N"] for e in found if e and e.name.local == name] == [0, 1, 2, 3, 4]


def test_a_cut_connection_is_made_again_once_for_all_feeds(
    producer: Producer, archive: Consumer
) -> None:
    with proxied(str(archive.address)) as proxy:
        feeds = [producer.push_to(proxy.address, name) for name in NAMES]
        wait_until(lambda: all(feed.state == "open" for feed in feeds))
        proxy.stop()
        wait_until(lambda: all(feed.state == "connecting" for feed in feeds))
        for name in NAMES:
            producer.emit(name, {"N": 1})
        proxy.start()

        assert {archive.take(5).name.local for _ in NAMES} == set(NAMES)  # type: ignore[union-attr]
        assert all(feed.flush(5) for feed in feeds)
        assert archive.take(0.1) is None
        assert proxy.connections == 2


def test_a_refused_feed_asks_again_where_the_others_are_and_disturbs_none(
    producer: Producer,
) -> None:
    refusals: list[str] = []

    def choose(request: str, agreed: int) -> str:
        if requested(request)[2] != "Kind1" or len(refusals) >= 3:
            return success(request)
        refusals.append(request)
        return failure(request, "not now [T207]. Wait.")

    serve = Archive(choose)
    with raw_listener(serve) as address:
        one, other = (producer.push_to(address, name) for name in NAMES[:2])
        wait_until(lambda: other.state == "open")
        producer.emit("Kind0", {"N": 1})
        producer.emit("Kind1", {"N": 1})
        assert one.flush(5)
        assert other.flush(5)
        wait_until(lambda: len(serve.received("<Event ")) == 2)

    assert len(refusals) == 3
    assert len(serve.calls) == 1


def test_the_end_of_one_feed_is_not_the_end_of_the_others(producer: Producer) -> None:
    def serve(peer: RawPeer) -> None:
        requests = [peer.hear(), peer.hear()]
        for request in requests:
            peer.say(success(request))
        by_name = {requested(request)[2]: requested(request)[1] for request in requests}
        peer.say(
            f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="9">'
            f"<SubscriptionID>{by_name['Kind0']}</SubscriptionID></UnsubscribeRequest>"
        )
        received.append(peer.hear())
        received.append(peer.hear())
        peer.hear_end()

    received: list[str] = []
    with raw_listener(serve) as address:
        one, other = (producer.push_to(address, name) for name in NAMES[:2])
        wait_until(lambda: one.state == "ended")
        producer.emit("Kind1", {"N": 1})
        assert other.flush(5)
        wait_until(lambda: len(received) == 2)

        assert other.state == "open"
        assert "UnsubscribeReply" in received[0]
        assert "<Kind1" in received[1]


def test_closing_the_last_feed_says_goodbye_and_hangs_up(producer: Producer) -> None:
    serve = Archive(lambda request, agreed: success(request))
    with raw_listener(serve) as address:
        one, other = (producer.push_to(address, name) for name in NAMES[:2])
        wait_until(lambda: one.state == other.state == "open")
        one.close()
        assert serve.ends == 0
        other.close()
        wait_until(lambda: serve.ends == 1)

        ended = [requested(each)[1] for each in serve.received("<Unsubscribe")]
        assert ended == ["c-Kind0", "c-Kind1"]

        again = producer.push_to(address, "Kind0")
        wait_until(lambda: again.state == "open")
        assert len(serve.calls) == 2


def test_all_feeds_to_who_knows_only_the_paper_share_a_connection(producer: Producer) -> None:
    serve = Archive(lambda request, agreed: success(request))
    with raw_listener(serve) as address:
        feeds = [producer.push_to(address, name) for name in NAMES]
        wait_until(lambda: all(feed.state == "open" for feed in feeds))
        for name in NAMES:
            producer.emit(name, {"N": 1})
        assert all(feed.flush(5) for feed in feeds)
        wait_until(lambda: len(serve.received("<Event ")) == 8)

    assert len(serve.calls) == 1


@pytest.mark.parametrize("how", ["refuses", "hangs up"])
def test_who_takes_one_subscription_on_a_connection_gets_one_connection_for_each(
    producer: Producer, how: str
) -> None:
    def choose(request: str, agreed: int) -> str | None:
        if not agreed:
            return success(request)
        return failure(request) if how == "refuses" else None

    serve = Archive(choose)
    with raw_listener(serve) as address:
        feeds = [producer.push_to(address, name) for name in NAMES[:3]]
        wait_until(lambda: all(feed.state == "open" for feed in feeds))
        time.sleep(0.3)

        assert all(feed.state == "open" for feed in feeds)
        for name in NAMES[:3]:
            producer.emit(name, {"N": 1})
        assert all(feed.flush(5) for feed in feeds)


def test_a_peer_that_accepts_too_late_is_unsubscribed(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []

    def serve(peer: RawPeer) -> None:
        first, late = peer.hear(), peer.hear()
        peer.say(success(first))
        received.append(peer.hear())  # asked again
        peer.say(success(late).replace("c-", "late-"))
        received.append(peer.hear())
        peer.say(reply_to(received[-1], "<Return>Success</Return>"))
        peer.say(success(received[0]))
        peer.hear_end()

    monkeypatch.setattr("tocsin.client.gma.producer.DIAL_S_MAX", 0.3)
    with raw_listener(serve) as address, Producer(None) as impatient:
        for name in NAMES[:2]:
            impatient.offer(name)
        feeds = [impatient.push_to(address, name) for name in NAMES[:2]]
        wait_until(lambda: all(feed.state == "open" for feed in feeds))

    assert received[1].startswith("<UnsubscribeRequest ")
    assert "<SubscriptionID>late-Kind1</SubscriptionID>" in received[1]


def test_however_many_feeds_wait_for_answers_none_is_forgotten(
    archive: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_connection, "FLIGHTS_MAX", 4)
    with Producer(None) as producer, proxied(str(archive.address)) as proxy:
        for name in NAMES:
            producer.offer(name)
        feeds = [producer.push_to(proxy.address, name) for name in NAMES]
        wait_until(lambda: all(feed.state == "open" for feed in feeds))
        for number in range(20):
            for name in NAMES:
                producer.emit(name, {"N": number})
        time.sleep(0.2)
        assert sum(feed.sent for feed in feeds) == 4

        found = [archive.take(5) for _ in range(160)]
        assert all(feed.flush(5) for feed in feeds)

    for name in NAMES:
        assert [e["N"] for e in found if e and e.name.local == name] == list(range(20))
    assert proxy.connections == 1


def test_a_feed_that_leaves_makes_room_for_the_others(
    producer: Producer, archive: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_connection, "FLIGHTS_MAX", 1)
    one, other = (producer.push_to(str(archive.address), name) for name in NAMES[:2])
    wait_until(lambda: one.state == other.state == "open")
    producer.emit("Kind0", {"N": 1})
    wait_until(lambda: one.sent)
    producer.emit("Kind1", {"N": 2})
    time.sleep(0.1)
    assert other.sent == 0

    one.close()

    wait_until(lambda: other.sent)
