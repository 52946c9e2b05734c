"""Events in, the right subscribers out: the broker's rules, with the disk in the test's hand."""

from __future__ import annotations

import msgspec
import pytest

from broker.harness import OK, Hand, S, answer_to, event, handshakes, only, pushes
from tocsin.broker.effects import Accepted, Commit, Pulled, Redriven, Reply, Stop, StreamOut
from tocsin.broker.options import BrokerOptions
from tocsin.broker.registry import Change
from tocsin.delivery.deadletter import from_record
from tocsin.delivery.outcome import Answered, Failed
from tocsin.delivery.retry import RetryOptions
from tocsin.errors import (
    BadToken,
    Busy,
    DiskFailed,
    DiskFull,
    NoSuchBox,
    NoSuchSubscription,
    RedriveFailed,
)
from tocsin.event.filter import EVERYTHING
from tocsin.event.subscription import State
from tocsin.wire.cloudevents.webhook import Allowed, Refused

DOWN = Failed("connection refused")


def seqs(effects: object) -> list[int]:
    return [s.seq for e in effects for s in e.events]  # type: ignore[attr-defined]


# Publishing


def test_nobody_is_answered_before_the_disk_has_it() -> None:
    hand = Hand()
    hand.broker.publish([event(1)], "token")

    effects = hand.flush()

    assert [type(e) for e in effects] == [Commit]
    hand.do(effects[0])
    assert hand.flush() == [Reply("token", Accepted(1, 1, 1))]


def test_what_comes_while_the_disk_works_shares_the_next_commit() -> None:
    hand = Hand()
    hand.broker.publish([event(1)], "a")
    [first] = only(Commit, hand.flush())
    hand.broker.publish([event(2)], "b")
    hand.broker.publish([event(3), event(4)], "c")
    assert hand.flush() == []

    hand.do(first)
    [second] = only(Commit, hand.flush())

    assert [s.seq for s in second.batch.events] == [2, 3, 4]


def test_a_repeat_is_acknowledged_with_its_first_number_and_not_stored_again() -> None:
    hand = Hand()
    assert hand.publish(event(1)) == Accepted(1, 1, 1)

    again = hand.publish(event(1), event(2), event(2))

    assert again == Accepted(3, 1, 2, duplicates=2)
    assert [s.seq for s in hand.log] == [1, 2]


def test_the_same_id_from_another_source_is_another_event() -> None:
    hand = Hand()

    hand.publish(event(1, source="/a"), event(1, source="/b"))

    assert len(hand.log) == 2


def test_a_repeat_is_known_again_after_a_restart() -> None:
    hand = Hand()
    hand.publish(event(1))

    again = hand.crash()

    assert again.publish(event(1)) == Accepted(1, 1, 1, duplicates=1)
    assert len(again.log) == 1


def test_too_much_waiting_for_the_disk_is_refused_and_told() -> None:
    hand = Hand(BrokerOptions(intake_events_max=2))
    hand.broker.publish([event(1)], "a")
    hand.flush()
    hand.broker.publish([event(2), event(3)], "b")
    hand.broker.publish([event(4)], "c")

    [reply] = only(Reply, hand.flush())

    assert reply.token == "c"
    assert isinstance(reply.result, Busy)


def test_a_full_disk_refuses_the_event_and_loses_nothing_else() -> None:
    hand = Hand()
    hand.subscribe()
    hand.publish(event(1))
    [push] = pushes(hand.seen)
    hand.broker.pushed(push.lane, OK, hand.now)
    hand.broker.publish([event(2)], "b")
    hand.flush()
    full = DiskFull("no room", remedy="make some")
    hand.broker.commit_failed(full, hand.now)

    assert Reply("b", full) in hand.flush()
    assert hand.publish(event(2)) == Accepted(1, 2, 2)
    hand.pass_s(2)
    assert hand.cursors["id1"] in (-1, 1)


