"""Bounds: nothing piles up, stands still or stops because of what one client does."""

from __future__ import annotations

import gc
import weakref
from time import perf_counter

import msgspec
import pytest

from broker.harness import Hand, S, event, handshakes, only, pushes
from tocsin.broker.delivery.follower import WINDOW_BYTES
from tocsin.broker.delivery.outcome import Answered, Failed
from tocsin.broker.effects import LogLine, Pulled, ReadLog, Reply, StreamOut
from tocsin.broker.options import BrokerOptions
from tocsin.broker.push.lane_order import LINE_SPARE
from tocsin.broker.snapshot import Snapshot, take_snapshot
from tocsin.broker.state.subscriber import Subscriber
from tocsin.broker.state.timers import Timers
from tocsin.errors import Busy, DataDirectoryUnusable, DiskFailed, DiskFull
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.stored import Stored
from tocsin.event.subscription import Change, Config, Kind, State, Subscription
from tocsin.wire.cloudevents.webhook import Refused

DOWN = Failed("connection refused")
FOR_AGES = 10**9 * S


class Caller:
    """A token that can be watched until it is let go of."""


def subscribers_alive() -> int:
    gc.collect()
    return sum(isinstance(each, Subscriber) for each in gc.get_objects())


def unsubscribe(hand: Hand, subscription: str) -> None:
    hand.ask(lambda token: hand.broker.unsubscribe(subscription, token, hand.now))


def test_an_answered_pull_is_let_go_of_at_once_not_when_its_wait_would_be_over() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None)
    caller = Caller()
    hand.broker.pull(box, 100, 60 * S, None, caller, hand.now)
    hand.publish(event(1))
    watched = weakref.ref(caller)
    hand.seen.clear()

    del caller
    gc.collect()

    assert watched() is None


def test_a_lease_renewed_a_thousand_times_is_not_a_thousand_timers() -> None:
    hand = Hand()
    subscription = hand.subscribe(expires_ns=hand.now + FOR_AGES)
    timers = hand.broker._state.timers

    for number in range(1_000):
        change = Change(expires_ns=hand.now + FOR_AGES - number)
        hand.broker.change(subscription, change, "token", hand.now)
        hand.settle()

    assert len(timers) <= 64


def test_a_subscription_that_ended_before_its_lease_is_let_go_of() -> None:
    hand = Hand()
    before = subscribers_alive()
    for _ in range(20):
        unsubscribe(hand, hand.subscribe(expires_ns=hand.now + FOR_AGES))
    hand.seen.clear()

    assert subscribers_alive() - before <= 2


def test_a_sink_that_never_agrees_does_not_hold_on_to_those_who_gave_up() -> None:
    hand = Hand(trusted=False)
    hand.subscribe()
    hand.hear(Refused("nobody is there"))
    before = subscribers_alive()
    for _ in range(20):
        unsubscribe(hand, hand.subscribe())
    hand.seen.clear()

    assert subscribers_alive() == before
    assert len(handshakes(hand.pass_s(10))) == 1


def test_a_dead_sink_does_not_hold_on_to_those_who_left_it() -> None:
    hand = Hand()
    hand.subscribe()
    hand.subscribe()
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[0], DOWN)
    before = subscribers_alive()
    for _ in range(20):
        unsubscribe(hand, hand.subscribe(start=0))
    hand.seen.clear()

    assert subscribers_alive() == before


def test_what_a_box_dropped_after_it_answered_is_told_with_the_next_answer() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None, backlog=2)
    hand.publish(event(1))
    first = hand.pull(box)
    assert isinstance(first, Pulled)

    hand.publish(*(event(number) for number in range(2, 6)))
    second = hand.pull(box, ack=first.next)
    assert isinstance(second, Pulled)
    third = hand.pull(box, ack=second.next)
    assert isinstance(third, Pulled)

    assert first.dropped == 0
    assert second.dropped == 3
    assert third.dropped == 0


def test_a_larger_backlog_takes_effect_while_the_subscription_runs() -> None:
    hand = Hand()
    box = hand.subscribe(sink=None, backlog=1)
    window = hand.broker.options.window_events
    change = Change(config=msgspec.structs.replace(Config(), backlog=window + 10))
    hand.ask(lambda token: hand.broker.change(box, change, token, hand.now))

    hand.publish(*(event(number) for number in range(window + 20)))

    view = hand.broker.view(box)
    assert (view.waiting, view.dropped) == (window + 10, 10)


