"""Worlds in which everybody signs in: nobody gets, reads or stores anything without a right."""

from __future__ import annotations

from random import Random

import pytest

from sim.access_mutations import (
    ACCESS_MUTATIONS,
    send_letters_to_whoever_lost_the_right,
    withhold_nothing_from_boxes,
)
from sim.mutations import Mutate
from sim.test_mutations import assert_is_caught
from tocsin.sim.plan import draw_plan
from tocsin.sim.run import Report, run_seed

SEEDS_MAX = 1_000


def has_access(seed: int) -> bool:
    """And brokers that are not linked: of those, test_link_access_seeds.py."""
    plan = draw_plan(Random(seed), seed)
    return plan.overlay is None and any(each.access is not None for each in plan.brokers)


SIGNING_IN = [seed for seed in range(SEEDS_MAX) if has_access(seed)]
RUNS = 24

# Not mere names: each is counted where the thing happens.
MUST_HAPPEN = {
    "access: a performance client was refused",
    "access: a publisher was refused",
    "access: a reliable message was refused",
    "access: a rule stays over",
    "access: a token stays over",
    "access: another issuer's token revoked",
    "access: events refused",
    "access: manage refused",
    "access: no rule: DiskFull",
    "access: no token: DiskFull",
    "access: publish refused",
    "access: read refused",
    "access: refused by blackboard socket",
    "access: refused by event socket",
    "access: rule added",
    "access: rule found after a crash",
    "access: rule is over",
    "access: rule not ended: DiskFull",
    "access: sign-in refused",
    "access: somebody tried to grant himself rights",
    "access: stream ended",
    "access: subscribe refused",
    "access: the end of a token outlived a crash",
    "access: the end of a token was lost with a crash",
    "access: the moment of an end",
    "access: token found after a crash",
    "access: token is over",
    "access: token made",
    "access: token not ended: DiskFull",
    "access: withheld, and counted",
}


def test_an_eighth_of_all_seeds_has_principals() -> None:
    assert 100 < len(SIGNING_IN) < 160


def test_nothing_is_violated_where_everybody_signs_in() -> None:
    assert_all_well([run_seed(seed) for seed in SIGNING_IN[:RUNS]])


@pytest.mark.slow
def test_everything_that_can_become_of_rights_does() -> None:
    reports = [run_seed(seed) for seed in SIGNING_IN]

    assert_all_well(reports)
    assert not MUST_HAPPEN - {name for report in reports for name in report.counters}


def assert_all_well(reports: list[Report]) -> None:
    failures = [each.failure for each in reports if not each.ok]

    assert not failures, "\n\n".join(map(str, failures))


def test_one_seed_is_one_run_with_principals_too() -> None:
    for seed in SIGNING_IN[:3]:
        assert run_seed(seed) == run_seed(seed)


# Runs notice these rarely: after more than half a minute of seeds.
RARE = {withhold_nothing_from_boxes, send_letters_to_whoever_lost_the_right}
MUTATIONS = [
    pytest.param(each, marks=[pytest.mark.slow] if each in RARE else [], id=each.__name__)
    for each in ACCESS_MUTATIONS
]


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_a_mistake_about_rights_is_caught_within_a_thousand_seeds(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)

    assert_is_caught(mutate, SIGNING_IN, ACCESS_MUTATIONS[mutate])
