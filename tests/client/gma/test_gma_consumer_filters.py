"""A consumer and its filter: who filters, and what happens where the filter is not understood."""

from __future__ import annotations

import pytest
from gma_peers import (
    PROTOCOL,
    RawPeer,
    accept,
    event,
    raw_listener,
)

from tocsin.client.gma import Consumer
from tocsin.errors import BrokerRefused, CannotReachBroker


def test_a_consumer_filters_itself_where_the_producer_does_not() -> None:
    def serve(peer: RawPeer) -> None:
        identity, _ = accept(peer)
        for number in range(6):
            peer.say(event(identity, "Count", f"<N>{number}</N>"))
        peer.hear()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Count", filter="N >= 4")
        assert [subscription.take(5)["N"] for _ in range(2)] == [4, 5]  # type: ignore[index]


def test_a_consumer_does_not_filter_again_what_the_producer_says_it_filtered() -> None:
    # Where the producer applies the filter, it knows best what that sees.
    def serve(peer: RawPeer) -> None:
        identity, _ = accept(peer, '<Options xmlns="urn:tocsin:gma:1" filtered="true"/>')
        peer.say(event(identity, "Count", "<N>1</N>"))
        peer.hear()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        assert consumer.subscribe("Count", filter="N >= 4").take(5)["N"] == 1  # type: ignore[index]


def test_a_producer_that_hangs_up_on_a_filter_is_asked_without_it() -> None:
    requests: list[str] = []

    def serve(peer: RawPeer) -> None:
        if not requests:
            requests.append(peer.hear())
            peer.close()
            return
        identity, request = accept(peer)
        requests.append(request)
        for number in range(3):
            peer.say(event(identity, "Count", f"<N>{number}</N>"))
        peer.hear_end()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Count", period=10, filter="N > 1")
        assert subscription.take(5)["N"] == 2  # type: ignore[index]

    assert "<Filter " in requests[0]
    assert "<Filter " not in requests[1]
    assert all(':context="true"' in request for request in requests)
    assert '<Period units="sec">10</Period>' in requests[1]


def test_a_peer_that_closes_without_having_got_a_filter_is_not_asked_again() -> None:
    requests: list[str] = []

    def serve(peer: RawPeer) -> None:
        requests.append(peer.hear())
        peer.close()

    with (
        raw_listener(serve) as address,
        Consumer(address) as consumer,
        pytest.raises(CannotReachBroker),
    ):
        consumer.subscribe("Count")

    assert len(requests) == 1


def test_a_query_is_filtered_here_too() -> None:
    def serve(peer: RawPeer) -> None:
        peer.hear()
        content = event("x", "Count", "<N>1</N>").partition(">")[2].removesuffix("</Event>")
        peer.say(
            f'<QueryReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>{content}'
            "</QueryReply>"
        )
        peer.hear()

    with (
        raw_listener(serve) as address,
        Consumer(address) as consumer,
        pytest.raises(BrokerRefused, match="does not pass"),
    ):
        consumer.query("Count", filter="N > 1")