def test_timers_that_were_cancelled_neither_run_nor_wake_anybody_nor_pile_up() -> None:
    timers = Timers()
    ran: list[int] = []
    kept = timers.at(50, ran.append)
    for moment in range(1_000):
        timers.cancel(timers.at(moment, lambda _: ran.append(-1)))

    assert timers.next_ns() == 50
    assert len(timers) <= 64
    timers.run(2_000)
    timers.cancel(kept)
    assert ran == [2_000]


def test_an_action_may_cancel_another_of_the_same_moment() -> None:
    timers = Timers()
    ran: list[str] = []
    timers.at(1, lambda _: timers.cancel(second))
    second = timers.at(1, lambda _: ran.append("second"))

    timers.run(1)

    assert ran == []
    assert timers.next_ns() is None


def test_nobody_stands_still_because_others_begin_again_and_again() -> None:
    hand = Hand(BrokerOptions(read_page_events=10))
    hand.publish(*(event(number) for number in range(200)))
    patient = hand.broker.open_stream(EVERYTHING, 0, "patient")
    hand.seen.clear()

    for _ in range(60):
        restless = hand.broker.open_stream(EVERYTHING, 0, "restless")
        for read in only(ReadLog, hand.flush()):
            hand.do(read)
        hand.broker.close_stream(restless)
    hand.flush()

    got = [s.seq for out in only(StreamOut, hand.seen) if out.stream == patient for s in out.events]
    assert got == list(range(1, 201))


def test_a_subscription_of_a_newer_version_stops_the_start_in_plain_words() -> None:
    class NewerLog:
        def bounds(self) -> tuple[int, int]:
            return 1, 0

        def subscriptions(self) -> dict[str, bytes]:
            return {"s1": b'{"id":"s1","kind":"box","config":{"invented_later":1}}'}

        def cursors(self) -> dict[str, int]:
            return {}

        def dead_count(self) -> int:
            return 0

        def service_state(self) -> dict[str, bytes]:
            return {}

        def last_where(self, *_: object) -> None:
            return None

    with pytest.raises(DataDirectoryUnusable, match="s1 was written by a newer"):
        take_snapshot(NewerLog())  # type: ignore[arg-type]


def test_what_waits_is_bounded_also_if_it_is_all_in_attributes() -> None:
    hand = Hand(BrokerOptions(intake_bytes_max=10 << 20))
    box = hand.subscribe(sink=None)
    large = {f"a{number}": "x" * 8_000 for number in range(50)}
    for number in range(30):
        hand.publish(Event(str(number), "/s", "t", extensions=large))

    assert hand.broker.view(box).waiting * 400_000 < WINDOW_BYTES + 400_000

    for number in range(40):
        hand.broker.publish([Event(f"n{number}", "/s", "t", extensions=large)], number)
    refused = [e.token for e in only(Reply, hand.flush()) if isinstance(e.result, Busy)]
    assert refused == list(range(25, 40))  # the limit holds 25 of them


def put(hand: Hand, subscription: str, state: State) -> None:
    hand.ask(lambda token: hand.broker.change(subscription, Change(state=state), token, hand.now))


def test_a_subscription_resumed_after_days_gets_the_full_patience_again() -> None:
    hand = Hand()
    subscription = hand.subscribe()
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[-1], DOWN)
    put(hand, subscription, State.PAUSED)
    hand.pass_s(4 * 86_400)

    put(hand, subscription, State.ACTIVE)
    hand.answer(pushes(hand.seen)[-1], DOWN)

    assert hand.broker.view(subscription).subscription.state is State.ACTIVE


def test_a_full_disk_is_noted_when_it_fills_and_when_there_is_room_and_not_in_between() -> None:
    hand = Hand()
    for number in range(5):
        hand.broker.publish([event(number)], number)
        hand.flush()
        hand.broker.commit_failed(DiskFull("no room", remedy="make some"), hand.now)
    hand.flush()
    assert [note.message for note in only(LogLine, hand.seen)] == ["no room"]

    hand.publish(event(6))
    hand.publish(event(7))

    assert [note.level for note in only(LogLine, hand.seen)] == ["error", "info"]


