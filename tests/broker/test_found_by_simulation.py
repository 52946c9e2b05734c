"""What simulated runs found in the broker, each as the few steps that it takes."""

from __future__ import annotations

import msgspec

from broker.harness import OK, Hand, S, answer_to, event, handshakes, only, pushes, seqs
from tocsin.broker.commit.numbering import Numbering
from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.effects import Commit, ReadLog, Reply, StreamDropped, StreamOut
from tocsin.broker.options import BrokerOptions
from tocsin.errors import Busy, DiskFull, NoSuchDeadLetter, NoSuchSubscription, RedriveFailed
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.filter import EVERYTHING
from tocsin.event.stored import Append
from tocsin.event.subscription import (
    Change,
    Config,
    Kind,
    SoapTerms,
    State,
    Subscription,
    from_definition,
)
from tocsin.wire.cloudevents.webhook import Allowed

TOPIC_B: list[object] = [{"topic": "b"}]


def commit_under_way(hand: Hand) -> Commit:
    (commit,) = only(Commit, hand.flush())
    return commit


def change_to_topic_b() -> Change:
    return Change(filters=msgspec.Raw(msgspec.json.encode(TOPIC_B)), filter=read_filters(TOPIC_B))


def test_a_change_asked_during_the_deletion_does_not_bring_the_subscription_back() -> None:
    hand = Hand()
    subscription = hand.subscribe()
    hand.broker.unsubscribe(subscription, "delete", hand.now)
    deletion = commit_under_way(hand)

    hand.broker.change(subscription, Change(state=State.PAUSED), "pause", hand.now)
    hand.do(deletion)
    replies = only(Reply, hand.settle())

    assert isinstance(next(r.result for r in replies if r.token == "pause"), NoSuchSubscription)
    assert subscription not in hand.definitions


def test_a_change_survives_a_handshake_that_ends_while_it_is_written() -> None:
    hand = Hand(trusted=False)
    subscription = hand.subscribe()
    hand.broker.change(subscription, change_to_topic_b(), "change", hand.now)
    change = commit_under_way(hand)

    hand.hear(Allowed(None))
    hand.do(change)
    hand.pass_s(1)

    kept = from_definition(hand.definitions[subscription])
    assert kept.state is State.ACTIVE
    assert msgspec.json.decode(kept.filters) == TOPIC_B


def test_a_pause_is_answered_once_it_is_on_disk_also_if_the_sink_agrees_while_it_is_written() -> (
    None
):
    hand = Hand(trusted=False)
    subscription = hand.subscribe()
    hand.broker.change(subscription, Change(state=State.PAUSED), "pause", hand.now)
    change = commit_under_way(hand)
    hand.broker.handshaken(handshakes(hand.seen)[-1].token, Allowed(None), hand.now)

    hand.do(change)
    effects = hand.flush()
    assert not any(reply.token == "pause" for reply in only(Reply, effects))

    (pause,) = only(Commit, effects)
    hand.do(pause)
    answer = answer_to("pause", hand.settle())

    assert answer.subscription.state is State.PAUSED  # type: ignore[attr-defined]
    assert from_definition(hand.definitions[subscription]).state is State.PAUSED


def test_a_sink_out_of_reach_does_not_turn_waiting_for_consent_into_a_pause() -> None:
    patience = RetryOptions(unreachable_s_max=1.0)
    hand = Hand(BrokerOptions(retry=patience), trusted=False)
    agreed = hand.subscribe()
    hand.hear(Allowed(None))
    waiting = hand.subscribe()
    hand.publish(event(1))
    hand.broker.pushed(pushes(hand.seen)[-1].lane, Failed("no route"), hand.now)
    (again,) = pushes(hand.pass_s(2))
    hand.answer(again, Failed("no route"))

    resumed = hand.ask(
        lambda token: hand.broker.change(waiting, Change(state=State.ACTIVE), token, hand.now)
    )

    assert hand.broker.view(agreed).subscription.state is State.PAUSED
    assert resumed.subscription.state is State.PENDING  # type: ignore[attr-defined]


def test_the_former_sink_cannot_consent_for_the_new_one() -> None:
    hand = Hand(trusted=False)
    subscription = hand.subscribe("http://old/")
    former = handshakes(hand.seen)[-1]
    hand.ask(
        lambda token: hand.broker.change(subscription, Change(sink="http://new/"), token, hand.now)
    )

    hand.broker.confirm(subscription, former.token, Allowed(None), hand.now)
    hand.broker.handshaken(former.token, Allowed(None), hand.now)

    assert hand.broker.view(subscription).subscription.state is State.PENDING
    assert [handshake.sink for handshake in handshakes(hand.seen)] == ["http://old/", "http://new/"]


