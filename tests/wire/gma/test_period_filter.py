"""PeriodFilter: at most one event per period and source, and all of a source that keeps to it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.event import Event
from tocsin.wire.gma.period_filter import SLACK, SOURCES_MAX, THINGS_MAX, PeriodFilter

PERIOD_S = 10.0
NS = 1_000_000_000


def made(source: str, stamp: str | None = None, **texts: str) -> Event:
    return Event("1", source, "t", time=stamp, attributes={"Load": 1.5, **texts})


def passed(
    *times_s: float, period_filter: PeriodFilter | None = None, source: str = "a"
) -> list[float]:
    period_filter = period_filter or PeriodFilter(PERIOD_S)
    return [time_s for time_s in times_s if period_filter.passes(made(source), int(time_s * NS))]


def test_the_first_of_a_source_passes_and_then_none_until_its_period_is_over() -> None:
    assert passed(0, 1, 5, 8.9, 10, 11, 19, 20, 30) == [0, 10, 19, 30]


def test_sources_do_not_stand_in_each_other_s_way() -> None:
    period_filter = PeriodFilter(PERIOD_S)

    assert passed(0, 1, period_filter=period_filter, source="a") == [0]
    assert passed(0, 1, period_filter=period_filter, source="b") == [0]


def test_a_source_with_the_same_period_gets_all_through_though_never_quite_on_time() -> None:
    times = [0, 10.4, 19.7, 30.2, 39.9, 49.6, 60.5, 69.5]

    assert passed(*times) == times


def test_after_a_silence_one_passes_and_not_the_next_at_once() -> None:
    assert passed(0, 3600, 3600.5, 3601, 3609) == [0, 3600, 3609]
    assert passed(0, 19, 19.1, 27.5) == [0, 19, 27.5]


def test_a_clock_that_goes_back_stops_nobody_for_long() -> None:
    assert passed(1000, 999, 1009.5) == [1000, 1009.5]


def test_of_too_many_sources_those_silent_for_longest_are_forgotten() -> None:
    period_filter = PeriodFilter(PERIOD_S)
    for number in range(SOURCES_MAX + 1):
        assert period_filter.passes(made(f"s{number}"), 0)

    assert not period_filter.passes(made(f"s{SOURCES_MAX}"), NS)
    assert not period_filter.passes(made("s1"), NS)
    assert period_filter.passes(made("s0"), NS)


@given(st.lists(st.floats(0, 8), min_size=1, max_size=200), st.floats(0.01, 20))
def test_never_more_than_one_per_period_over_any_time(gaps: list[float], period_s: float) -> None:
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]

    got = passed(*times, period_filter=PeriodFilter(period_s))

    for begin in range(len(got)):
        for end in range(begin + 1, len(got)):
            periods = (got[end] - got[begin]) / period_s
            assert end - begin <= periods + 2 * SLACK + 1e-6


@given(st.lists(st.floats(0, 30), min_size=1, max_size=100))
def test_nothing_is_held_back_for_longer_than_its_period(gaps: list[float]) -> None:
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]

    got = set(passed(*times))

    last = times[0]
    for time_s in times:
        if time_s - last >= PERIOD_S * (1 + SLACK):
            assert time_s in got
        if time_s in got:
            last = time_s


def test_events_about_different_things_with_one_time_stamp_are_one_sample() -> None:
    period_filter = PeriodFilter(10.0)

    def passes(disk: str, stamp: str | None, now_s: float) -> bool:
        return period_filter.passes(made("h", stamp, Device=disk), int(now_s * NS))

    assert passes("sda", "first", 0)
    assert passes("sdb", "first", 0.1)
    assert not passes("sda", "first", 0.2)
    assert not passes("sda", "second", 5)
    assert not passes("sdb", "second", 5)
    assert not passes("sdc", None, 5)
    assert passes("sdb", "third", 10)
    assert passes("sda", "third", 10.1)


def test_a_text_that_changes_with_each_event_lets_no_more_through() -> None:
    period_filter = PeriodFilter(3600.0)

    passed = [
        period_filter.passes(made("h", f"stamp {number}", Text=f"step {number}"), number * NS)
        for number in range(50)
    ]

    assert passed == [True] + [False] * 49


def test_a_sample_has_so_many_things_and_no_more() -> None:
    period_filter = PeriodFilter(10.0)

    passed = [
        period_filter.passes(made("h", "now", Device=f"d{number}"), 0)
        for number in range(THINGS_MAX + 10)
    ]

    assert sum(passed) == THINGS_MAX
