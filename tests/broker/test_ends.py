"""Who asked for it is told when a subscription is over before its time, and only then."""

from __future__ import annotations

import pytest

from broker.harness import Hand, event, only, pushes
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.effects import Commit, Effect, Ended, Push
from tocsin.errors import DiskFailed, DiskFull
from tocsin.event.subscription import SoapTerms

REPORTED = SoapTerms(spec="wse04", end_to="http://owner/")
UNTOLD = SoapTerms(spec="wse04")
FULL = DiskFull("the disk is full", remedy="Make room.")


def ends(effects: list[Effect]) -> list[tuple[str, str]]:
    return [(ended.subscription.id, ended.status) for ended in only(Ended, effects)]


def unsubscribe(hand: Hand, subscription: str, *, quietly: bool = False) -> None:
    hand.ask(lambda token: hand.broker.unsubscribe(subscription, token, hand.now, quietly=quietly))


def gone(hand: Hand) -> list[Effect]:
    """The sink answers 410 to an event; what the broker wants done then, nothing being done."""
    hand.publish(event(1))
    push: Push = pushes(hand.seen)[-1]
    hand.broker.pushed(push.lane, Answered(410), hand.now)
    return hand.flush()


@pytest.mark.parametrize("sink", ["http://sink/", None])
def test_one_that_somebody_else_deletes_is_told_of(sink: str | None) -> None:
    hand = Hand()
    subscription = hand.subscribe(sink, soap=REPORTED)

    unsubscribe(hand, subscription)

    assert ends(hand.seen) == [(subscription, "SourceCancelling")]


def test_one_that_its_own_consumer_ends_is_not_told_of() -> None:
    hand = Hand()
    unsubscribe(hand, hand.subscribe(soap=REPORTED), quietly=True)

    assert not ends(hand.seen)


@pytest.mark.parametrize("soap", [None, UNTOLD])
def test_without_an_address_nobody_is_told(soap: SoapTerms | None) -> None:
    hand = Hand()
    unsubscribe(hand, hand.subscribe(soap=soap))
    hand.subscribe(soap=soap)
    gone(hand)
    hand.pass_s(1)

    assert not ends(hand.seen)


def test_two_who_delete_the_same_make_one_end() -> None:
    hand = Hand()
    subscription = hand.subscribe(soap=REPORTED)
    for token in ("a", "b"):
        hand.broker.unsubscribe(subscription, token, hand.now)
    hand.settle()

    assert ends(hand.seen) == [(subscription, "SourceCancelling")]


def test_a_deletion_that_the_disk_refused_is_no_end() -> None:
    hand = Hand()
    subscription = hand.subscribe(soap=REPORTED)
    hand.broker.unsubscribe(subscription, "token", hand.now)
    hand.flush()
    hand.broker.commit_failed(FULL, hand.now)

    assert not ends(hand.settle())
    assert hand.broker.view(subscription)


def test_a_sink_that_is_gone_is_told_of_when_the_disk_has_it() -> None:
    hand = Hand()
    subscription = hand.subscribe(soap=REPORTED)
    asked = gone(hand)
    asked += hand.pass_s(0)
    assert not ends(asked)
    hand.now += 1_000_000_000
    asked = hand.flush()
    (commit,) = only(Commit, asked)
    assert commit.change.subscriptions == {subscription: None}
    assert not ends(asked)
    hand.do(commit)

    assert ends(hand.settle()) == [(subscription, "DeliveryFailure")]


def test_a_full_disk_delays_the_word_and_loses_it_not() -> None:
    hand = Hand()
    subscription = hand.subscribe(soap=REPORTED)
    gone(hand)
    hand.now += 1_000_000_000
    hand.flush()
    hand.broker.commit_failed(FULL, hand.now)
    assert not ends(hand.settle())

    hand.pass_s(2)

    assert ends(hand.seen) == [(subscription, "DeliveryFailure")]


def test_a_broken_disk_leaves_it_untold() -> None:
    hand = Hand()
    hand.subscribe(soap=REPORTED)
    gone(hand)
    hand.now += 1_000_000_000
    hand.flush()
    hand.broker.commit_failed(DiskFailed("no", remedy="."), hand.now)

    assert not ends(hand.settle())


def test_an_expiry_a_pause_a_dead_letter_and_a_stop_are_no_ends() -> None:
    hand = Hand()
    hand.subscribe(soap=REPORTED, expires_ns=hand.now + 10)
    hand.subscribe("http://refusing/", soap=REPORTED, attempts=1)
    away = hand.subscribe("http://away/", soap=REPORTED)
    hand.pass_s(1)
    hand.publish(event(1))
    for push in pushes(hand.seen):
        away_now = push.sink == "http://away/"
        hand.answer(push, Failed("nobody there") if away_now else Answered(400))
    hand.pass_s(10 * 86_400)
    hand.answer(pushes(hand.seen)[-1], Failed("nobody there"))
    hand.broker.shut_down(hand.now)
    hand.settle()

    assert hand.broker.view(away).subscription.reason
    assert hand.dead
    assert not ends(hand.seen)
