"""A dead letter goes only when the sink has taken it."""

from __future__ import annotations

from broker.harness import Hand, answer_to, event, pushes
from tocsin.broker.delivery.deadletter import from_record
from tocsin.broker.delivery.outcome import Answered
from tocsin.broker.effects import Redriven
from tocsin.errors import NotAllowed, RedriveFailed
from tocsin.event.event import Event
from tocsin.event.subscription import Owner


def test_a_redriven_letter_goes_only_when_the_sink_has_taken_it() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[0], Answered(400))
    hand.pass_s(1)
    [letter] = map(from_record, hand.dead.values())
    hand.seen.clear()

    hand.broker.redrive(letter, "first", hand.now)
    [push] = pushes(hand.settle())
    refused = hand.answer(push, Answered(500))
    assert isinstance(answer_to("first", refused), RedriveFailed)
    [kept] = map(from_record, hand.dead.values())
    assert len(kept.attempts) == 2

    hand.broker.redrive(kept, "second", hand.now)
    [push] = pushes(hand.settle())
    assert isinstance(answer_to("second", hand.answer(push)), Redriven)
    assert hand.dead == {}


class Ending:
    """The right to everything, until it ends."""

    version = 1
    is_empty = tells_withheld = False

    def end(self) -> None:
        self.version, self.is_empty = 2, True

    def allows(self, event: Event) -> bool:
        return not self.is_empty


ANN = Owner("ann", credential="token/1")


def given_up(right: Ending) -> Hand:
    """A broker with one dead letter of ann's."""
    hand = Hand(permit_of=lambda owner: right if owner == ANN else None)
    hand.subscribe(owner=ANN)
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[0], Answered(400))
    hand.pass_s(1)
    hand.seen.clear()
    return hand


def test_a_letter_is_not_sent_again_to_who_has_no_right_to_it_any_more() -> None:
    right = Ending()
    hand = given_up(right)
    [letter] = map(from_record, hand.dead.values())
    right.end()

    hand.broker.redrive(letter, "again", hand.now)
    effects = hand.settle()

    assert not pushes(effects)
    assert isinstance(answer_to("again", effects), NotAllowed)
    assert hand.dead


def test_nor_when_its_subscription_is_no_more() -> None:
    right = Ending()
    hand = given_up(right)
    [letter] = map(from_record, hand.dead.values())
    hand.ask(lambda token: hand.broker.unsubscribe(letter.subscription, token, hand.now))
    right.end()

    hand.broker.redrive(letter, "again", hand.now)
    effects = hand.settle()

    assert not pushes(effects)
    assert isinstance(answer_to("again", effects), NotAllowed)


def test_nor_when_the_right_ends_while_it_waits_for_its_turn() -> None:
    right = Ending()
    hand = given_up(right)
    [letter] = map(from_record, hand.dead.values())
    hand.publish(event(2))
    [push] = pushes(hand.seen)
    hand.broker.redrive(letter, "again", hand.now)
    assert not pushes(hand.settle())
    right.end()

    effects = hand.answer(push)

    assert not pushes(effects)
    assert isinstance(answer_to("again", effects), NotAllowed)
    hand.broker.redrive(letter, "once more", hand.now)
    assert isinstance(answer_to("once more", hand.settle()), NotAllowed)
