"""A consumer that comes back does not wait out its old back-off."""

from __future__ import annotations

from broker.harness import Hand, event, pushes
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.options import BrokerOptions
from tocsin.broker.push.unreachable import EARLY_LANES_MAX
from tocsin.event.subscription import Change, State

S = 1_000_000_000
SINK = "http://sink/"
REFUSED = Failed("refused")


HERE, ELSEWHERE = "192.0.2.7", "192.0.2.8"


def away(outcome: Answered | Failed = REFUSED) -> tuple[Hand, str]:
    """A sink that has failed eight times: the next try is a minute away."""
    hand = Hand(addresses_of=lambda sink: (HERE,))
    name = hand.subscribe(SINK)
    hand.publish(event(1))
    for failure in range(8):
        hand.answer(pushes(hand.seen)[-1], outcome)
        due = hand.broker.view(name).next_attempt_ns
        assert due is not None
        if failure < 7:
            hand.pass_s((due - hand.now) / S)
    hand.seen.clear()
    return hand, name


def change(hand: Hand, name: str, asked: Change) -> None:
    hand.ask(lambda token: hand.broker.change(name, asked, token, hand.now))


def renewal(hand: Hand) -> Change:
    return Change(expires_ns=hand.now + 3600 * S)


def test_a_new_subscription_to_the_sink_is_tried_at_once() -> None:
    hand, _ = away()
    hand.subscribe(SINK)
    assert [push.sink for push in pushes(hand.seen)] == [SINK]


def test_a_renewal_is_tried_at_once() -> None:
    hand, name = away()
    change(hand, name, renewal(hand))
    assert len(pushes(hand.seen)) == 1


def test_resuming_is_tried_at_once() -> None:
    hand, name = away()
    change(hand, name, Change(state=State.ACTIVE))
    assert len(pushes(hand.seen)) == 1


def test_a_sink_is_not_hammered_by_renewals() -> None:
    hand, name = away()
    change(hand, name, renewal(hand))
    hand.answer(pushes(hand.seen)[-1], REFUSED)
    for _ in range(10):
        change(hand, name, renewal(hand))
    assert len(pushes(hand.seen)) == 1


def test_a_sink_that_asked_for_patience_is_given_it() -> None:
    hand, name = away(Answered(503, retry_after_s=60))
    change(hand, name, renewal(hand))
    assert pushes(hand.seen) == []


def connects(hand: Hand, address: str = HERE) -> None:
    hand.broker.peer_connected(address, hand.now)
    hand.settle()


def test_a_sink_is_tried_at_once_when_somebody_connects_from_its_address() -> None:
    hand, _ = away()
    connects(hand)
    assert [push.sink for push in pushes(hand.seen)] == [SINK]


def test_a_connection_from_elsewhere_is_no_reason_to_try() -> None:
    hand, _ = away()
    connects(hand, ELSEWHERE)
    assert pushes(hand.seen) == []


def test_a_sink_is_tried_once_a_second_at_most_however_many_connect() -> None:
    hand, _ = away()
    connects(hand)
    hand.answer(pushes(hand.seen)[-1], REFUSED)
    for _ in range(10):
        connects(hand)
    assert len(pushes(hand.seen)) == 1
    hand.now += S + 1
    connects(hand)
    assert len(pushes(hand.seen)) == 2


def test_a_connection_does_not_hurry_a_sink_that_asked_for_patience() -> None:
    hand, _ = away(Answered(503, retry_after_s=60))
    connects(hand)
    assert pushes(hand.seen) == []


def test_a_connection_does_not_hurry_a_sink_that_answers_as_its_events_would_be_given_up() -> None:
    hand, _ = away(Answered(500))
    connects(hand)
    assert pushes(hand.seen) == []


def test_a_renewal_does_not_hurry_a_sink_that_fails_and_says_when_to_come_back() -> None:
    hand, name = away(Answered(500, retry_after_s=60))
    change(hand, name, renewal(hand))
    assert pushes(hand.seen) == []


def test_nobody_is_looked_for_once_the_sink_is_back_or_its_subscription_ended() -> None:
    hand, _ = away()
    assert hand.broker.unreachable
    connects(hand)
    hand.answer(pushes(hand.seen)[-1])
    assert not hand.broker.unreachable

    hand, name = away()
    hand.ask(lambda token: hand.broker.unsubscribe(name, token, hand.now))
    assert not hand.broker.unreachable


def test_many_sinks_of_one_address_are_tried_in_turn() -> None:
    retry = RetryOptions(first_delay_s=300)
    hand = Hand(BrokerOptions(retry=retry), addresses_of=lambda sink: (HERE,))
    for number in range(EARLY_LANES_MAX + 20):
        hand.subscribe(f"http://sink/{number}")
    hand.publish(event(1))
    for push in pushes(hand.seen):
        hand.answer(push, REFUSED)
    hand.seen.clear()
    connects(hand)
    first = {push.sink for push in pushes(hand.seen)}
    hand.pass_s(1.1)
    connects(hand)
    assert len(first) == EARLY_LANES_MAX
    assert len({push.sink for push in pushes(hand.seen)}) == EARLY_LANES_MAX + 20
