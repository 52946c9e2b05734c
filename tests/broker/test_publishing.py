"""What is acknowledged is on disk, once; what is not is refused and told."""

from __future__ import annotations

import msgspec

from broker.harness import OK, Hand, S, event, only, pushes, seqs
from tocsin.broker.effects import Accepted, Commit, Reply, Stop
from tocsin.broker.options import BrokerOptions
from tocsin.errors import (
    Busy,
    DiskFailed,
    DiskFull,
)
from tocsin.event.filter import EVERYTHING
from tocsin.event.subscription import State


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

    assert second.append.offers == [[event(2)], [event(3), event(4)]]
    hand.do(second)
    assert [s.seq for s in hand.log] == [1, 2, 3, 4]


def test_a_repeat_is_acknowledged_with_its_first_number_and_not_stored_again() -> None:
    hand = Hand()
    assert hand.publish(event(1)) == Accepted(1, 1, 1)

    again = hand.publish(event(1), event(2), event(2))

    assert again == Accepted(3, 1, 2, duplicates=2)
    assert [s.seq for s in hand.log] == [1, 2]


def test_repeats_alone_are_no_commit() -> None:
    hand = Hand()
    hand.publish(event(1))
    commits = hand.broker.counters.commits

    assert hand.publish(event(1)) == Accepted(1, 1, 1, duplicates=1)
    assert hand.broker.counters.commits == commits


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
