"""What one producer or consumer has to do with one peer goes over one connection, and what becomes
of one part of it is no matter of the others."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from gma_peers import PROTOCOL, RawPeer, event, proxied, raw_listener, until

from tocsin.client.gma import Consumer, Producer, inbox, outgoing_connection
from tocsin.client.gma import subscription as subscription_module
from tocsin.errors import BrokerRefused

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


@pytest.fixture
def listening() -> Iterator[Producer]:
    with Producer() as running:
        running.offer("Alarm")
        running.offer("Load", lambda _: {"Load5": 5.5})
        yield running


def requested(request: str) -> tuple[str, str, str]:
    """The number, the subscription's id, and the name of what is asked for."""
    number = request.partition('requestID="')[2].partition('"')[0]
    identity = request.partition("<SubscriptionID>")[2].partition("<")[0]
    name = re.search(r"</SubscriptionID><(\w+)", request)
    return number, identity, name[1] if name else ""


def reply_to(request: str, said: str) -> str:
    kind = request[1:].partition("Request")[0]
    number = requested(request)[0]
    return f'<{kind}Reply xmlns="{PROTOCOL}" requestID="{number}">{said}</{kind}Reply>'


def success(request: str) -> str:
    name = requested(request)[2]
    return reply_to(request, f"<Return>Success</Return><SubscriptionID>c-{name}</SubscriptionID>")


def failure(request: str, detail: str = "not this one") -> str:
    return reply_to(request, f"<Return>Failure</Return><ReturnDetail>{detail}</ReturnDetail>")


class Archive:
    """A consumer of the paper: what it is asked on each connection, and what `choose` says."""

    def __init__(self, choose: Callable[[str, int], str | None]) -> None:
        self._choose = choose
        self.calls: list[list[str]] = []
        self.ends = 0

    def __call__(self, peer: RawPeer) -> None:
        received: list[str] = []
        self.calls.append(received)
        agreed = 0
        try:
            while message := peer.hear():
                received.append(message)
                if message.startswith("<Subscribe"):
                    said = self._choose(message, agreed)
                    if said is None:
                        peer.close()
                        return
                    agreed += "Success" in said
                    peer.say(said)
                elif message.startswith("<Unsubscribe"):
                    peer.say(reply_to(message, "<Return>Success</Return>"))
        finally:
            self.ends += 1

    def received(self, beginning: str) -> list[str]:
        return [each for call in self.calls for each in call if each.startswith(beginning)]


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
        until(lambda: all(feed.state == "open" for feed in feeds))
        proxy.stop()
        until(lambda: all(feed.state == "connecting" for feed in feeds))
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
        until(lambda: other.state == "open")
        producer.emit("Kind0", {"N": 1})
        producer.emit("Kind1", {"N": 1})
        assert one.flush(5)
        assert other.flush(5)
        until(lambda: len(serve.received("<Event ")) == 2)

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
        until(lambda: one.state == "ended")
        producer.emit("Kind1", {"N": 1})
        assert other.flush(5)
        until(lambda: len(received) == 2)

        assert other.state == "open"
        assert "UnsubscribeReply" in received[0]
        assert "<Kind1" in received[1]


def test_closing_the_last_feed_says_goodbye_and_hangs_up(producer: Producer) -> None:
    serve = Archive(lambda request, agreed: success(request))
    with raw_listener(serve) as address:
        one, other = (producer.push_to(address, name) for name in NAMES[:2])
        until(lambda: one.state == other.state == "open")
        one.close()
        assert serve.ends == 0
        other.close()
        until(lambda: serve.ends == 1)

        ended = [requested(each)[1] for each in serve.received("<Unsubscribe")]
        assert ended == ["c-Kind0", "c-Kind1"]

        again = producer.push_to(address, "Kind0")
        until(lambda: again.state == "open")
        assert len(serve.calls) == 2


def test_all_feeds_to_who_knows_only_the_paper_share_a_connection(producer: Producer) -> None:
    serve = Archive(lambda request, agreed: success(request))
    with raw_listener(serve) as address:
        feeds = [producer.push_to(address, name) for name in NAMES]
        until(lambda: all(feed.state == "open" for feed in feeds))
        for name in NAMES:
            producer.emit(name, {"N": 1})
        assert all(feed.flush(5) for feed in feeds)
        until(lambda: len(serve.received("<Event ")) == 8)

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
        until(lambda: all(feed.state == "open" for feed in feeds), 20)
        time.sleep(0.3)

        assert all(feed.state == "open" for feed in feeds)
        for name in NAMES[:3]:
            producer.emit(name, {"N": 1})
        assert all(feed.flush(5) for feed in feeds)


@pytest.mark.parametrize("how", ["refuses", "hangs up"])
def test_a_producer_that_gives_one_subscription_on_a_connection_is_called_twice(how: str) -> None:
    def choose(request: str, agreed: int) -> str | None:
        if not agreed:
            return success(request)
        return failure(request) if how == "refuses" else None

    serve = Archive(choose)
    with raw_listener(serve) as address, Consumer(address) as consumer:
        one, other = consumer.subscribe("Kind0"), consumer.subscribe("Kind1")
        until(lambda: len(serve.calls) - serve.ends == 2)

        assert one.ended is other.ended is None


