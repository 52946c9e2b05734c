"""Thinning: at most one event per period and source, and all of a source that keeps to it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.event import Event
from tocsin.wire.gma.thinning import SLACK, THINGS_MAX, Thinning, thing

PERIOD_S = 10.0
NS = 1_000_000_000


def passed(*times_s: float, thinning: Thinning | None = None, source: str = "a") -> list[float]:
    thinning = thinning or Thinning(PERIOD_S)
    return [time_s for time_s in times_s if thinning.passes(source, int(time_s * NS))]


def test_the_first_of_a_source_passes_and_then_none_until_its_period_is_over() -> None:
    assert passed(0, 1, 5, 8.9, 10, 11, 19, 20, 30) == [0, 10, 19, 30]


def test_sources_do_not_stand_in_each_other_s_way() -> None:
    thinning = Thinning(PERIOD_S)

    assert passed(0, 1, thinning=thinning, source="a") == [0]
    assert passed(0, 1, thinning=thinning, source="b") == [0]


def test_a_source_with_the_same_period_gets_all_through_though_never_quite_on_time() -> None:
    times = [0, 10.4, 19.7, 30.2, 39.9, 49.6, 60.5, 69.5]

    assert passed(*times) == times


def test_after_a_silence_one_passes_and_not_the_next_at_once() -> None:
    assert passed(0, 3600, 3600.5, 3601, 3609) == [0, 3600, 3609]
    assert passed(0, 19, 19.1, 27.5) == [0, 19, 27.5]


def test_a_clock_that_goes_back_stops_nobody_for_long() -> None:
    assert passed(1000, 999, 1009.5) == [1000, 1009.5]


def test_of_too_many_sources_those_silent_for_longest_are_forgotten() -> None:
    thinning = Thinning(PERIOD_S)
    for number in range(THINGS_MAX + 1):
        assert thinning.passes(f"s{number}", 0)

    assert not thinning.passes(f"s{THINGS_MAX}", NS)
    assert not thinning.passes("s1", NS)
    assert thinning.passes("s0", NS)


@given(st.lists(st.floats(0, 8), min_size=1, max_size=200), st.floats(0.01, 20))
def test_never_more_than_one_per_period_over_any_time(gaps: list[float], period_s: float) -> None:
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]

    got = passed(*times, thinning=Thinning(period_s))

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


def test_each_disk_of_a_host_is_another_thing_and_a_new_measure_of_it_is_not() -> None:
    def disk(device: str, free: float) -> Event:
        return Event("1", "gma://h", "t", attributes={"Device": device, "Free": free})

    assert thing(disk("sda", 1.0)) == thing(disk("sda", 2.0))
    assert thing(disk("sda", 1.0)) != thing(disk("sdb", 1.0))
