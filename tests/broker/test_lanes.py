"""Each sink gets its events in order, one request at a time, as patiently as its answers ask."""

from __future__ import annotations

import msgspec
import pytest

from broker.harness import OK, Hand, S, answer_to, event, handshakes, only, pushes, seqs
from tocsin.broker.delivery.deadletter import from_record
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.effects import Commit
from tocsin.broker.options import BrokerOptions
from tocsin.errors import (
    NoSuchSubscription,
)
from tocsin.event.subscription import Change, State
from tocsin.wire.cloudevents.webhook import Allowed, Refused

DOWN = Failed("connection refused")


def test_a_matching_event_is_pushed_and_another_is_not() -> None:
    hand = Hand()
    hand.subscribe(filters=[{"topic": "lead/**"}])

    hand.publish(event(1, "lead/ohio"), event(2, "other"))

    assert seqs(pushes(hand.seen)) == [1]


def test_one_request_is_under_way_per_sink_and_the_order_holds() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1), event(2), event(3))
    got: list[int] = []

    while waiting := pushes(hand.seen):
        assert len(waiting) == 1
        got += seqs(waiting)
        hand.seen.clear()
        hand.answer(waiting[0])

    assert got == [1, 2, 3]


def test_a_failed_push_is_tried_again_later_with_doubling_waits_and_no_overtaking() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1), event(2))
    waits: list[float] = []
    for _ in range(4):
        [push] = pushes(hand.seen)
        hand.seen.clear()
        assert seqs([push]) == [1]
        hand.answer(push, Answered(500))
        due = hand.broker.view("id1").next_attempt_ns
        assert due is not None
        waits.append((due - hand.now) / S)
        hand.pass_s(waits[-1])

    assert waits == [0.5, 1.0, 2.0, 4.0]


def test_retry_after_is_obeyed() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1))
    [push] = pushes(hand.seen)
    hand.seen.clear()

    hand.answer(push, Answered(429, retry_after_s=20))

    assert pushes(hand.pass_s(19.9)) == []
    assert seqs(pushes(hand.pass_s(0.2))) == [1]


@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after_counts_for_all_at_the_sink_also_if_whoever_it_answers_has_left(
    status: int,
) -> None:
    hand = Hand()
    left = hand.subscribe()
    hand.subscribe()
    hand.publish(event(1))
    [push] = pushes(hand.seen)
    hand.seen.clear()
    assert push.subscription.id == left
    hand.broker.unsubscribe(left, "left", hand.now)
    hand.settle()

    hand.answer(push, Answered(status, retry_after_s=20))

    assert pushes(hand.pass_s(19.9)) == []
    assert seqs(pushes(hand.pass_s(0.2))) == [1]


def test_gone_ends_the_subscription() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1))

    hand.answer(pushes(hand.seen)[0], Answered(410))
    hand.pass_s(1)

    assert hand.broker.views() == []
    assert hand.definitions == {}


def test_a_refusal_of_the_event_itself_makes_a_dead_letter_and_the_next_one_goes() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1), event(2))
    [push] = pushes(hand.seen)

    effects = hand.answer(push, Answered(422, excerpt="what is this?"))
    hand.pass_s(1)

    assert seqs(pushes(effects)) == [2]
    [letter] = map(from_record, hand.dead.values())
    assert (letter.seq, letter.reason) == (1, "HTTP 422")
    assert [(a.status, a.excerpt) for a in letter.attempts] == [(422, "what is this?")]


def test_an_event_is_given_up_after_so_many_refusals() -> None:
    hand = Hand(BrokerOptions(retry=RetryOptions(attempts=3)))
    hand.subscribe()
    hand.publish(event(1))
    for _ in range(3):
        [push] = pushes(hand.seen)
        hand.seen.clear()
        hand.answer(push, Answered(500))
        hand.pass_s(10)

    [letter] = map(from_record, hand.dead.values())
    assert len(letter.attempts) == 3
    assert hand.broker.view("id1").behind == 0


def test_an_unreachable_sink_loses_nothing_however_long() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1))
    for _ in range(50):
        for push in pushes(hand.seen):
            hand.seen.clear()
            hand.answer(push, DOWN)
        hand.pass_s(300)

    assert hand.dead == {}
    assert hand.broker.view("id1").sink_state == "unreachable"
    [push] = pushes(hand.seen)
    assert seqs([push]) == [1]