def test_who_bears_our_attributes_and_no_filter_is_asked_without_the_filter() -> None:
    serve = Archive(lambda request, _: None if "<Filter" in request else success(request))
    with raw_listener(serve) as address, Consumer(address) as consumer:
        plain = consumer.subscribe("Kind0")
        filtered = consumer.subscribe("Kind1", filter="N > 1")

        assert plain.ended is filtered.ended is None


def test_a_query_whose_filter_is_not_borne_is_asked_without_it() -> None:
    def serve(peer: RawPeer) -> None:
        while request := peer.hear():
            asked.append(request)
            if "<Filter" in request:
                peer.close()
                return
            content = event("x", "Kind0", "<N>7</N>").partition(">")[2].removesuffix("</Event>")
            peer.say(reply_to(request, f"<Return>Success</Return>{content}"))

    asked: list[str] = []
    with raw_listener(serve) as address, Consumer(address) as consumer:
        assert consumer.query("Kind0", filter="N > 1")["N"] == 7
        with pytest.raises(BrokerRefused, match="does not pass"):
            consumer.query("Kind0", filter="N > 9")
        assert consumer.query("Kind0")["N"] == 7


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
        until(lambda: all(feed.state == "open" for feed in feeds))

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
        until(lambda: all(feed.state == "open" for feed in feeds))
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
    until(lambda: one.state == other.state == "open")
    producer.emit("Kind0", {"N": 1})
    until(lambda: one.sent)
    producer.emit("Kind1", {"N": 2})
    time.sleep(0.1)
    assert other.sent == 0

    one.close()

    until(lambda: other.sent)


def test_subscriptions_queries_and_names_of_a_consumer_share_a_connection(
    listening: Producer,
) -> None:
    with proxied(str(listening.address)) as proxy, Consumer(proxy.address) as consumer:
        names = consumer.event_names()
        subscriptions = [consumer.subscribe("Load", period=0.05) for _ in range(5)]
        alarm = consumer.subscribe("Alarm")
        listening.emit("Alarm", {"N": 1})

        assert len(names) == 2
        assert all(each.take(5) for each in subscriptions)
        assert alarm.take(5)["N"] == 1  # type: ignore[index]
        assert consumer.query("Load")["Load5"] == 5.5
        subscriptions[0].unsubscribe()
        assert all(each.take(5) for each in subscriptions[1:])
        assert proxy.connections == 1


def test_a_query_is_asked_again_when_the_connection_of_all_was_cut(listening: Producer) -> None:
    with proxied(str(listening.address)) as proxy, Consumer(proxy.address) as consumer:
        subscription = consumer.subscribe("Load", period=0.05)
        assert subscription.take(5) is not None
        proxy.cut()

        assert consumer.query("Load")["Load5"] == 5.5
        until(lambda: subscription.reconnects and subscription.take(0.2))
        assert proxy.connections == 2


def test_a_subscription_that_nobody_takes_from_holds_up_no_other(
    listening: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox.Inbox.__init__, "__defaults__", (5, 1 << 30))
    monkeypatch.setattr(subscription_module, "HELD_S_MAX", 0.1)
    with proxied(str(listening.address)) as proxy, Consumer(proxy.address) as consumer:
        idle = consumer.subscribe("Load", period=0.01)
        busy = consumer.subscribe("Load", period=0.02)
        for _ in range(40):
            assert busy.take(5) is not None
        assert consumer.query("Load")["Load5"] == 5.5

        until(lambda: proxy.connections == 2)
        assert len(idle._receiver.inbox._arrivals) < 12
        for _ in range(20):
            assert idle.take(5) is not None


def test_ending_a_subscription_that_nobody_takes_from_frees_the_others(
    listening: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox.Inbox.__init__, "__defaults__", (5, 1 << 30))
    with Consumer(listening.address) as consumer:
        idle = consumer.subscribe("Load", period=0.01)
        busy = consumer.subscribe("Load", period=0.02)
        until(lambda: idle._receiver.inbox._was_full)
        began_s = time.monotonic()
        idle.unsubscribe()

        assert time.monotonic() - began_s < 1
        for _ in range(20):
            assert busy.take(5) is not None


def test_a_peer_that_never_replies_to_one_question_keeps_its_subscriptions() -> None:
    def serve(peer: RawPeer) -> None:
        request = peer.hear()
        peer.say(success(request))
        peer.hear()  # the query, which gets no reply
        until(lambda: asked.is_set())
        peer.say(event(requested(request)[1], "Kind0", "<N>7</N>"))
        peer.hear_end()

    asked = threading.Event()
    with raw_listener(serve) as address, Consumer(address, timeout_s=0.3) as consumer:
        subscription = consumer.subscribe("Kind0")
        with pytest.raises(Exception, match="no reply within"):
            consumer.query("Kind0")
        asked.set()

        assert subscription.take(5)["N"] == 7  # type: ignore[index]
        assert subscription.reconnects == 0
