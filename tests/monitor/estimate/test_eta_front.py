"""The estimator's front: what it says with much, little and no past, and of strange runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.estimate.estimate_runs import plan, run, snakemake_runs
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
from tocsin.monitor.evaluation.estimates import progress_at

PAST = [run(seed, samples) for seed, samples in enumerate([4, 6, 8, 8, 10, 12, 12, 16, 20, 24])]
KNOWN = learn(PAST)


def sound(said: Estimate) -> bool:
    times = (said.total_s, said.remaining_s, said.low_s, said.high_s)
    return all(math.isfinite(time) and time >= 0 for time in times) and (
        said.low_s <= said.remaining_s <= said.high_s
    )


def test_a_run_that_has_not_started_is_estimated_from_runs_like_it() -> None:
    new = run(99, 14)

    said = estimate(KNOWN, RunProgress(new.plan, 0.0, {}, {}))

    assert said is not None
    assert said.total_s == pytest.approx(new.makespan_s, rel=0.25)
    assert said.remaining_s == said.total_s
    assert said.past_runs == len(PAST)
    assert said.past_error is not None
    assert said.past_error < 0.2


@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.75, 0.95])
def test_a_run_on_its_way_is_estimated_from_where_it_stands(fraction: float) -> None:
    new = run(99, 14, speed=1.5)

    said = estimate(KNOWN, progress_at(new, fraction * new.makespan_s))

    assert said is not None
    assert sound(said)
    assert said.total_s == pytest.approx(new.makespan_s, rel=0.3)


def test_more_input_takes_longer() -> None:
    past = [run(n, 6, sample_bytes=size * 1_000_000) for n, size in enumerate([1, 2, 3, 4, 6, 8])]
    known = learn(past)

    little, much = (
        estimate(known, RunProgress(plan(6, sample_bytes=size), 0.0, {}, {}))
        for size in (1_500_000, 7_000_000)
    )

    assert little is not None
    assert much is not None
    assert much.total_s > 2 * little.total_s


def test_the_version_at_hand_counts_more_than_another() -> None:
    old = [run(n, 8, version="1") for n in range(5)]
    new = [run(n, 8, version="2", speed=3.0) for n in range(5, 8)]
    known = learn([*old, *new])
    started = {0: 0.0, 2: 0.0, 4: 0.0, 6: 0.0}

    said = {
        version: estimate(known, RunProgress(plan(8, version=version), 1.0, {}, started))
        for version in ("1", "2")
    }

    assert said["1"] is not None
    assert said["2"] is not None
    assert said["2"].total_s > said["1"].total_s


def test_with_no_past_and_nothing_ended_nothing_is_said() -> None:
    nothing = learn([])

    assert estimate(nothing, RunProgress(plan(4), 0.0, {}, {})) is None
    assert estimate(nothing, RunProgress(plan(4), 30.0, {}, {0: 0.0})) is None
    assert estimate(nothing, RunProgress(Plan(()), 30.0, {}, {})) is None


def test_with_no_past_the_run_s_own_pace_is_told_with_a_wide_interval() -> None:
    new = run(99, 12)

    said = estimate(learn([]), progress_at(new, new.makespan_s / 2))

    assert said is not None
    assert sound(said)
    assert said.past_runs == 0
    assert said.past_error is None
    assert (new.makespan_s / 2 + said.high_s) / said.total_s > 2
    assert said.low_s <= new.makespan_s / 2 <= said.high_s


def test_the_more_runs_are_known_the_narrower_the_interval() -> None:
    new = run(99, 14)
    widths = []
    for count in (1, 3, 10):
        said = estimate(learn(PAST[-count:]), RunProgress(new.plan, 0.0, {}, {}))
        assert said is not None
        widths.append(said.high_s / said.low_s)

    assert widths[0] > widths[1] > widths[2]


def test_the_reason_names_the_critical_path_the_slowest_activity_and_the_pace() -> None:
    new = run(99, 14, speed=2.0)

    said = estimate(KNOWN, progress_at(new, new.makespan_s / 2))

    assert said is not None
    assert "critical path" in said.reason
    assert "merge" in said.reason
    assert "most work is left in align" in said.reason
    assert "times as long as usual" in said.reason
    assert said.critical_path[-1] == len(new.plan.tasks) - 1
    assert said.reason.endswith(".")


def test_a_run_whose_tasks_have_all_ended_has_no_time_left() -> None:
    new = run(99, 4)

    said = estimate(KNOWN, progress_at(new, new.makespan_s))

    assert said is not None
    assert said.remaining_s == 0
    assert said.high_s == 0


def test_a_plan_that_still_grows_is_filled_up_with_what_is_usual() -> None:
    few = plan(10).tasks[:4]
    ended = {0: Done(5.0, 0.0, 5.0)}

    known_whole = estimate(KNOWN, RunProgress(Plan(few, cores=4), 6.0, ended, {1: 5.0}))
    growing = estimate(KNOWN, RunProgress(Plan(few, cores=4, whole=False), 6.0, ended, {1: 5.0}))

    assert known_whole is not None
    assert growing is not None
    assert growing.total_s > known_whole.total_s


def test_announced_counts_are_enough_to_estimate() -> None:
    new = run(99, 12)
    counts = {"trim": 12, "align": 12, "merge": 1}

    said = estimate(KNOWN, RunProgress(Plan((), cores=4, counts=counts), 0.0, {}, {}))

    assert said is not None
    assert said.total_s == pytest.approx(new.makespan_s, rel=0.6)
    assert said.critical_path == ()  # there is no task yet that it could name


def test_a_cycle_and_parents_that_are_not_there_do_not_hang_it() -> None:
    tasks = (
        Planned("trim", (1,)),
        Planned("align", (0, 0, 7, -3)),
        Planned("merge", (2,)),
    )

    said = estimate(KNOWN, RunProgress(Plan(tasks), 3.0, {}, {}))

    assert said is not None
    assert sound(said)


def test_what_ends_in_no_past_run_teaches_nothing() -> None:
    empty = PastRun(plan(4), 10.0, {})
    absurd = PastRun(plan(4), float("nan"), {0: Done(1.0)})

    assert learn([empty, absurd]).runs == ()


any_number = st.floats(allow_nan=True, allow_infinity=True) | st.just(-1.0) | st.just(1e300)
done = st.builds(
    Done,
    runtime_s=any_number,
    started_s=st.none() | any_number,
    ended_s=st.none() | any_number,
    in_bytes=st.none() | st.integers(-5, 2**70),
)
planned = st.builds(
    Planned,
    type=st.sampled_from(["trim", "align", "merge", "new"]),
    parents=st.lists(st.integers(-2, 8), max_size=3).map(tuple),
    external_bytes=st.none() | st.integers(-5, 2**70),
    version=st.sampled_from(["", "2"]),
)
plans = st.builds(
    Plan,
    tasks=st.lists(planned, max_size=8).map(tuple),
    machines=st.integers(-1, 3),
    cores=st.integers(-1, 2**40),
    whole=st.booleans(),
    counts=st.dictionaries(st.sampled_from(["trim", "odd"]), st.integers(-2, 5), max_size=2),
)
moments = st.builds(
    RunProgress,
    plan=plans,
    elapsed_s=any_number,
    done=st.dictionaries(st.integers(-1, 9), done, max_size=5),
    running=st.dictionaries(st.integers(-1, 9), any_number, max_size=5),
)
FEW = learn(PAST[:3])


@settings(max_examples=150, deadline=None)
@given(moment=moments, much=st.booleans())
def test_whatever_it_is_told_it_answers_and_what_it_says_can_be(
    moment: RunProgress, much: bool
) -> None:
    said = estimate(FEW if much else learn([]), moment)

    assert said is None or sound(said)


@settings(max_examples=40, deadline=None)
@given(
    past=st.lists(
        st.builds(
            PastRun,
            plan=plans,
            makespan_s=any_number,
            done=st.dictionaries(st.integers(-1, 9), done, max_size=5),
        ),
        max_size=4,
    )
)
def test_any_past_can_be_learnt_from(past: list[PastRun]) -> None:
    said = estimate(learn(past), RunProgress(plan(3), 5.0, {0: Done(4.0, 0.0, 4.0)}, {1: 4.0}))

    assert said is not None
    assert sound(said)


def test_real_runs_of_a_noisy_machine_are_estimated_better_than_by_counting_jobs() -> None:
    runs = snakemake_runs()
    ours, counting = [], []
    for one in runs:
        moment = progress_at(one, one.makespan_s / 2)
        said = estimate(learn([other for other in runs if other is not one]), moment)
        assert said is not None
        ours.append(abs(said.total_s / one.makespan_s - 1))
        share = len(moment.done) / len(one.plan.tasks)
        counting.append(abs(0.5 / share - 1))

    assert sorted(ours)[4] < 0.2
    assert sum(ours) < sum(counting)
