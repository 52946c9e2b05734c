"""A stream follows the log at its reader's speed, and loses nothing."""

from __future__ import annotations

from broker.harness import Hand, event, only, seqs
from tocsin.broker.effects import StreamOut
from tocsin.broker.options import BrokerOptions
from tocsin.event.filter import EVERYTHING


def test_a_stream_gets_a_burst_in_one_piece() -> None:
    hand = Hand()
    number = hand.broker.open_stream(EVERYTHING, None, "test")

    hand.publish(event(1), event(2))

    [out] = only(StreamOut, hand.seen)
    assert (out.stream, seqs([out])) == (number, [1, 2])


def test_a_stream_from_the_past_gets_every_event_once_and_in_order() -> None:
    hand = Hand(BrokerOptions(read_page_events=7))
    for n in range(50):
        hand.publish(event(n))
    hand.broker.open_stream(EVERYTHING, 10, "test")

    hand.settle()
    hand.publish(event(50))

    assert seqs(only(StreamOut, hand.seen)) == list(range(11, 52))


def test_a_blocked_stream_costs_a_window_and_loses_nothing() -> None:
    hand = Hand()
    number = hand.broker.open_stream(EVERYTHING, None, "test")
    hand.broker.stream_blocked(number)
    for start in range(0, 5000, 1000):
        hand.publish(*(event(n) for n in range(start, start + 1000)))
    assert only(StreamOut, hand.seen) == []

    hand.broker.stream_ready(number)
    hand.settle()

    assert seqs(only(StreamOut, hand.seen)) == list(range(1, 5001))
