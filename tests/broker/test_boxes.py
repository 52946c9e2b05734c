"""What a box handed out stays until it is acknowledged."""

from __future__ import annotations

from broker.harness import Hand, S, answer_to, event, only, seqs
from tocsin.broker.effects import Pulled, Reply
from tocsin.errors import (
    BadToken,
    NoSuchBox,
)


def test_a_box_gives_the_same_again_until_it_is_acknowledged() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.publish(event(1), event(2), event(3))

    first = hand.pull(box, events_max=2)
    again = hand.pull(box, events_max=2)
    assert isinstance(first, Pulled)
    assert isinstance(again, Pulled)
    rest = hand.pull(box, ack=first.next)

    assert seqs([first]) == seqs([again]) == [1, 2]
    assert seqs([rest]) == [3]


def test_a_pull_waits_for_an_event_and_gives_in_when_its_time_is_over() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.broker.pull(box, 10, 5 * S, None, "early", hand.now)
    hand.settle()
    hand.publish(event(1))
    [early] = [e for e in only(Reply, hand.seen) if e.token == "early"]
    assert seqs([early.result]) == [1]

    ack = early.result.next  # type: ignore[attr-defined]
    hand.broker.pull(box, 10, 5 * S, ack, "late", hand.now)
    late = [e for e in only(Reply, hand.pass_s(5)) if e.token == "late"]

    assert seqs([late[0].result]) == []


def test_a_box_lets_go_of_nothing_that_it_did_not_hand_out() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.publish(event(1), event(2), event(3))
    hand.pull(box, events_max=1)

    assert isinstance(hand.pull(box, ack="2"), BadToken)
    assert seqs([hand.pull(box, ack="1")]) == [2, 3]


def test_a_token_from_before_a_crash_is_good_after_it() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.publish(event(1), event(2), event(3))
    first = hand.pull(box, events_max=2)
    assert isinstance(first, Pulled)

    again = hand.crash()
    again.settle()

    assert seqs([again.pull(box, ack=first.next)]) == [3]


def test_a_box_with_a_limit_drops_the_oldest_and_says_so() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None, backlog=2)
    hand.publish(*(event(n) for n in range(5)))

    pulled = hand.pull(box)

    assert isinstance(pulled, Pulled)
    assert seqs([pulled]) == [4, 5]
    assert pulled.dropped == 3
    reported = hand.pull(box, ack=pulled.next)
    assert isinstance(reported, Pulled)
    assert reported.dropped == 0


def test_a_token_that_was_never_handed_out_is_refused() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)

    for token in ("99", "-1", "x", "", "9" * 40, "１"):
        assert isinstance(hand.pull(box, ack=token), BadToken), token


def test_a_box_that_is_deleted_tells_those_who_wait() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.broker.pull(box, 10, 50 * S, None, "waits", hand.now)

    hand.ask(lambda t: hand.broker.unsubscribe(box, t, hand.now))

    assert isinstance(answer_to("waits", hand.seen), NoSuchBox)
