"""Estimates for runs that are larger, smaller or stuck as no past run was."""

from __future__ import annotations

import pytest

from tocsin.monitor.estimate import (
    Done,
    Estimate,
    Knowledge,
    PastRun,
    Plan,
    Planned,
    RunProgress,
    estimate,
    learn,
)

STEP_S = 10.0
SLOTS = 2


def plan(steps: int) -> Plan:
    return Plan(tuple(Planned("step", ()) for _ in range(steps)), cores=SLOTS)


def past_run(number: int, steps: int = 20) -> PastRun:
    lasts = STEP_S * (1 + 0.004 * (number % 5 - 2))
    done = {
        step: Done(lasts, step // SLOTS * lasts, (step // SLOTS + 1) * lasts)
        for step in range(steps)
    }
    return PastRun(plan(steps), -(-steps // SLOTS) * lasts + 0.2, done)


@pytest.fixture(scope="module")
def one_size() -> Knowledge:
    return learn([past_run(number) for number in range(10)])


def before(knowledge: Knowledge, steps: int) -> Estimate:
    found = estimate(knowledge, RunProgress(plan(steps), 0.0, {}, {}))
    assert found is not None
    return found


@pytest.mark.parametrize(("steps", "takes_s"), [(1, 10), (4, 20), (10, 50), (40, 200), (100, 500)])
def test_another_size_than_all_past_runs_had_is_scaled_by_its_plan(
    one_size: Knowledge, steps: int, takes_s: float
) -> None:
    found = before(one_size, steps)

    assert 0.7 < found.total_s / takes_s < 1.4
    assert found.low_s < takes_s < found.high_s


def test_the_size_that_all_past_runs_had_is_known_well(one_size: Knowledge) -> None:
    found = before(one_size, 20)

    assert found.total_s == pytest.approx(100, rel=0.03)
    assert found.high_s / found.low_s < 1.1


@pytest.mark.parametrize("elapsed_s", [60.0, 200.0, 420.0])
def test_a_run_that_is_stuck_says_so_and_promises_nothing(
    one_size: Knowledge, elapsed_s: float
) -> None:
    done = {0: Done(10, 0, 10), 1: Done(10, 0, 10), 2: Done(10, 10, 20)}
    found = estimate(one_size, RunProgress(plan(20), elapsed_s, done, {3: 10.0, 4: 20.0}))

    assert found is not None
    assert "a task of step has been running for" in found.reason.lower()
    assert "as usual" not in found.reason
    assert found.high_s > elapsed_s - 10.0  # it may take as long once more
    assert found.remaining_s > 50


def test_without_a_past_run_no_past_run_is_named() -> None:
    done = {0: Done(10, 0, 10), 1: Done(10, 0, 10)}
    found = estimate(learn([]), RunProgress(plan(20), 15.0, done, {2: 10.0, 3: 10.0}))

    assert found is not None
    assert found.method == "its own pace"
    assert "no past run" in found.reason
