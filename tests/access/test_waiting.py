"""A right that ends while events wait: they are not sent, nor is a dead letter again."""

from __future__ import annotations

from broker.harness import Hand, answer_to, event, pushes
from tocsin.access.decision import Action
from tocsin.access.policy.policy import HolderPermit, Policy
from tocsin.access.policy.rights import read_rule
from tocsin.broker.delivery.deadletter import from_record
from tocsin.broker.delivery.outcome import Answered
from tocsin.broker.effects import Redriven
from tocsin.errors import NotAllowed
from tocsin.event.subscription import Owner


class Rights:
    """Of whoever subscribes by hand: nobody who signed in."""

    def __init__(self) -> None:
        self.policy = Policy(lambda: 0)
        self.grant("lead/**", "ops/**")

    def of(self, owner: Owner | None) -> HolderPermit | None:
        return self.policy.permit(owner, Action.SUBSCRIBE)

    def grant(self, *topics: str) -> None:
        """These and no others."""
        rules = [
            read_rule({"principal": "anonymous", "action": "subscribe", "topic": topic}, topic, 0)
            for topic in topics
        ]
        self.policy.set_rules(rules, list(self.policy.rules))


def topics(hand: Hand) -> list[list[str]]:
    return [[each.event.topic for each in push.events] for push in pushes(hand.seen)]


def test_events_that_wait_for_a_slow_sink_are_not_sent_when_the_right_has_ended() -> None:
    rights = Rights()
    hand = Hand(permit_of=rights.of)
    hand.subscribe()
    hand.publish(event(1, "lead/a"), event(2, "ops/a"), event(3, "lead/b"), event(4, "ops/b"))
    assert topics(hand) == [["lead/a"]]

    rights.grant("ops/**")
    hand.broker.rights_changed()
    for _ in range(2):
        hand.answer(pushes(hand.seen)[-1])

    assert topics(hand) == [["lead/a"], ["ops/a"], ["ops/b"]]
    assert hand.broker.counters.withheld == 1


def test_an_event_whose_right_has_ended_is_not_tried_again() -> None:
    rights = Rights()
    hand = Hand(permit_of=rights.of)
    hand.subscribe()
    hand.publish(event(1, "lead/a"), event(2, "ops/a"))

    rights.grant("ops/**")
    hand.broker.rights_changed()
    hand.answer(pushes(hand.seen)[-1], Answered(503))
    hand.pass_s(3600)

    assert topics(hand) == [["lead/a"], ["ops/a"]]


def test_a_dead_letter_is_redriven_only_while_the_owner_may_have_the_event() -> None:
    rights = Rights()
    hand = Hand(permit_of=rights.of)
    hand.subscribe()
    hand.publish(event(1, "lead/a"))
    hand.answer(pushes(hand.seen)[0], Answered(400))
    hand.pass_s(1)
    [letter] = map(from_record, hand.dead.values())
    hand.seen.clear()

    rights.grant("ops/**")
    hand.broker.redrive(letter, "first", hand.now)
    refused = answer_to("first", hand.settle())
    assert isinstance(refused, NotAllowed)
    assert "no right to this event" in refused.problem
    assert pushes(hand.seen) == []
    assert len(hand.dead) == 1

    rights.grant("lead/**")
    hand.broker.redrive(letter, "second", hand.now)
    [push] = pushes(hand.settle())
    assert isinstance(answer_to("second", hand.answer(push)), Redriven)


def test_who_may_have_nothing_is_no_interest_of_anybody() -> None:
    rights = Rights()
    hand = Hand(permit_of=rights.of)
    hand.subscribe()
    before = hand.broker.interest.version

    rights.grant()
    hand.broker.rights_changed()

    assert hand.broker.interest.version > before
    assert not hand.broker._state.interest._wanted