@pytest.mark.parametrize("answer", [Answered(429), Answered(503, retry_after_s=5.0)])
def test_a_sink_that_asks_for_patience_is_busy_and_not_unreachable(answer: Answered) -> None:
    hand = Hand()
    subscription = hand.subscribe()
    hand.publish(event(1))

    hand.answer(pushes(hand.seen)[-1], answer)
    assert hand.broker.view(subscription).sink_state == "busy"

    [push] = pushes(hand.pass_s(60))
    hand.answer(push, DOWN)
    assert hand.broker.view(subscription).sink_state == "unreachable"


def test_who_waits_for_consent_is_told_when_the_sink_is_asked_again() -> None:
    hand = Hand(trusted=False)
    first = hand.subscribe()
    asked = hand.broker.view(first)
    assert (asked.sink_state, asked.next_attempt_ns) == ("unconsented", None)

    hand.hear(Refused("HTTP 405"))
    second = hand.subscribe()
    views = [hand.broker.view(each) for each in (first, second)]
    assert [view.sink_state for view in views] == ["unconsented"] * 2
    [again_ns] = {view.next_attempt_ns for view in views}
    assert again_ns is not None
    assert again_ns > hand.now

    questions = len(handshakes(hand.seen))
    hand.pass_s((again_ns - hand.now) / S)
    assert len(handshakes(hand.seen)) == questions + 1
    hand.hear(Allowed(None))
    agreed = hand.broker.view(first)
    assert (agreed.sink_state, agreed.next_attempt_ns) == ("ok", None)


def test_after_days_unreachable_a_subscription_is_paused_and_keeps_its_place() -> None:
    hand = Hand(BrokerOptions(retry=RetryOptions(unreachable_s_max=1000), backlog_age_s=1e6))
    hand.subscribe()
    hand.publish(event(1))
    for _ in range(20):
        for push in pushes(hand.seen):
            hand.seen.clear()
            hand.answer(push, DOWN)
        hand.pass_s(200)
    view = hand.broker.view("id1")
    assert view.subscription.state is State.PAUSED
    assert "connection refused" in (view.subscription.reason or "")

    hand.seen.clear()
    hand.ask(lambda t: hand.broker.change("id1", Change(state=State.ACTIVE), t, hand.now))

    assert seqs(pushes(hand.seen)) == [1]


def test_a_batch_carries_what_waits_and_a_refused_one_is_taken_apart() -> None:
    hand = Hand()
    hand.subscribe(batch=10)
    hand.publish(event(1))
    [first] = pushes(hand.seen)
    hand.publish(*(event(n) for n in range(2, 6)))

    effects = hand.answer(first)
    [batch] = pushes(effects)
    assert seqs([batch]) == [2, 3, 4, 5]

    alone: list[int] = []
    [push] = pushes(hand.answer(batch, Answered(400)))
    while True:
        alone += seqs([push])
        answer = Answered(400) if seqs([push]) == [3] else OK
        following = pushes(hand.answer(push, answer))
        if not following:
            break
        [push] = following
    assert alone == [2, 3, 4, 5]
    hand.pass_s(1)
    assert [from_record(d).seq for d in hand.dead.values()] == [3]


def test_two_subscriptions_to_one_sink_share_its_lane() -> None:
    hand = Hand()
    hand.subscribe(filters=[{"topic": "a"}])
    hand.subscribe(filters=[{"topic": "b"}])

    hand.publish(event(1, "b"), event(2, "a"))

    assert len(pushes(hand.seen)) == 1
    assert hand.broker.lanes_open == 1


def test_a_shared_sink_gets_the_oldest_event_first_whoever_waits_for_it() -> None:
    hand = Hand()
    for topic in ("a", "b", "c"):
        hand.subscribe(filters=[{"topic": topic}])
    hand.publish(*(event(n, "abccba"[n % 6]) for n in range(30)))
    got: list[int] = []

    while waiting := pushes(hand.seen):
        got += seqs(waiting)
        hand.seen.clear()
        hand.answer(waiting[0])

    assert got == list(range(1, 31))


