"""Worlds in which everybody signs in: nobody reads anything that he had no right to when it was
answered."""

from __future__ import annotations

from random import Random

import pytest

from sim.mutations import Mutate
from sim.read_mutations import (
    READ_MUTATIONS,
    give_any_current_message,
    list_every_dead_letter,
)
from sim.test_mutations import assert_is_caught
from tocsin.sim.plan import draw_plan
from tocsin.sim.run import run_seed

SEEDS_MAX = 1_000
RUNS = 24


def reads(seed: int) -> bool:
    plans = [each.access for each in draw_plan(Random(seed), seed).brokers]
    return any(each is not None and each.readers for each in plans)


READING = [seed for seed in range(SEEDS_MAX) if reads(seed)]

MUST_HAPPEN = {
    "access: a reader was refused: a page",
    "access: a reader was refused: the profile",
    "access: read: a page",
    "access: read: a query",
    "access: read: dead letters",
    "access: read: subscriptions",
    "access: read: the current message",
    "access: read: the profile",
    "access: read: topics",
}


def test_everything_that_can_be_read_is() -> None:
    left = set(MUST_HAPPEN)
    for seed in READING[:RUNS]:
        report = run_seed(seed)
        assert report.ok, report.failure
        left -= report.counters.keys()

    assert not left


# Runs notice these after more than ten seconds of seeds.
RARE = {give_any_current_message, list_every_dead_letter}
MUTATIONS = [
    pytest.param(each, marks=[pytest.mark.slow] if each in RARE else [], id=each.__name__)
    for each in READ_MUTATIONS
]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mistake_about_reading_is_caught_within_a_thousand_seeds(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)

    assert_is_caught(mutate, READING, READ_MUTATIONS[mutate])
