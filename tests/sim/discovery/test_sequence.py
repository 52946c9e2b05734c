"""A plan that simulator and processes carry out alike: its words, its counts, what would differ."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tocsin.overlay.region_text import parse_region
from tocsin.sim.discovery.experiment import Setting, region_of
from tocsin.sim.discovery.figures import QUICK, Experiments
from tocsin.sim.discovery.sequence import (
    QUICK_SIZES,
    Answer,
    Phase,
    Plan,
    Sizes,
    at_one_broker,
    differences,
    draw_plan,
    in_total,
    simulate,
    words_of,
)
from tocsin.sim.discovery.workload import draw_pools


@pytest.fixture(scope="module")
def plan() -> Plan:
    return draw_plan(QUICK_SIZES, 1)


@pytest.fixture(scope="module")
def phases(plan: Plan) -> list[Phase]:
    return simulate(plan)


def test_its_words_are_the_same_requests_and_advertisements(plan: Plan) -> None:
    for bounds in [
        *(each.bounds for each in plan.asked),
        *(resource.advertised for resource, _ in plan.resources),
    ]:
        assert parse_region(words_of(bounds)) == region_of(bounds)


def test_a_seed_gives_the_requests_and_places_of_figure_9() -> None:
    plan = draw_plan(Sizes(20, 4, 200, 200), 3)
    experiments = Experiments(draw_pools(Random(3), resources=200, requests=200), QUICK, 3, None)

    of_the_figure = experiments.asked(Setting("9", "Normal", similarity=50))

    assert [(each.broker, each.bounds) for each in plan.asked] == [
        (each.broker, each.bounds) for each in of_the_figure
    ]


def test_two_runs_of_a_plan_are_equal(plan: Plan, phases: list[Phase]) -> None:
    assert differences(phases, simulate(plan)) == []


def test_what_is_found_is_what_matches_by_either_algorithm(plan: Plan, phases: list[Phase]) -> None:
    _, normal, similar = phases

    for each, one, other in zip(plan.asked, normal.answers, similar.answers, strict=True):
        matching = sum(
            all(
                tag in resource.values and low <= resource.values[tag] <= high
                for tag, (low, high) in each.bounds.items()
            )
            for resource, _ in plan.resources
        )
        assert one.found == other.found == matching
    assert in_total(similar.counts)["covered"] > 0


def test_one_broker_sends_nothing(plan: Plan) -> None:
    for phase in simulate(at_one_broker(plan)):
        counts = in_total(phase.counts)
        assert counts["advertisements"] == counts["subscriptions"] == counts["publications"] == 0


def test_a_message_more_and_another_answer_are_named(phases: list[Phase]) -> None:
    registration, normal, similar = phases
    more = {**normal.counts["e02"], "subscriptions": normal.counts["e02"]["subscriptions"] + 1}
    answers = (Answer(99, 0, False), *similar.answers[1:])
    other = [
        registration,
        replace(normal, counts={**normal.counts, "e02": more}),
        replace(similar, answers=answers),
    ]

    count, answer = differences(phases, other)

    assert count.startswith("Normal, e02, subscriptions: ")
    assert answer.startswith("Similarity, request 1: ")
