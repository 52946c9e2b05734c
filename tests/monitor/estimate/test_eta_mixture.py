"""Choosing by past error: who was right weighs more, and moments alike count most."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tocsin.monitor.estimate.candidates import CANDIDATES
from tocsin.monitor.estimate.mixture import (
    ALONE_HIGH,
    ALONE_LOW,
    ON_THE_WAY,
    REST_MIN,
    PastErrors,
    fractions,
    judge,
    mix,
)

NOW = np.array([0.5, 0.5, -0.3])
OVER = 0.5  # of each past run's time, at the moments that are looked at


def lessons(errors: np.ndarray, places: np.ndarray | None = None) -> PastErrors:
    runs = len(errors)
    where = np.tile(NOW, (runs, 1)) if places is None else places
    return PastErrors(np.arange(runs), np.full(runs, OVER), where, errors)


def noise(size: float, runs: int = 12, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, (runs, len(CANDIDATES)))


def test_without_a_past_the_interval_is_the_widest() -> None:
    verdict = judge(lessons(noise(0.1, runs=0)), NOW, started=True)

    assert (verdict.low, verdict.high) == (ALONE_LOW, ALONE_HIGH)
    assert verdict.error is None
    assert verdict.weights.sum() == pytest.approx(1.0)


def test_who_was_right_weighs_most() -> None:
    errors = noise(0.5)
    errors[:, 3] *= 0.02

    verdict = judge(lessons(errors), NOW, started=True)

    assert np.argmax(verdict.weights) == 3
    assert verdict.weights[3] > 0.9


@pytest.mark.parametrize("name", ["mean makespan", "fraction of tasks"])
def test_a_baseline_that_was_always_right_outweighs_all_others(name: str) -> None:
    errors = noise(0.3)
    errors[:, CANDIDATES.index(name)] = 0.01

    verdict = judge(lessons(errors), NOW, started=True)

    assert verdict.weights[CANDIDATES.index(name)] > 0.8
    assert verdict.error is not None
    assert verdict.error < 0.1


def test_two_that_err_to_either_side_are_believed_together() -> None:
    errors = noise(0.3)
    errors[:, 1], errors[:, 2] = 0.2, -0.2

    verdict = judge(lessons(errors), NOW, started=True)

    assert verdict.weights[1] == pytest.approx(verdict.weights[2], rel=0.25)
    assert verdict.weights[1] + verdict.weights[2] > 0.7


def test_one_past_run_moves_the_shares_less_than_many() -> None:
    errors = np.full((12, len(CANDIDATES)), 0.3)
    errors[:, 3] = 0.1

    few = judge(lessons(errors[:1]), NOW, started=True)
    many = judge(lessons(errors), NOW, started=True)

    assert ON_THE_WAY[3] < few.weights[3] < many.weights[3]


@given(
    errors=arrays(np.float64, (5, len(CANDIDATES)), elements=st.floats(-30, 30)),
    started=st.booleans(),
)
def test_shares_are_shares_whatever_the_past_was(errors: np.ndarray, started: bool) -> None:
    verdict = judge(lessons(errors), NOW, started=started)

    assert np.all(verdict.weights >= 0)
    assert verdict.weights.sum() == pytest.approx(1.0)
    assert verdict.low <= 0 <= verdict.high


def test_moments_unlike_this_one_do_not_count() -> None:
    here, far = noise(0.5, seed=2), noise(0.5, seed=3)
    here[:, 1] *= 0.02
    far[:, 0] *= 0.02
    places = np.vstack([np.tile(NOW, (12, 1)), np.tile(NOW + 3, (12, 1))])

    verdict = judge(lessons(np.vstack([here, far]), places), NOW, started=True)

    assert np.argmax(verdict.weights) == 1


def test_the_interval_holds_about_eighty_of_a_hundred_errors() -> None:
    dice = np.random.default_rng(7)
    inside = 0
    for _ in range(60):
        errors = np.tile(dice.normal(0, 0.2, (15, 1)), (1, len(CANDIDATES)))
        verdict = judge(lessons(errors), NOW, started=True)
        new = np.log(np.maximum((np.exp(dice.normal(0, 0.2, 20)) - OVER) / (1 - OVER), REST_MIN))
        inside += sum(verdict.low <= -error <= verdict.high for error in new)

    assert 0.74 < inside / (60 * 20) < 0.88


def test_one_wild_opinion_moves_the_mixture_little() -> None:
    said = np.ones(len(CANDIDATES))
    said[4] = 40.0

    assert mix(said, np.full(len(said), 1 / len(said))) < 1.5


def test_each_past_run_is_looked_at_in_moments_of_its_own() -> None:
    first, second = fractions(0), fractions(1)

    assert first[0] == second[0] == 0.0
    assert not set(first[1:]) & set(second[1:])
    assert all(0 <= fraction < 1 for fraction in first + second)
