"""A dead letter goes only when the sink has taken it."""

from __future__ import annotations

from broker.harness import Hand, answer_to, event, pushes
from tocsin.broker.delivery.deadletter import from_record
from tocsin.broker.delivery.outcome import Answered
from tocsin.broker.effects import Redriven
from tocsin.errors import (
    RedriveFailed,
)


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
