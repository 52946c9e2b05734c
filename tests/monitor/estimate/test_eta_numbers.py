"""Numbers that commands name: those that explain runtimes are used, all others change nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from monitor.estimate.estimate_runs import snakemake_runs
from tocsin.monitor.estimate import Done, PastRun, Plan, Planned, RunProgress, estimate, learn
from tocsin.monitor.estimate.amounts import amounts_in
from tocsin.monitor.estimate.inputs import task_of
from tocsin.monitor.estimate.shape import Amount, compile_plan
from tocsin.monitor.evaluation.estimates import with_times
from tocsin.monitor.fold import ConceptRules, RunMessage, parse_message
from tocsin.ontology import built_in

Named = Callable[[random.Random, int, float], dict[str, float]]


def size_alone(dice: random.Random, place: int, size: float) -> dict[str, float]:
    return {"--n": size}


USELESS: dict[str, Named] = {
    "seed": lambda dice, place, size: {"--seed": float(dice.randrange(10**6))},
    "index": lambda dice, place, size: {"--index": float(place)},
    "chromosome": lambda dice, place, size: {"--chr": float(1 + place % 22)},
    "threads": lambda dice, place, size: {"--threads": float(dice.choice([1, 2, 4]))},
    "many": lambda dice, place, size: {f"-{c}": dice.uniform(1, 1000) for c in "abcdefgh"},
    "zero": lambda dice, place, size: {"-q": 0.0},
}


def run(seed: int, named: Named | None, *, samples: int = 8, follow: bool = True) -> PastRun:
    """Each sample is made and packed; both take as long as the sample is large, or only the first.

    `named` are the numbers in the command that makes it.
    """
    dice = random.Random(seed)
    other = random.Random(seed + 1000)
    tasks: list[Planned] = []
    done: dict[int, Done] = {}
    for place in range(samples):
        size = dice.lognormvariate(0, 0.8) * 10_000
        numbers = tuple(named(other, place, size).items()) if named is not None else ()
        packed = size if follow else 10_000
        done[len(tasks)] = Done(size / 1000 * dice.lognormvariate(0, 0.1))
        tasks.append(Planned("make", (), 0, numbers=numbers))
        done[len(tasks)] = Done(packed / 500 * dice.lognormvariate(0, 0.1))
        tasks.append(Planned("pack", (len(tasks) - 1,), 0))
    total_s = sum(each.runtime_s for each in done.values())
    return with_times(PastRun(Plan(tuple(tasks), cores=2), total_s / 1.8, done, f"seed {seed}"))


def error(past: Sequence[PastRun], whole: PastRun) -> float:
    said = estimate(learn(past), RunProgress(whole.plan, 0.0, {}, {}))
    assert said is not None
    return abs(said.total_s / whole.makespan_s - 1)


def test_a_number_that_says_how_much_there_is_to_do_betters_the_estimate() -> None:
    past = [run(seed, size_alone) for seed in range(6)]
    plain = [run(seed, None) for seed in range(6)]
    new = range(100, 120)

    with_it = [error(past, run(seed, size_alone)) for seed in new]
    without = [error(plain, run(seed, None)) for seed in new]

    assert learn(past).amounts == {"make": Amount("--n", handed_on=True)}
    assert np.median(with_it) < 0.5 * np.median(without)


@pytest.mark.parametrize("kind", USELESS)
def test_a_number_that_says_nothing_leaves_estimates_as_they_are(kind: str) -> None:
    past = [run(seed, USELESS[kind]) for seed in range(6)]
    now = run(100, USELESS[kind])

    assert learn(past).amounts == {}
    assert error(past, now) == error([run(seed, None) for seed in range(6)], run(100, None))


def test_numbers_that_say_nothing_are_hardly_ever_believed_by_chance() -> None:
    believed = 0
    for trial in range(200):
        past = [run(10 * trial + n, USELESS["many"], samples=4) for n in range(3)]
        believed += bool(amounts_in(past))

    assert believed <= 4  # of 200 with eight numbers each


def test_beside_others_the_number_that_explains_most_is_found() -> None:
    def named(dice: random.Random, place: int, size: float) -> dict[str, float]:
        noisy = size * dice.lognormvariate(0, 0.5)
        return {"--seed": float(dice.randrange(10**6)), "--about": noisy, "--n": size}

    assert learn([run(seed, named) for seed in range(4)]).amounts["make"].number == "--n"


def test_where_those_after_a_task_do_not_follow_its_number_estimates_get_no_worse() -> None:
    past = [run(seed, size_alone, follow=False) for seed in range(6)]
    plain = [run(seed, None, follow=False) for seed in range(6)]
    new = range(100, 120)

    with_it = [error(past, run(seed, size_alone, follow=False)) for seed in new]
    without = [error(plain, run(seed, None, follow=False)) for seed in new]

    assert learn(past).amounts["make"].number == "--n"
    assert np.median(with_it) <= np.median(without)


def test_one_past_run_does_not_tell_which_numbers_mean_anything() -> None:
    assert learn([run(1, size_alone)]).amounts == {}


def test_a_run_that_does_not_tell_the_number_is_estimated_without_it() -> None:
    past = [run(seed, size_alone) for seed in range(6)]
    bare = run(100, None)

    said = estimate(learn(past), RunProgress(bare.plan, 0.0, {}, {}))

    assert said is not None
    assert 0.3 < said.total_s / bare.makespan_s < 3


def test_tasks_whose_number_is_not_known_yet_are_taken_to_be_as_the_others() -> None:
    whole = run(1, size_alone)
    tasks = list(whole.plan.tasks)
    first = tasks[0]
    tasks[0] = replace(first, numbers=())
    amounts = {"make": Amount("--n", handed_on=True)}

    flow = compile_plan(replace(whole.plan, tasks=tuple(tasks)), amounts=amounts).flow

    others = [dict(each.numbers)["--n"] for each in tasks if each.type == "make" and each.numbers]
    assert flow[0] == pytest.approx(np.log1p(1 + np.median(others)))


def test_in_the_recorded_runs_the_count_is_believed_and_the_seed_is_not() -> None:
    runs = snakemake_runs()

    assert dict(runs[0].plan.tasks[4].numbers).keys() == {"Random", "range"}
    for left_out in range(len(runs)):
        past = [each for place, each in enumerate(runs) if place != left_out]
        assert learn(past).amounts == {"gen": Amount("range", handed_on=True)}


def test_the_numbers_of_a_plan_reach_the_estimate_and_those_told_last_count() -> None:
    reading = ConceptRules(built_in())
    plan = [{"id": "a", "type": "t", "numbers": {"--n": 5, "--bad": "x", "--low": -1}}]
    early = RunMessage({"RunId": "r", "ActivityPlan": json.dumps(plan)}, 1, 10**18)
    plan[0]["numbers"] = {"--n": 7}
    late = RunMessage({"RunId": "r", "ActivityPlan": json.dumps(plan)}, 2, 2 * 10**18)

    rows = [parse_message(received, reading) for received in (early, late)]

    found = [each.activities["a", 1] for each in rows if each is not None]
    assert [task_of("a", "t", "", row, "running", {}).numbers for row in found] == [
        (("--n", 5),),
        (("--n", 7),),
    ]
    again = task_of("a", "t", "", {"state": [0, 0, 3, "planned"]}, "running", {1: found[0]})
    assert again.numbers == (("--n", 5),)
