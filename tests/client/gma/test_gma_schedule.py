"""When events are made, let through and tried again, without a clock; and what waits in between."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.gma.consumer_peers import Backlog
from tocsin.client.gma.feed import Outbox
from tocsin.client.gma.inbox import Arrival, Inbox
from tocsin.client.gma.loop import EmitLimit
from tocsin.client.gma.producer_peers import SeenNumbers
from tocsin.client.gma.schedule import PAUSE_S_MAX, PeriodTicks, pause_s
from tocsin.wire.gma.messages import PerformanceEvent
from tocsin.wire.gma.names import EventName

EVENT = PerformanceEvent(EventName("Ping"), "2000-11-09T21:51:45Z")


def test_two_periods_beat_at_two_rates_from_one_begin() -> None:
    def beats_until(period_s: float, end_s: float) -> int:
        ticks, now_s, count = PeriodTicks(100.0, period_s), 100.0, 1
        while (now_s := ticks.next_s(now_s)) < end_s:
            count += 1
        return count

    assert beats_until(1.0, 110.0) == 10
    assert beats_until(2.5, 110.0) == 4


def test_a_late_beat_does_not_shift_the_grid_and_missed_ones_stay_out() -> None:
    ticks = PeriodTicks(0.0, 10.0)

    assert ticks.next_s(0.0) == 10.0
    assert ticks.next_s(10.2) == 20.0
    assert ticks.next_s(47.0) == 50.0


def test_a_timer_that_goes_off_early_gives_no_beat_twice() -> None:
    ticks = PeriodTicks(0.0, 10.0)

    assert ticks.next_s(0.0) == 10.0
    assert ticks.next_s(9.999999) == 20.0


@given(
    st.floats(0.01, 1e6),
    st.lists(st.floats(0, 1e5), min_size=1, max_size=30),
    st.floats(0, 1e9),
)
def test_beats_only_go_on_and_never_lie_in_the_past(
    period_s: float, lateness: list[float], began_s: float
) -> None:
    ticks, now_s = PeriodTicks(began_s, period_s), began_s
    for late_s in lateness:
        due_s = ticks.next_s(now_s)
        assert due_s > now_s - 1e-6 * max(1.0, abs(now_s))
        now_s = max(due_s, now_s) + late_s


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_waits_double_up_to_a_cap_and_are_never_less_than_half(attempt: int, chance: float) -> None:
    wait_s = pause_s(attempt, chance)

    assert 0.05 <= wait_s <= PAUSE_S_MAX
    assert pause_s(attempt, 0.0) <= wait_s <= 2 * pause_s(attempt, 0.0)
    assert pause_s(attempt, 1.0) <= pause_s(attempt + 1, 1.0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 60)),
        st.tuples(st.just("next"), st.just(0)),
        st.tuples(st.just("settle"), st.integers(0, 20)),
        st.tuples(st.just("rewind"), st.just(0)),
    ),
    max_size=80,
)


@given(STEPS)
def test_an_event_of_a_feed_arrives_or_is_counted_as_dropped(steps: list[tuple[str, int]]) -> None:
    outbox = Outbox(events_max=8, bytes_max=200, in_flight_max=3)
    put = settled = 0
    sent: list[int] = []
    in_flight: list[str] = []
    for step, number in steps:
        if step == "put":
            outbox.put(b"x" * number)
            put += 1
        elif step == "next" and (kept := outbox.next()) is not None:
            in_flight.append(kept.number)
            sent.append(int(kept.number[1:]))
        elif step == "settle" and in_flight:
            settled += outbox.settle(in_flight.pop(number % len(in_flight)))
        elif step == "rewind":
            outbox.rewind()
            in_flight.clear()
            sent.clear()
        assert len(outbox) <= 8
        assert outbox.in_flight <= 3
        # On one connection they go out in the order in which they were made.
        assert sent == sorted(set(sent))
        assert put == settled + outbox.dropped + len(outbox)


def test_what_was_in_flight_goes_out_again_first_and_under_its_number() -> None:
    outbox = Outbox()
    for _ in range(4):
        outbox.put(b"0123456789")
    first = [outbox.next(), outbox.next(), outbox.next()]
    outbox.settle("e2")

    outbox.rewind()

    assert [kept.number for kept in first if kept] == ["e1", "e2", "e3"]
    assert [kept.number for kept in (outbox.next(), outbox.next(), outbox.next()) if kept] == [
        "e1", "e3", "e4",
    ]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 50)), max_size=60))
def test_a_backlog_keeps_the_newest_and_counts_the_rest(puts: list[tuple[str, int]]) -> None:
    backlog = Backlog(bytes_max=100)
    messages = [(whose, bytes([at]) * size) for at, (whose, size) in enumerate(puts)]
    given_up = sum(backlog.put(whose, message) for whose, message in messages)

    assert backlog.size_bytes <= 100
    assert sum(backlog.take_lost().values()) == given_up == len(puts) - len(backlog)
    left = []
    while (message := backlog.take()) is not None:
        left.append(message)
    assert left == [message for _, message in messages][given_up:]


def test_a_backlog_forgets_who_unsubscribed() -> None:
    backlog = Backlog(bytes_max=100)
    for whose in "abab":
        backlog.put(whose, b"0123456789")

    backlog.forget("a")

    assert len(backlog) == 2
    assert backlog.size_bytes == 20


def test_what_a_feed_sends_again_is_known_and_what_another_sends_is_not() -> None:
    seen = SeenNumbers()

    assert seen.is_new("one", "e1")
    assert seen.is_new("one", "e2")
    assert not seen.is_new("one", "e1")
    assert not seen.is_new("one", "e2")
    assert seen.is_new("two", "e1")
    assert seen.is_new("one", "red")
    assert not seen.is_new("one", "red")


@given(st.lists(st.one_of(st.integers(1, 60), st.none()), max_size=60))
def test_a_full_inbox_asks_for_more_when_half_of_it_is_taken(steps: list[int | None]) -> None:
    asked: list[int] = []
    inbox = Inbox(lambda: asked.append(1), events_max=6, bytes_max=100)
    held = False
    waiting: list[int] = []
    for size in steps:
        if size is None:
            taken = inbox.take(0)
            assert (taken is None) == (not waiting)
            waiting = waiting[1:]
        elif not held:
            waiting.append(size)
            held = not inbox.put(Arrival(EVENT, size))
            assert held == (len(waiting) >= 6 or sum(waiting) >= 100)
        if asked:
            assert held
            assert len(waiting) <= 3
            assert sum(waiting) <= 50
            asked.clear()
            held = False
        assert not held or len(waiting) > 3 or sum(waiting) > 50


def test_a_gate_lets_so_much_in_and_one_event_of_any_size() -> None:
    limit = EmitLimit(events_max=3, bytes_max=100)

    assert limit.enter(1_000, 0)
    assert not limit.enter(1, 0.01)
    limit.leave(1_000)
    assert [limit.enter(20, 0) for _ in range(4)] == [True, True, True, False]
    limit.leave(20)
    assert not limit.enter(61, 0)
    assert limit.enter(60, 0)


def test_who_waits_at_the_gate_goes_on_when_there_is_room() -> None:
    limit = EmitLimit(events_max=1)
    limit.enter(1, 0)
    threading.Timer(0.05, limit.leave, [1]).start()

    assert limit.enter(1, 5)


def test_the_seen_numbers_of_feeds_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.client.gma.producer_peers.SEEN_MAX", 3)
    seen = SeenNumbers()
    for number in range(5):
        seen.is_new("one", f"e{number}")

    assert not seen.is_new("one", "e4")
    assert seen.is_new("one", "e0")