def test_a_shared_sink_goes_on_when_some_of_its_subscriptions_pause_or_end() -> None:
    hand = Hand()
    first, second, third = (hand.subscribe() for _ in range(3))
    hand.publish(event(1), event(2))
    hand.ask(lambda t: hand.broker.change(first, Change(state=State.PAUSED), t, hand.now))
    hand.ask(lambda t: hand.broker.unsubscribe(third, t, hand.now))
    got: list[tuple[str, int]] = []

    def drain() -> None:
        while waiting := pushes(hand.seen):
            got.extend((p.subscription.id, s.seq) for p in waiting for s in p.events)
            hand.seen.clear()
            hand.answer(waiting[0])

    drain()
    assert {seq for who, seq in got if who == second} == {1, 2}
    hand.ask(lambda t: hand.broker.change(first, Change(state=State.ACTIVE), t, hand.now))
    drain()

    assert {seq for who, seq in got if who == first} == {1, 2}


def test_a_full_window_is_caught_up_from_the_log() -> None:
    hand = Hand(BrokerOptions(read_page_events=100))
    hand.subscribe()
    for start in range(0, 3000, 500):
        hand.publish(*(event(n) for n in range(start, start + 500)))
    assert hand.broker.view("id1").lagging

    got: list[int] = []
    while waiting := pushes(hand.seen):
        got += seqs(waiting)
        hand.seen.clear()
        hand.answer(waiting[0])

    assert got == list(range(1, 3001))
    assert not hand.broker.view("id1").lagging


def test_events_after_a_crash_are_those_not_yet_settled() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1), event(2), event(3))
    hand.answer(pushes(hand.seen)[0])
    hand.pass_s(1)

    again = hand.crash()
    effects = again.settle()

    assert seqs(pushes(effects)) == [2]


def test_an_idle_subscription_does_not_read_the_log_again_after_a_crash() -> None:
    hand = Hand()
    hand.subscribe(filters=[{"topic": "rare"}])
    hand.subscribe(sink="http://other/")
    for number in range(10):
        hand.publish(event(number))
        for push in pushes(hand.seen):
            hand.seen.clear()
            hand.answer(push)
    hand.pass_s(1)

    again = hand.crash()
    again.settle()

    assert again.broker.counters.read_back == 0


def test_a_paused_subscription_gets_what_it_missed_when_it_resumes() -> None:
    hand = Hand()
    hand.subscribe()
    hand.ask(lambda t: hand.broker.change("id1", Change(state=State.PAUSED), t, hand.now))
    hand.publish(event(1), event(2))
    assert pushes(hand.seen) == []

    hand.ask(lambda t: hand.broker.change("id1", Change(state=State.ACTIVE), t, hand.now))

    assert seqs(pushes(hand.seen)) == [1]


def test_a_subscription_ends_when_its_lease_does_and_not_when_renewed() -> None:
    hand = Hand()
    hand.subscribe(expires_ns=hand.now + 10 * S)
    hand.subscribe(expires_ns=hand.now + 10 * S)
    renewed = Change(expires_ns=hand.now + 100 * S)
    hand.ask(lambda t: hand.broker.change("id2", renewed, t, hand.now))

    hand.pass_s(11)
    hand.pass_s(1)

    assert [v.subscription.id for v in hand.broker.views()] == ["id2"]
    assert list(hand.definitions) == ["id2"]


def test_two_changes_that_share_a_commit_both_hold() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.broker.publish([event(1)], "busy")
    [commit] = only(Commit, hand.flush())
    hand.broker.change(box, Change(state=State.PAUSED), "a", hand.now)
    hand.broker.change(box, Change(expires_ns=hand.now + 50 * S), "b", hand.now)
    hand.do(commit)
    hand.settle()

    [data] = hand.definitions.values()
    kept = msgspec.json.decode(data)
    assert kept["state"] == "paused"
    assert kept["expires_ns"] == hand.now + 50 * S


def test_a_change_after_a_delete_in_one_commit_does_not_bring_it_back() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.broker.publish([event(1)], "busy")
    [commit] = only(Commit, hand.flush())
    hand.broker.unsubscribe(box, "a", hand.now)
    hand.broker.change(box, Change(state=State.PAUSED), "b", hand.now)
    hand.do(commit)
    effects = hand.settle()

    assert hand.definitions == {}
    assert answer_to("a", effects) is None
    assert isinstance(answer_to("b", effects), NoSuchSubscription)