def given_up(hand: Hand) -> DeadLetter:
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[-1], Answered(400))
    hand.pass_s(1)
    (record,) = hand.dead.values()
    return from_record(record)


def test_a_dead_letter_is_sent_again_or_dropped_once() -> None:
    hand = Hand()
    hand.subscribe()
    letter = given_up(hand)
    hand.broker.redrive(letter, "first", hand.now)
    (push,) = pushes(hand.settle())

    twice = hand.ask(lambda token: hand.broker.redrive(letter, token, hand.now))
    dropped = hand.ask(lambda token: hand.broker.drop_dead(letter.id, token, hand.now))
    hand.broker.pushed(push.lane, OK, hand.now)
    too_late = hand.ask(lambda token: hand.broker.drop_dead(letter.id, token, hand.now))

    assert isinstance(twice, Busy)
    assert isinstance(dropped, Busy)
    assert isinstance(too_late, NoSuchDeadLetter)
    assert hand.broker.counters.dead_letters == 0


def test_a_dead_letter_is_not_sent_to_a_sink_that_has_not_agreed() -> None:
    hand = Hand(trusted=False)
    subscription = hand.subscribe("http://old/")
    hand.hear(Allowed(None))
    letter = given_up(hand)
    hand.ask(
        lambda token: hand.broker.change(subscription, Change(sink="http://new/"), token, hand.now)
    )

    answer = hand.ask(lambda token: hand.broker.redrive(letter, token, hand.now))

    assert isinstance(answer, RedriveFailed)


def test_a_dead_letter_of_an_ended_subscription_still_speaks_its_consumers_language() -> None:
    hand = Hand()
    terms = SoapTerms(spec="wsn12")
    subscription = hand.subscribe(soap=terms)
    letter = given_up(hand)
    hand.ask(lambda token: hand.broker.unsubscribe(subscription, token, hand.now))
    hand.broker.redrive(letter, "again", hand.now)

    (push,) = pushes(hand.settle())

    assert push.subscription.soap == terms


def box() -> Subscription:
    return Subscription(id="", kind=Kind.BOX, config=Config())


def test_retention_leaves_what_a_new_subscription_begins_with() -> None:
    hand = Hand()
    hand.publish(*(event(n) for n in range(1, 6)))
    hand.broker.retention_checked(4, hand.now)

    hand.broker.subscribe(box(), EVERYTHING, 2, "subscribe", hand.now)
    hand.settle()

    assert [stored.seq for stored in hand.log] == [3, 4, 5]


def test_retention_leaves_it_also_when_it_looks_while_the_subscription_is_written() -> None:
    hand = Hand()
    hand.publish(*(event(n) for n in range(1, 6)))
    hand.broker.subscribe(box(), EVERYTHING, 2, "subscribe", hand.now)
    subscribing = commit_under_way(hand)

    hand.broker.retention_checked(4, hand.now)
    hand.do(subscribing)
    hand.pass_s(1)

    assert [stored.seq for stored in hand.log] == [3, 4, 5]


def test_a_stream_opened_while_the_log_is_trimmed_is_told_what_is_gone() -> None:
    hand = Hand()
    hand.publish(*(event(n) for n in range(1, 6)))
    hand.pass_s(1)
    hand.broker.retention_checked(4, hand.now)
    trimming = commit_under_way(hand)

    hand.broker.open_stream(EVERYTHING, 0, "late")
    hand.do(trimming)
    effects = hand.settle()

    (reported,) = only(StreamDropped, hand.seen)
    assert reported.dropped == 4
    assert [s.seq for out in only(StreamOut, effects) for s in out.events] == [5]


def test_a_commit_that_a_reader_saw_first_is_handed_on_once() -> None:
    hand = Hand()
    hand.publish(event(1))
    hand.broker.open_stream(EVERYTHING, 0, "stream")
    hand.broker.publish([event(2)], "publish")
    effects = hand.flush()
    (commit,), (read,) = only(Commit, effects), only(ReadLog, effects)

    applied = hand.keep(commit)
    hand.broker.log_read(list(hand.log), 2, [], hand.now)
    hand.broker.committed(applied, 1, hand.now)
    written = only(StreamOut, hand.settle())

    assert read.after == 0
    assert [s.seq for out in written for s in out.events] == [1, 2]


