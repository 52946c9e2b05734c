"""Runs that do not go as past ones did: slower, faster, longer, with a retry, or stuck."""

from __future__ import annotations

import re

import pytest

from tocsin.monitor.estimate import (
    Done,
    Estimate,
    PastRun,
    Plan,
    Planned,
    RunProgress,
    estimate,
    learn,
)

STEPS = 7
STEP_S = 10.0


def chain(steps: int) -> Plan:
    """Steps one after the other, all of one type."""
    return Plan(tuple(Planned("step", (n - 1,) if n else ()) for n in range(steps)))


def steps_done(count: int, step_s: float) -> dict[int, Done]:
    return {n: Done(step_s, n * step_s, (n + 1) * step_s) for n in range(count)}


def past(step_s: float) -> PastRun:
    return PastRun(chain(STEPS), STEPS * step_s, steps_done(STEPS, step_s))


KNOWN = learn([past(step_s) for step_s in (10.0, 10.1, 9.9, 10.05)])


def half_a_step_after(done: int, step_s: float, steps: int = STEPS) -> RunProgress:
    elapsed_s = (done + 0.5) * step_s
    return RunProgress(chain(steps), elapsed_s, steps_done(done, step_s), {done: done * step_s})


def estimated(moment: RunProgress) -> Estimate:
    found = estimate(KNOWN, moment)
    assert found is not None
    assert 0 <= found.low_s <= found.remaining_s <= found.high_s
    return found


def test_a_run_four_times_slower_than_ever_is_not_nearly_over() -> None:
    found = estimated(half_a_step_after(3, 4 * STEP_S))  # 140 s at this pace, 30 s at the usual one

    assert 60 < found.remaining_s < 180
    assert found.low_s > 0
    assert "4.0 times as long as usual" in found.reason


@pytest.mark.parametrize("done", range(1, STEPS))
def test_a_slow_run_needs_at_least_what_is_left_to_do_at_the_usual_pace(done: int) -> None:
    found = estimated(half_a_step_after(done, 4 * STEP_S))

    left = STEPS - done - 1
    assert found.remaining_s > 0.9 * left * STEP_S
    assert found.remaining_s < 1.2 * (left + 0.5) * 4 * STEP_S


def test_a_faster_run_is_expected_to_end_sooner_than_past_ones() -> None:
    found = estimated(half_a_step_after(3, STEP_S / 4))

    assert found.total_s < 0.8 * STEPS * STEP_S
    assert "4.0 times as fast as usual" in found.reason


def test_a_run_with_more_tasks_than_ever_has_them_still_to_do() -> None:
    found = estimated(half_a_step_after(STEPS, STEP_S, steps=20))

    assert found.remaining_s == pytest.approx(12.5 * STEP_S, rel=0.3)


def test_a_retry_has_its_whole_time_before_it_again() -> None:
    again = RunProgress(chain(STEPS), 75.0, steps_done(3, STEP_S), {3: 70.0})

    found = estimated(again)

    assert 0.9 * 35 < found.remaining_s < 2 * 35


def test_a_task_far_past_its_usual_time_does_not_end_the_run() -> None:
    stuck = RunProgress(chain(STEPS), 230.0, steps_done(3, STEP_S), {3: 30.0})

    found = estimated(stuck)

    assert found.remaining_s > 3 * STEP_S  # three steps are still to come after it


def test_with_every_second_that_nothing_ends_the_end_moves_away() -> None:
    ends_s = []
    for waited_s in (5.0, 20.0, 60.0, 200.0, 1_000.0):
        now_s = 30.0 + waited_s
        moment = RunProgress(chain(STEPS), now_s, steps_done(3, STEP_S), {3: 30.0})
        ends_s.append(estimated(moment).total_s)

    assert ends_s == sorted(ends_s)
    assert ends_s[-1] > 1_030 + 3 * STEP_S


@pytest.mark.parametrize("step_s", [0.0001, 0.1756, 3.0, 400.0, 90_000.0])
def test_reasons_say_durations_as_people_do(step_s: float) -> None:
    reason = estimated(half_a_step_after(3, step_s)).reason

    assert not re.search(r"\d\.\d\d", reason)
    assert not re.search(r"\d{3,} s\b", reason)
    assert reason.count(". ") == 1
    assert reason.endswith(".")


def test_without_a_past_nothing_is_called_usual() -> None:
    found = estimate(learn([]), half_a_step_after(3, STEP_S))

    assert found is not None
    assert "usual" not in found.reason