def test_a_refused_subscription_is_not_saved_later() -> None:
    hand = Hand()
    from tocsin.event.subscription import Kind, Subscription

    asked = Subscription(id="", kind=Kind.BOX)
    hand.broker.subscribe(asked, EVERYTHING, None, "t", hand.now)
    hand.flush()
    hand.broker.commit_failed(DiskFull("no room", remedy="make some"), hand.now)
    hand.pass_s(5)

    assert hand.definitions == {}
    assert hand.broker.views() == []


def test_a_failing_disk_acknowledges_nothing_and_stops_the_broker() -> None:
    hand = Hand()
    hand.broker.publish([event(1)], "a")
    hand.flush()
    hand.broker.publish([event(2)], "b")
    failed = DiskFailed("fsync: EIO", remedy="see the disk")

    hand.broker.commit_failed(failed, hand.now)
    effects = hand.flush()

    assert effects == [Reply("a", failed), Reply("b", failed), Stop(failed)]


def test_time_does_not_go_back_in_the_log_when_the_clock_was_set_back() -> None:
    hand = Hand()
    hand.publish(event(1))
    again = hand.crash()
    again.now -= 500 * S

    again.publish(event(2))

    assert again.log[1].received_ns >= again.log[0].received_ns


def test_a_subscription_that_cannot_be_read_any_more_is_paused_and_stops_nobody_else() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    broken = hand.subscribe(sink=None)
    definition = msgspec.json.decode(hand.definitions[broken])
    definition["filters"] = [{"nonsense": 1}]
    hand.definitions[broken] = msgspec.json.encode(definition)

    again = hand.crash()
    again.publish(event(1))

    assert again.broker.view(broken).subscription.state is State.PAUSED
    assert seqs([again.pull(box)]) == [1]


# Pushing


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


# Consent


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


# Boxes


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
    told = hand.pull(box, ack=pulled.next)
    assert isinstance(told, Pulled)
    assert told.dropped == 0


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


# Dead letters


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


# Streams


def test_a_stream_gets_a_burst_in_one_piece() -> None:
    hand = Hand()
    number = hand.broker.open_stream(EVERYTHING, None, "test")

    hand.publish(event(1), event(2))

    [out] = only(StreamOut, hand.seen)
    assert (out.stream, seqs([out])) == (number, [1, 2])


def test_a_stream_from_the_past_gets_every_event_once_and_in_order() -> None:
    hand = Hand(BrokerOptions(read_page_events=7))
    for n in range(50):
        hand.publish(event(n))
    hand.broker.open_stream(EVERYTHING, 10, "test")

    hand.settle()
    hand.publish(event(50))

    assert seqs(only(StreamOut, hand.seen)) == list(range(11, 52))


def test_a_blocked_stream_costs_a_window_and_loses_nothing() -> None:
    hand = Hand()
    number = hand.broker.open_stream(EVERYTHING, None, "test")
    hand.broker.stream_blocked(number)
    for start in range(0, 5000, 1000):
        hand.publish(*(event(n) for n in range(start, start + 1000)))
    assert only(StreamOut, hand.seen) == []

    hand.broker.stream_ready(number)
    hand.settle()

    assert seqs(only(StreamOut, hand.seen)) == list(range(1, 5001))


# Retention


def test_retention_does_not_pass_somebody_who_still_waits_for_it() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    hand.publish(*(event(n) for n in range(10)))
    hand.pull(box, events_max=4)
    hand.pull(box, ack="4")
    hand.broker.surveyed(8, hand.now)
    hand.pass_s(1)

    assert hand.log[0].seq == 5


def test_an_event_older_than_a_subscription_may_hold_is_dropped_and_told() -> None:
    hand = Hand(BrokerOptions(survey_s=10), snapshot=None)
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
        again.broker.surveyed(4, again.now)
        again.settle()
        again.pass_s(1)

    assert again.log[0].seq == 4
    assert again.broker.view(box).dropped == 2
    again.ask(lambda t: again.broker.change(box, Change(state=State.ACTIVE), t, again.now))
    assert seqs([again.pull(box)]) == [4]
