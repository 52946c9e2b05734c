"""What one consumer asks of one producer goes over one connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from gma_archives import Archive, failure, reply_to, requested, success
from gma_peers import RawPeer, event, proxied, raw_listener

from tocsin.client.gma import Consumer, Producer, inbox
from tocsin.client.gma import subscription as subscription_module
from tocsin.client.gma.consumer import TIMEOUT_S
from tocsin.errors import BrokerRefused
from waiting import wait_until


@pytest.fixture
def listening() -> Iterator[Producer]:
    with Producer() as running:
        running.offer("Alarm")
        running.offer("Load", lambda _: {"Load5": 5.5})
        yield running


@pytest.mark.parametrize("how", ["refuses", "hangs up"])
def test_a_producer_that_gives_one_subscription_on_a_connection_is_called_twice(how: str) -> None:
    def choose(request: str, agreed: int) -> str | None:
        if not agreed:
            return success(request)
        return failure(request) if how == "refuses" else None

    serve = Archive(choose)
    with raw_listener(serve) as address, Consumer(address) as consumer:
        one, other = consumer.subscribe("Kind0"), consumer.subscribe("Kind1")
        wait_until(lambda: len(serve.calls) - serve.ends == 2)

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
        wait_until(lambda: subscription.reconnects and subscription.take(0.2))
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

        wait_until(lambda: proxy.connections == 2)
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
        wait_until(lambda: idle._receiver.inbox._was_full)
        began_s = time.monotonic()
        idle.unsubscribe()

        assert time.monotonic() - began_s < TIMEOUT_S / 2  # it waits for no reply
        for _ in range(20):
            assert busy.take(5) is not None


def test_a_peer_that_never_replies_to_one_question_keeps_its_subscriptions() -> None:
    def serve(peer: RawPeer) -> None:
        request = peer.hear()
        peer.say(success(request))
        peer.hear()  # the query, which gets no reply
        wait_until(lambda: asked.is_set())
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
