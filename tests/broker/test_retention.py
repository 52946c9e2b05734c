"""The log forgets nothing that somebody waits for, as long as that one may wait."""

from __future__ import annotations

from broker.harness import Hand, event, seqs
from tocsin.broker.effects import Pulled
from tocsin.broker.options import BrokerOptions
from tocsin.event.subscription import Change, State


def test_retention_does_not_pass_somebody_who_still_waits_for_it() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.publish(*(event(n) for n in range(10)))
    hand.pull(box, events_max=4)
    hand.pull(box, ack="4")
    hand.broker.retention_checked(8, hand.now)
    hand.pass_s(1)

    assert hand.log[0].seq == 5


def test_an_event_older_than_a_subscription_may_hold_is_dropped_and_told() -> None:
    hand = Hand(BrokerOptions(retention_check_s=10), snapshot=None)
    box = hand.subscribe(sink=None, backlog_age_s=60)
    hand.publish(event(1))
    again = hand.crash()
    again.settle()
    again.pass_s(30)
    again.publish(event(2))
    again.pass_s(40)

    pulled = again.pull(box)

    assert isinstance(pulled, Pulled)
    assert seqs([pulled]) == [2]
    assert pulled.dropped == 1


def test_a_paused_subscription_holds_the_log_back_no_longer_than_it_may() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None, backlog_age_s=60, filters=[{"topic": "a"}])
    hand.ask(lambda t: hand.broker.change(box, Change(state=State.PAUSED), t, hand.now))
    hand.publish(event(1, "a"), event(2, "b"), event(3, "a"))
    again = hand.crash()
    again.pass_s(50)
    again.publish(event(4, "a"))
    again.pass_s(40)

    for _ in range(3):
        again.broker.retention_checked(4, again.now)
        again.settle()
        again.pass_s(1)

    assert again.log[0].seq == 4
    assert again.broker.view(box).dropped == 2
    again.ask(lambda t: again.broker.change(box, Change(state=State.ACTIVE), t, again.now))
    assert seqs([again.pull(box)]) == [4]


def test_the_log_keeps_what_the_archive_has_not_taken() -> None:
    hand = Hand()
    hand.broker.hold_for_archive(0)
    hand.publish(*(event(n) for n in range(10)))
    hand.broker.retention_checked(8, hand.now)
    hand.pass_s(1)
    first_while_nothing_is_archived = hand.log[0].seq
    hand.broker.hold_for_archive(5)
    hand.broker.retention_checked(8, hand.now)
    hand.pass_s(1)
    first_while_some_is = hand.log[0].seq
    hand.broker.hold_for_archive(None)
    hand.broker.retention_checked(8, hand.now)
    hand.pass_s(1)

    assert first_while_nothing_is_archived == 1
    assert first_while_some_is == 6
    assert hand.log[0].seq == 9
