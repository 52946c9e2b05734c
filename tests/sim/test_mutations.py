"""A simulator that finds nothing proves nothing: it must find mistakes that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from sim.mutations import MUTATIONS, Mutate
from sim.rest_mutations import REST_MUTATIONS
from tocsin.sim.run import run_seed

SEEDS_MAX = 1_000
ALL_MUTATIONS = MUTATIONS | REST_MUTATIONS


@pytest.mark.parametrize("mutate", ALL_MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_mistake_is_caught_within_a_thousand_seeds(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)

    assert_is_caught(mutate, range(SEEDS_MAX), ALL_MUTATIONS[mutate])


def assert_is_caught(mutate: Mutate, seeds: Iterable[int], expected: str) -> None:
    caught = next((r for r in map(run_seed, seeds) if not r.ok), None)

    assert caught is not None, f"{mutate.__name__} was not noticed in {SEEDS_MAX} seeds"
    said = str(caught.failure).splitlines()[0]
    print(f"{mutate.__name__} after {caught.seed + 1} seeds: {said}")
    assert re.search(expected, said)
