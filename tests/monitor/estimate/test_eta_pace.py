"""On the way: this run's own pace, what tasks inherit from those before them, the least left."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.estimate.estimate_runs import run
from tocsin.monitor.estimate import (
    Done,
    Knowledge,
    PastRun,
    Plan,
    Planned,
    RunProgress,
    estimate,
    learn,
)
from tocsin.monitor.estimate.candidates import view
from tocsin.monitor.estimate.remaining import rests
from tocsin.monitor.estimate.shape import compile_plan
from tocsin.monitor.estimate.state import state_of
from tocsin.monitor.evaluation.estimates import progress_at, with_times

SAMPLES = 8


def learned(seed: int = 0) -> Knowledge:
    return learn([run(seed + number, samples) for number, samples in enumerate([6, 8, 8, 10, 7])])


KNOWN = learned()


def chain_s(moment: RunProgress, fastest_s: dict[str, float]) -> float:
    """The longest chain of tasks left, found the plain way."""

    def left(index: int) -> float:
        if index in moment.done:
            return 0.0
        task = moment.plan.tasks[index]
        own = fastest_s[task.type]
        if index in moment.running:
            own = max(own - (moment.elapsed_s - moment.running[index]), 0.0)
        return own + max((left(parent) for parent in task.parents), default=0.0)

    return max(left(index) for index in range(len(moment.plan.tasks)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 50), st.integers(10, 14), st.floats(0.0, 0.97), st.floats(0.5, 2.5))
def test_no_interval_begins_before_what_is_left_could_ever_be_done(
    seed: int, samples: int, stage: float, speed: float
) -> None:
    """Of a run that is not smaller than past ones."""
    one = run(100 + seed, samples, speed=speed)
    moment = progress_at(one, stage * one.makespan_s)
    fastest_s: dict[str, float] = {}
    for each in KNOWN.runs:
        for name, seconds in each.fastest_s.items():
            fastest_s[name] = min(seconds, fastest_s.get(name, seconds))
    for index, done in moment.done.items():
        name = moment.plan.tasks[index].type
        assert done.started_s is not None
        assert done.ended_s is not None
        fastest_s[name] = min(done.ended_s - done.started_s, fastest_s[name])

    said = estimate(KNOWN, moment)

    assert said is not None
    assert said.low_s >= chain_s(moment, fastest_s) - 1e-6
    assert said.low_s <= said.remaining_s <= said.high_s


@pytest.mark.parametrize("stage", [0.0, 0.5, 0.9])
def test_a_run_smaller_than_all_past_ones_may_take_less_than_the_fastest_of_them(
    stage: float,
) -> None:
    one = run(77, 2)  # to merge two takes a third of what the fastest merge of past runs took

    said = estimate(KNOWN, progress_at(one, stage * one.makespan_s))

    assert said is not None
    assert said.low_s <= (1 - stage) * one.makespan_s


@pytest.mark.parametrize("stage", [0.25, 0.5, 0.75, 0.9])
def test_an_interval_does_not_begin_at_now_while_work_of_known_length_remains(
    stage: float,
) -> None:
    one = run(77, SAMPLES)

    said = estimate(KNOWN, progress_at(one, stage * one.makespan_s))

    assert said is not None
    assert said.low_s > 0.2 * said.remaining_s


def stretched(one: PastRun, factor: float, after_s: float) -> PastRun:
    """The run with all that started after a moment slower by a factor, and shifted to fit."""

    def late(at_s: float) -> float:
        return at_s if at_s <= after_s else after_s + (at_s - after_s) * factor

    done = {}
    for index, task in one.done.items():
        assert task.started_s is not None
        assert task.ended_s is not None
        start_s, end_s = late(task.started_s), late(task.ended_s)
        done[index] = Done(end_s - start_s, start_s, end_s)
    return replace(one, done=done, makespan_s=late(one.makespan_s))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 30), st.floats(1.5, 2.5))
def test_the_slower_its_ended_tasks_the_longer_a_run_is_expected_to_take(
    seed: int, slower: float
) -> None:
    one = run(200 + seed, SAMPLES)
    slow = stretched(one, slower, 0.0)
    moment = progress_at(slow, 0.5 * slow.makespan_s)
    shape = compile_plan(moment.plan)
    state = state_of(moment, shape)

    usual, paced = rests(shape, view(KNOWN.runs, shape).models, state, state.stretch or 1.0)

    assert paced.pace is not None
    assert paced.pace > 1.0
    assert paced.remaining_s > usual.remaining_s


def pairs(seed: int, sizes: list[float], *, cores: int = 2) -> PastRun:
    """Each sample is read and then packed, both in proportion to its size, which nobody tells."""
    dice = random.Random(seed)
    tasks: list[Planned] = []
    done: dict[int, Done] = {}
    for place, size in enumerate(sizes):
        tasks += [Planned("read"), Planned("pack", (2 * place,))]
        done[2 * place] = Done(2.0 * size * dice.lognormvariate(0, 0.05))
        done[2 * place + 1] = Done(20.0 * size * dice.lognormvariate(0, 0.05))
    work_s = sum(each.runtime_s for each in done.values())
    return with_times(PastRun(Plan(tuple(tasks), cores=cores), work_s / cores * 1.05, done))


def test_a_task_after_a_long_one_is_expected_to_be_long() -> None:
    dice = random.Random(5)
    past = [
        pairs(seed, [dice.lognormvariate(0, 0.8) for _ in range(6 + seed % 3)]) for seed in range(7)
    ]
    knowledge = learn(past)

    def left(size: float) -> float:
        """Four samples are packed, the last is read and not packed."""
        done = {}
        for place, each in enumerate([1.0, 0.8, 1.2, 1.0]):
            at_s = 25.0 * place
            done[2 * place] = Done(2 * each, at_s, at_s + 2 * each)
            done[2 * place + 1] = Done(20 * each, at_s + 3, at_s + 3 + 20 * each)
        done[8] = Done(2 * size, 100.0, 100.0 + 2 * size)
        plan = pairs(0, [1.0] * 5, cores=1).plan
        said = estimate(knowledge, RunProgress(plan, 110.0, done, {9: 110.0}))
        assert said is not None
        return said.remaining_s

    assert left(4.0) > 1.5 * left(1.0)


def test_who_is_slow_and_who_is_large_are_told_apart() -> None:
    """Were the large samples first, the rest is not taken to be as large."""
    dice = random.Random(11)
    past = [
        pairs(seed, [dice.lognormvariate(0, 0.8) for _ in range(6 + seed % 3)]) for seed in range(7)
    ]
    sizes = [3.0, 2.5, 2.0, 0.4, 0.5, 0.6, 0.3]
    plan = pairs(0, sizes, cores=1).plan
    done: dict[int, Done] = {}
    now_s = 0.0
    for place, size in enumerate(sizes):  # all are read first, then the large ones are packed
        done[2 * place] = Done(2 * size, now_s, now_s + 2 * size)
        now_s += 2 * size
    for place in range(3):
        done[2 * place + 1] = Done(20 * sizes[place], now_s, now_s + 20 * sizes[place])
        now_s += 20 * sizes[place]

    said = estimate(learn(past), RunProgress(plan, now_s, done, {}))

    assert said is not None
    truth_s = 20 * sum(sizes[3:])
    assert abs(math.log(said.remaining_s / truth_s)) < math.log(2.2)
