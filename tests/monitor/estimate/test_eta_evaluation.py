"""The evaluation: what is known when, what is printed, and the figures themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.estimate.estimate_runs import SHARED_RUNS, plan, run, snakemake_runs
from tocsin.cli.evaluate.runs_file import read_runs
from tocsin.monitor.estimate import Done, PastRun, RunProgress, estimate, learn
from tocsin.monitor.estimate.run_digest import digest
from tocsin.monitor.evaluation.estimates import (
    BASELINES,
    STAGES,
    Application,
    as_report,
    evaluate,
    median_of,
    progress_at,
    with_times,
)

needs_data = pytest.mark.skipif(not SHARED_RUNS.exists(), reason="the recorded runs are not here")


def untimed(one: PastRun) -> PastRun:
    return replace(one, done={i: Done(task.runtime_s) for i, task in one.done.items()})


def test_a_replay_ends_with_the_recorded_makespan() -> None:
    replayed = with_times(untimed(run(1, 6)))

    assert max(task.ended_s or 0 for task in replayed.done.values()) == pytest.approx(
        replayed.makespan_s
    )


def test_times_that_were_recorded_are_kept() -> None:
    real = snakemake_runs()[0]

    assert with_times(real).done == real.done


@pytest.mark.parametrize("stage", STAGES)
def test_a_moment_holds_nothing_that_came_later(stage: float) -> None:
    one = run(1, 8)
    now_s = stage * one.makespan_s

    moment = progress_at(one, now_s)

    assert moment.elapsed_s == now_s
    assert all((task.ended_s or 0) <= now_s for task in moment.done.values())
    assert all(start <= now_s for start in moment.running.values())
    assert not set(moment.done) & set(moment.running)
    if not stage:
        assert not moment.done
        assert not moment.running


def with_another_future(one: PastRun, now_s: float) -> PastRun:
    """The same run up to now; whatever ends later takes three times as long and reads more."""
    done = {}
    for index, task in one.done.items():
        assert task.started_s is not None
        assert task.ended_s is not None
        late = 3 * (task.ended_s - now_s)
        done[index] = (
            task
            if task.ended_s <= now_s
            else Done(
                task.runtime_s * 3,
                task.started_s if task.started_s <= now_s else task.started_s * 3,
                now_s + late,
                in_bytes=10**9,
                out_bytes=10**9,
            )
        )
    return PastRun(one.plan, 3 * one.makespan_s, done, "another")


@pytest.mark.parametrize("stage", STAGES)
def test_no_estimate_and_no_baseline_depends_on_what_comes_later(stage: float) -> None:
    known = learn([run(seed, samples) for seed, samples in enumerate([4, 6, 8, 10, 12])])
    one = run(99, 9)
    now_s = stage * one.makespan_s

    reported = progress_at(one, now_s)
    reported_otherwise = progress_at(with_another_future(one, now_s), now_s)

    assert reported == reported_otherwise
    assert estimate(known, reported) == estimate(known, reported_otherwise)


class Unread(dict[int, Done]):
    """A mapping that fails the test when it is asked for what is not known yet."""

    def __init__(self, known: dict[int, Done], later: set[int]) -> None:
        super().__init__(known)
        self.later = later

    def __getitem__(self, index: int) -> Done:
        assert index not in self.later, f"task {index} was read before it ended"
        return super().__getitem__(index)


def test_nobody_asks_for_a_task_that_has_not_ended() -> None:
    known = learn([run(seed, samples) for seed, samples in enumerate([4, 6, 8, 10, 12])])
    one = run(99, 9)
    moment = progress_at(one, one.makespan_s / 2)
    later = set(one.done) - set(moment.done)

    said = estimate(
        known,
        RunProgress(
            moment.plan, moment.elapsed_s, Unread(dict(moment.done), later), moment.running
        ),
    )

    assert said == estimate(known, moment)


def test_a_past_run_looked_at_on_its_way_is_what_it_was_then() -> None:
    one = run(5, 8)
    digested = digest(one)
    assert digested is not None
    now_s = 0.4 * one.makespan_s

    moment, state = progress_at(one, now_s), digested.at(0.4)

    assert set(state.ended) == set(moment.done)
    assert dict(state.running) == pytest.approx(moment.running)


def test_a_run_is_estimated_from_the_others_alone() -> None:
    runs = [run(seed, 8) for seed in range(6)]
    odd = replace(runs[0], makespan_s=runs[0].makespan_s * 50)

    found = evaluate([with_times(untimed(odd)), *runs[1:]])

    assert found.run_out[0.0].mape > 0.15  # had it known itself, it would have been near


def test_the_report_has_the_shape_that_others_rely_on() -> None:
    runs = [run(seed, samples) for seed, samples in enumerate([4, 4, 8, 8, 12])]
    reported: list[int] = []

    report = as_report({"made up": evaluate(runs, reported.append)})

    assert reported[-1] == 2 * len(runs)
    applications = report["applications"]
    assert isinstance(applications, dict)
    for found in (applications["made up"], report["median"]):
        assert found["runs"] == len(runs)
        for split in ("leave_one_run_out", "leave_one_size_out"):
            assert list(found[split]) == ["0", "25", "50", "75"]
            assert set(found[split]["0"]) == {"mdape", "mape", "coverage", "ratio"}
        assert tuple(found["baselines"]) == BASELINES
        assert set(found["baselines"]["mean_makespan"]["25"]) == {"mdape", "mape"}


def test_runs_of_one_size_alone_have_no_other_size_to_learn_from() -> None:
    found = evaluate([run(seed, 4) for seed in range(4)])

    assert found.size_out == {}
    assert median_of([found]).size_out == {}


def recorded(name: str) -> list[PastRun]:
    return [each.run for each in read_runs(SHARED_RUNS)[name]]


@needs_data
def test_a_real_application_is_estimated_better_than_by_any_baseline() -> None:
    found = evaluate(recorded("cycles"))

    for stage in STAGES:
        for name in BASELINES:
            assert found.run_out[stage].mdape < found.run_out_baselines[name][stage].mdape
    assert found.run_out[0.0].mdape < 0.12
    assert found.run_out[0.5].mdape < 0.08


@needs_data
@pytest.mark.slow
def test_the_figures_of_the_documents_hold() -> None:
    applications: list[Application] = []
    for runs in read_runs(SHARED_RUNS).values():
        if len(runs) >= 10:
            applications.append(evaluate([each.run for each in runs]))
    median = median_of(applications)

    at = median.run_out
    assert at[0.0].mdape <= 0.12
    assert at[0.0].mape <= 0.20
    assert median.size_out[0.0].mdape <= 0.16
    for stage, goal in ((0.25, 0.14), (0.5, 0.08), (0.75, 0.05)):
        assert at[stage].mdape <= goal
    coverage = [at[stage].coverage or 0.0 for stage in STAGES]
    assert 0.75 <= float(np.mean(coverage)) <= 0.85
    assert all((at[stage].ratio or 0.0) <= 2.0 for stage in STAGES)


def test_a_plan_for_the_tests_is_a_fork_and_a_join() -> None:
    assert [len(task.parents) for task in plan(3).tasks] == [0, 1, 0, 1, 0, 1, 3]
