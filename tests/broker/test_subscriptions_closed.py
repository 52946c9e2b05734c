"""A sink is told, where its protocol has words for it, that a subscription sends it no more."""

from __future__ import annotations

from broker.harness import Hand, S, event, only, pushes
from tocsin.broker.delivery.deadletter import from_record
from tocsin.broker.delivery.outcome import Answered
from tocsin.broker.effects import CloseSubscription, Push
from tocsin.event.subscription import Change


def sent(hand: Hand) -> Push:
    """The push of one event."""
    hand.publish(event(1))
    return pushes(hand.seen)[-1]


def leaves(hand: Hand) -> list[tuple[int, str]]:
    return [(leave.lane, leave.subscription_id) for leave in only(CloseSubscription, hand.seen)]


def delete(hand: Hand, subscription: str) -> None:
    hand.ask(lambda token: hand.broker.unsubscribe(subscription, token, hand.now))


def test_leave_is_taken_of_the_sink_of_a_deleted_subscription() -> None:
    hand = Hand()
    subscription = hand.subscribe()
    push = sent(hand)
    assert leaves(hand) == []

    delete(hand, subscription)

    assert leaves(hand) == [(push.lane, subscription)]


def test_leave_is_taken_when_the_lease_lapses() -> None:
    hand = Hand()
    subscription = hand.subscribe(expires_ns=hand.now + S)
    push = sent(hand)

    hand.pass_s(2)

    assert leaves(hand) == [(push.lane, subscription)]


def test_leave_is_taken_when_the_sink_is_gone() -> None:
    hand = Hand()
    subscription = hand.subscribe()
    push = sent(hand)

    hand.answer(push, Answered(410))

    assert leaves(hand) == [(push.lane, subscription)]


def test_leave_is_taken_of_the_former_sink_of_one_that_moved() -> None:
    hand = Hand()
    subscription = hand.subscribe("http://former/")
    push = sent(hand)

    change = Change(sink="http://latter/")
    hand.ask(lambda token: hand.broker.change(subscription, change, token, hand.now))

    assert leaves(hand) == [(push.lane, subscription)]


def test_a_box_has_nobody_to_take_leave_of() -> None:
    hand = Hand()

    delete(hand, hand.subscribe(None))

    assert leaves(hand) == []


def test_leave_is_taken_after_a_dead_letter_of_one_that_is_gone_was_sent_again() -> None:
    hand = Hand()
    subscription = hand.subscribe()
    hand.answer(sent(hand), Answered(400))
    hand.pass_s(1)
    [letter] = map(from_record, hand.dead.values())
    delete(hand, subscription)
    hand.seen.clear()

    hand.broker.redrive(letter, "token", hand.now)
    [push] = pushes(hand.settle())
    assert leaves(hand) == []
    hand.answer(push)

    assert leaves(hand) == [(push.lane, subscription)]


def test_no_leave_is_taken_after_a_dead_letter_of_one_that_is_there() -> None:
    hand = Hand()
    hand.subscribe()
    hand.answer(sent(hand), Answered(400))
    hand.pass_s(1)
    [letter] = map(from_record, hand.dead.values())

    hand.broker.redrive(letter, "token", hand.now)
    hand.answer(pushes(hand.settle())[-1])

    assert leaves(hand) == []
