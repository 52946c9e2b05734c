"""Linked brokers where everybody signs in: what a link may carry ends when the right ends."""

from __future__ import annotations

from random import Random

import pytest

from sim.link_access_mutations import LINK_ACCESS_MUTATIONS
from sim.mutations import Mutate
from sim.test_mutations import assert_is_caught
from tocsin.sim.plan import draw_plan
from tocsin.sim.run import Report, run_seed

SEEDS_MAX = 1_000
RUNS = 12


def has_principals(seed: int) -> bool:
    plan = draw_plan(Random(seed), seed)
    return plan.overlay is not None and all(each.access for each in plan.brokers)


LINKED = [seed for seed in range(SEEDS_MAX) if has_principals(seed)]

MUST_HAPPEN = {
    "access: a link was refused by its certificate",
    "access: an entry of a neighbour was refused",
    "access: certificate revoked",
    "access: looked at a message of a link",
    "event came over 1 links",
    "event came over 2 links",
}


def test_one_of_four_worlds_with_links_has_principals() -> None:
    assert 20 < len(LINKED) < 50


def test_nothing_crosses_a_link_without_a_right() -> None:
    reports = [run_seed(seed) for seed in LINKED[:RUNS]]

    assert_all_well(reports)
    assert not MUST_HAPPEN - {name for report in reports for name in report.counters}


@pytest.mark.slow
def test_nothing_crosses_a_link_without_a_right_in_a_thousand_seeds() -> None:
    assert_all_well([run_seed(seed) for seed in LINKED])


def assert_all_well(reports: list[Report]) -> None:
    failures = [each.failure for each in reports if not each.ok]

    assert not failures, "\n\n".join(map(str, failures))


def test_one_seed_is_one_run_where_linked_brokers_sign_in() -> None:
    for seed in LINKED[:3]:
        assert run_seed(seed) == run_seed(seed)


@pytest.mark.parametrize("mutate", LINK_ACCESS_MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_mistake_about_rights_to_links_is_caught_within_a_thousand_seeds(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)

    assert_is_caught(mutate, LINKED, LINK_ACCESS_MUTATIONS[mutate])