def test_a_broker_that_stopped_asks_to_be_woken_for_nothing() -> None:
    hand = Hand()
    hand.subscribe(expires_ns=hand.now + S)
    hand.publish(event(1))
    hand.broker.pushed(pushes(hand.seen)[-1].lane, Failed("connection refused"), hand.now)
    hand.broker.publish([event(2)], "token")
    hand.flush()

    hand.broker.commit_failed(DiskFailed("fsync: EIO", remedy="see the disk"), hand.now)

    assert hand.broker.next_wake_ns() is None


def test_an_event_does_not_pay_for_the_refusals_of_one_that_was_too_old() -> None:
    hand = Hand(BrokerOptions(retention_check_s=0.1), snapshot=Snapshot())
    subscription = hand.subscribe(attempts=2, backlog_age_s=0.2)
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[-1], Answered(500))
    for _ in range(3):
        hand.pass_s(0.1)
    hand.publish(event(2))
    hand.pass_s(0.2)
    last = pushes(hand.seen)[-1]
    assert [stored.seq for stored in last.events] == [2]

    hand.answer(last, Answered(500))

    assert hand.broker.view(subscription).dead == 0


def test_an_event_does_not_pay_for_the_refusals_of_one_that_it_displaced() -> None:
    hand = Hand()
    subscription = hand.subscribe(attempts=2, backlog=1)
    hand.publish(event(1))
    hand.answer(pushes(hand.seen)[-1], Answered(500))
    hand.publish(event(2))
    hand.pass_s(60)
    last = pushes(hand.seen)[-1]
    assert [stored.seq for stored in last.events] == [2]

    hand.answer(last, Answered(500))
    assert hand.broker.view(subscription).dead == 0
    hand.pass_s(60)
    hand.answer(pushes(hand.seen)[-1], Answered(500))
    assert hand.broker.view(subscription).dead == 1


def test_to_end_many_subscriptions_of_one_sink_takes_time_in_proportion() -> None:
    many = 20_000
    stored = Stored(1, 1_000 * S, event(1))
    hand = Hand(
        snapshot=Snapshot(
            last_seq=1,
            subscriptions=[
                Subscription(id=str(number), kind=Kind.PUSH, sink="http://sink/")
                for number in range(many)
            ],
            cursors={str(number): 0 for number in range(many)},
        ),
        log=[stored],
    )
    hand.settle()
    started = perf_counter()
    for number in reversed(range(1, many)):
        hand.broker.unsubscribe(str(number), number, hand.now)
    hand.settle()

    assert perf_counter() - started < 5
    assert len(hand.broker.views()) == 1
    lane = hand.broker._state.by_id["0"].lane
    assert lane is not None
    assert len(lane.line) <= 2 + LINE_SPARE


def test_a_subscriber_that_goes_to_another_sink_and_back_stands_in_line_once() -> None:
    hand = Hand()
    hand.subscribe()
    goes = hand.subscribe()
    hand.publish(event(1), event(2))
    for sink in ["http://other/", "http://sink/"] * 100:
        change = Change(sink=sink)
        hand.broker.change(goes, change, object(), hand.now)
        hand.settle()
    lane = hand.broker._state.by_id[goes].lane
    assert lane is not None

    assert len(lane.line) <= 2 * 2 + LINE_SPARE
    first = next(push for push in pushes(hand.seen) if push.sink == "http://sink/")
    sent = [first]
    for _ in range(3):
        before = len(hand.seen)
        hand.answer(sent[-1])
        sent += pushes(hand.seen[before:])
    assert [s.seq for push in sent for s in push.events] == [1, 1, 2, 2]


def test_filters_of_one_text_are_read_once_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def counted(filters: list[object]) -> Filter:
        read.append(filters)
        return read_filters(filters)

    hand = Hand()
    for topic in ["a", "b", "a", "a"]:
        hand.subscribe(sink=None, filters=[{"topic": topic}])
    monkeypatch.setattr("tocsin.broker.registry.read_filters", counted)

    again = hand.crash()

    assert len(read) == 2
    again.publish(event(1, topic="a"))
    assert [view.waiting for view in again.broker.views()] == [1, 0, 1, 1]
