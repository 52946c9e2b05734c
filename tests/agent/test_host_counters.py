"""Counters to rates, and which readings are kept: what holds for every machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.agent.history import AGE_S_MAX, INTERVAL_S_MIN, READINGS_MAX, History, Reading
from tocsin.client.host_readings.counters import WORDS, growth, rate, shares

counts = st.integers(0, 2**64 - 1)
states = st.dictionaries(
    st.sampled_from(["user", "system", "idle", "iowait"]), st.floats(0, 1e9), min_size=1
)


@given(before=counts, grown=st.integers(0, 2**64))
def test_a_counter_that_never_ends_grew_by_what_it_counted(before: int, grown: int) -> None:
    assert growth(before, before + grown) == grown


@given(word=st.sampled_from(WORDS), data=st.data())
def test_going_over_the_end_of_a_word_makes_no_difference(word: int, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, word - 1))
    grown = data.draw(st.integers(0, word // 4 - 1))

    assert growth(before, (before + grown) % word) == grown


@given(end=st.integers(1, 2**40), data=st.data())
def test_a_counter_with_a_known_end_may_count_all_the_way_round(
    end: int, data: st.DataObject
) -> None:
    before = data.draw(st.integers(0, end - 1))
    grown = data.draw(st.integers(0, end - 1))

    assert growth(before, (before + grown) % end, end=end) == grown


@given(before=counts, after=counts, end=st.none() | st.integers(1, 2**64))
def test_nothing_ever_shrinks(before: int, after: int, end: int | None) -> None:
    assert growth(before, after, end=end) >= 0


def test_after_a_reset_it_is_what_was_counted_since() -> None:
    assert growth(1_000_000, 70) == 70
    assert growth(2**33, 70) == 70
    assert growth(50, -3) == 0


@given(before=counts, grown=st.integers(0, 2**50), interval_s=st.floats(0.01, 1e6))
def test_a_rate_over_its_interval_is_the_growth(before: int, grown: int, interval_s: float) -> None:
    found = rate(before, before + grown, interval_s)

    assert found is not None
    assert found * interval_s == pytest.approx(grown)


@given(interval_s=st.floats(max_value=0.0, allow_nan=False))
def test_no_time_gives_no_rate(interval_s: float) -> None:
    assert rate(1, 2, interval_s) is None


@given(before=states, after=states)
def test_shares_are_of_the_whole(before: dict[str, float], after: dict[str, float]) -> None:
    found = shares(before, after)

    assert all(0 <= share <= 100 for share in found.values())
    if found:
        assert sum(found.values()) == pytest.approx(100)
        assert found.keys() == after.keys()
    else:
        assert all(seconds <= before.get(name, 0) for name, seconds in after.items())


def test_time_that_went_backwards_counts_as_none() -> None:
    before = {"user": 10.0, "idle": 100.0, "iowait": 5.0}
    after = {"user": 13.0, "idle": 101.0, "iowait": 4.9}

    assert shares(before, after) == {"user": 75.0, "idle": 25.0, "iowait": 0.0}


def test_no_time_has_no_shares() -> None:
    assert shares({"user": 1.0}, {"user": 1.0}) == {}
    assert shares({}, {"user": float("inf")}) == {}
    assert shares({}, {"user": float("nan")}) == {}


def history_of(times_s: list[float], size_max: int = READINGS_MAX) -> History[int]:
    history: History[int] = History(size_max)
    for number, at_s in enumerate(times_s):
        history.add(Reading(number, at_s, ""))
    return history


@given(gaps=st.lists(st.floats(0, 1e5), min_size=1, max_size=120), size_max=st.integers(2, 12))
def test_a_history_stays_small_and_has_the_newest(gaps: list[float], size_max: int) -> None:
    history: History[int] = History(size_max)
    now_s = 0.0
    for number, gap in enumerate(gaps):
        now_s += gap
        history.add(Reading(number, now_s, ""))

        assert len(history) <= size_max
        assert history.newest is not None
        assert history.newest.reading == number


@given(ticks=st.integers(2, 3_000), period_s=st.floats(1, 3_000))
def test_there_is_a_reading_for_every_period(ticks: int, period_s: float) -> None:
    history = history_of([float(second) for second in range(ticks)])
    newest = history.newest
    assert newest is not None

    base = history.about(period_s, newest)

    assert base is not None
    age_s = newest.at_s - base.at_s
    within = min(period_s, ticks - 1)
    assert within / 1.5 <= age_s <= within * 1.5 or age_s == 1


def test_a_single_consumer_gets_exactly_the_last_period() -> None:
    history = history_of([10.0 * tick for tick in range(500)])
    newest = history.newest
    assert newest is not None

    base = history.about(10.0, newest)

    assert base is not None
    assert newest.at_s - base.at_s == 10.0


def test_a_reading_of_just_now_is_nothing_to_compare_with() -> None:
    history = history_of([5.0, 5.0 + INTERVAL_S_MIN / 2])
    newest = history.newest
    assert newest is not None

    assert history.about(0.01, newest) is None


def test_what_is_older_than_the_longest_period_goes() -> None:
    size = 4
    history = history_of([0.0, AGE_S_MAX, AGE_S_MAX + 1, AGE_S_MAX + 2, AGE_S_MAX + 3], size)
    newest = history.newest
    assert newest is not None

    base = history.about(AGE_S_MAX, newest)

    assert base is not None
    assert base.at_s == AGE_S_MAX
