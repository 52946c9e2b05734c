"""No event goes to a sink that has not agreed, and it is asked once for all."""

from __future__ import annotations

from broker.harness import Hand, event, handshakes, pushes, seqs
from tocsin.event.subscription import SoapTerms, State
from tocsin.wire.cloudevents.webhook import Allowed, Refused


def test_an_unknown_sink_is_asked_first_and_gets_nothing_until_it_agrees() -> None:
    hand = Hand(trusted=False)
    sub = hand.subscribe()
    hand.publish(event(1))
    assert len(handshakes(hand.seen)) == 1
    assert pushes(hand.seen) == []
    hand.hear(Refused("no answer"))
    view = hand.broker.view(sub)
    assert view.subscription.state is State.PENDING
    assert "no answer" in (view.subscription.reason or "")

    hand.seen.clear()
    hand.pass_s(1)
    assert len(handshakes(hand.seen)) == 1
    hand.hear(Allowed(None))

    assert seqs(pushes(hand.seen)) == [1]


def test_a_hundred_subscriptions_to_a_silent_sink_make_one_question_and_no_event() -> None:
    hand = Hand(trusted=False)
    subscriptions = [hand.subscribe() for _ in range(100)]
    hand.publish(event(1))

    assert len(handshakes(hand.seen)) == 1
    hand.hear(Refused("no answer"))
    hand.pass_s(60)
    assert len(handshakes(hand.seen)) == 2
    assert pushes(hand.seen) == []
    reasons = {hand.broker.view(s).subscription.reason for s in subscriptions}
    assert len(reasons) == 1

    hand.hear(Allowed(None))

    states = {hand.broker.view(s).subscription.state for s in subscriptions}
    assert states == {State.ACTIVE}


def test_a_sink_may_call_back_late_with_the_token_of_its_first_question() -> None:
    hand = Hand(trusted=False)
    sub = hand.subscribe()
    [asked] = handshakes(hand.seen)
    hand.hear(Refused("accepted for later"))
    hand.pass_s(1)

    hand.broker.confirm(sub, asked.token, Allowed(None), hand.now)

    assert hand.broker.view(sub).subscription.state is State.ACTIVE


def test_the_rate_that_a_sink_allowed_is_kept() -> None:
    hand = Hand(trusted=False)
    hand.subscribe()
    hand.hear(Allowed(60))
    hand.publish(event(1), event(2))
    [push] = pushes(hand.seen)
    hand.seen.clear()
    hand.answer(push)

    assert pushes(hand.pass_s(0.9)) == []
    assert seqs(pushes(hand.pass_s(0.2))) == [2]


def test_only_the_token_of_the_handshake_confirms_it() -> None:
    hand = Hand(trusted=False)
    sub = hand.subscribe()
    [asked] = handshakes(hand.seen)

    hand.broker.confirm(sub, "guess", Allowed(None), hand.now)
    assert hand.broker.view(sub).subscription.state is State.PENDING
    hand.broker.confirm(sub, asked.token, Allowed(None), hand.now)

    assert hand.broker.view(sub).subscription.state is State.ACTIVE


def test_a_web_services_consumer_was_judged_at_its_door_and_is_not_asked() -> None:
    hand = Hand(trusted=False)

    sub = hand.subscribe(soap=SoapTerms(spec="wsn13"))

    assert hand.broker.view(sub).subscription.state is State.ACTIVE