def test_commits_that_fail_do_not_push_anything_out_of_the_duplicates_window() -> None:
    hand = Hand(BrokerOptions(duplicates_window=3))
    hand.publish(event(1), event(2), event(3))
    full = DiskFull("no room", remedy="make some")
    for number in range(4, 8):
        hand.broker.publish([event(number)], number)
        hand.refuse(commit_under_way(hand), full)

    again = hand.publish(event(1))

    assert again.duplicates == 1  # type: ignore[attr-defined]


def move(hand: Hand, subscription: str, sink: str) -> None:
    hand.ask(lambda token: hand.broker.change(subscription, Change(sink=sink), token, hand.now))


def test_a_late_refusal_condemns_no_other_event() -> None:
    hand = Hand()
    subscription = hand.subscribe("http://a/")
    hand.publish(event(1), event(2))
    (late,) = pushes(hand.seen)
    move(hand, subscription, "http://b/")
    hand.answer(pushes(hand.seen)[-1])
    move(hand, subscription, "http://a/")

    (again,) = pushes(hand.answer(late, Answered(400)))

    assert [stored.seq for stored in again.events] == [2]
    assert hand.broker.counters.given_up == 0


def test_another_sink_has_refused_nothing_yet() -> None:
    hand = Hand()
    subscription = hand.subscribe("http://a/", attempts=3)
    hand.publish(event(1))
    for _ in range(2):
        hand.answer(pushes(hand.seen)[-1], Answered(500))
        hand.pass_s(60)

    move(hand, subscription, "http://b/")
    assert hand.broker.view(subscription).last_error is None
    for _ in range(2):
        hand.answer(pushes(hand.seen)[-1], Answered(500))
        hand.pass_s(60)
    assert hand.dead == {}
    hand.answer(pushes(hand.seen)[-1], Answered(503))
    hand.pass_s(1)

    [letter] = map(from_record, hand.dead.values())
    assert letter.sink == "http://b/"
    assert [each.status for each in letter.attempts] == [500, 500, 503]


def test_another_sink_is_sent_batches_whatever_the_one_before_refused() -> None:
    hand = Hand()
    subscription = hand.subscribe("http://a/", batch=10)
    hand.broker.publish([event(number) for number in (1, 2, 3)], "events")
    [first] = pushes(hand.settle())
    assert len(first.events) == 3
    [single] = pushes(hand.answer(first, Answered(400)))
    assert len(single.events) == 1

    move(hand, subscription, "http://b/")

    assert [stored.seq for stored in pushes(hand.seen)[-1].events] == [1, 2, 3]


DAY_NS = 86_400 * S


def numbering_after(received_ns: int) -> Numbering:
    numbering = Numbering(duplicates_window=100, clock_jump_ns=DAY_NS)
    numbering.restore([], received_ns)
    return numbering


def stamped(numbering: Numbering, now_ns: int, *numbers: int) -> list[int]:
    """The times that an append of this moment gives to new events of these numbers."""
    append = Append([[event(number)] for number in numbers], now_ns)
    return [stored.received_ns for stored in numbering.apply(append, 0).events]


def test_a_time_far_ahead_that_no_event_has_lets_none_be_stamped_before_another() -> None:
    last_ns = 100 * DAY_NS
    numbering = numbering_after(last_ns)

    assert stamped(numbering, last_ns + 45 * DAY_NS) == []
    assert stamped(numbering, last_ns - S, 1) == [last_ns]


def test_after_an_event_that_was_stamped_far_ahead_time_goes_on_from_the_one_before() -> None:
    last_ns = 100 * DAY_NS
    numbering = numbering_after(last_ns)

    assert stamped(numbering, last_ns + 45 * DAY_NS, 1) == [last_ns + 45 * DAY_NS]
    assert stamped(numbering, last_ns - S, 2) == [last_ns]


def test_a_stream_whose_waiting_events_were_all_too_old_is_caught_up() -> None:
    short = BrokerOptions(backlog_age_s=5.0, retention_check_s=1.0, window_events=1)
    hand = Hand(short).crash()
    number = hand.broker.open_stream(EVERYTHING, None, "reader")
    hand.broker.stream_blocked(number)
    hand.publish(event(1), event(2), event(3))

    hand.pass_s(10)
    hand.broker.stream_ready(number)
    hand.publish(event(4))

    dropped = sum(effect.dropped for effect in only(StreamDropped, hand.seen))
    assert dropped + len(seqs(only(StreamOut, hand.seen))) == 4
    assert seqs(only(StreamOut, hand.seen))[-1] == 4
