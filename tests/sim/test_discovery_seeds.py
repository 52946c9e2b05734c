"""Worlds full of discovery: their invariants hold, and the known mistakes show in them (A1 to A8).

The seed beside a mistake is the first one that shows it, counted from 0.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from overlay import mistakes
from overlay.mistakes import make_all
from sim.searching_worlds import searching
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.sim.clients import discovery
from tocsin.sim.overlay.overlay import Overlay
from tocsin.sim.run import Report, Simulation, run_simulation
from tocsin.wire.link.discovery_messages import DiscoveryMessage

SEEDS_MAX = 100  # within which each mistake shows

MISTAKES: dict[type[OneTimeRequests], int] = {
    mistakes.A1PayloadPartRunsAlways: 0,
    mistakes.A2BackOverTheSameLink: 0,
    mistakes.A3NoWayBack: 0,
    mistakes.A4Unfiltered: 0,
    mistakes.A5LocalResultsDoNotCount: 4,
    mistakes.A5ResultsAtTheHostOnly: 0,
    mistakes.A7EachByItsOwnClock: 0,
    mistakes.A8ThePreviousHopGoesOnAlone: 3,
}


def run(seed: int) -> Report:
    return run_simulation(seed, Simulation(seed, searching(seed)))


def overlay_of(simulation: Simulation) -> Overlay:
    assert simulation.overlay is not None
    return simulation.overlay


def assert_holds(seeds: range) -> None:
    covered = 0
    for seed in seeds:
        simulation = Simulation(seed, searching(seed))
        report = run_simulation(seed, simulation)
        assert report.ok, report.failure
        covered += overlay_of(simulation).discovery.covered
    assert covered > 10 * len(seeds)


def is_found(seed: int) -> bool:
    """By a check, and not because what is put back does not fit the code any more."""
    failure = str(run(seed).failure or "no").splitlines()[0]
    return re.match(r"seed \d+: (\d+: |the discovery of )", failure) is not None


def test_where_much_is_discovered_every_invariant_holds() -> None:
    assert_holds(range(6))


@pytest.mark.slow
def test_where_much_is_discovered_every_invariant_holds_in_many_worlds() -> None:
    assert_holds(range(6, 300))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_two_dozen_brokers_discover(seed: int) -> None:
    report = run_simulation(seed, Simulation(seed, searching(seed, brokers=24)))

    assert report.ok, report.failure


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_known_mistake_shows(
    mistake: type[OneTimeRequests], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all(mistake, monkeypatch)

    assert any(is_found(seed) for seed in range(MISTAKES[mistake], MISTAKES[mistake] + 10))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_known_mistake_shows_from_the_first_seed_on(
    mistake: type[OneTimeRequests], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all(mistake, monkeypatch)

    assert any(is_found(seed) for seed in range(SEEDS_MAX))


def overtaking(patch: pytest.MonkeyPatch) -> None:
    """A6: some messages are taken after those that came later."""
    receive = CoreDriver.receive

    def late(self: CoreDriver, neighbour: str, message: DiscoveryMessage) -> None:
        if self._port.runtime.jitter() < 0.2:
            self._port.runtime.call_later(0.05, lambda: receive(self, neighbour, message))
        else:
            receive(self, neighbour, message)

    patch.setattr(CoreDriver, "receive", late)


def test_messages_that_overtake_each_other_show(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaking(monkeypatch)

    report = run(0)

    assert "7: " in str(report.failure)


def test_without_an_age_the_run_is_that_of_the_normal_algorithm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Invariant 2. A request that names an age is longer there, and arrives in other pieces."""
    monkeypatch.setattr(discovery, "with_more", lambda wanted, random: wanted)
    for seed in range(3):
        plan = searching(seed, expiry_ms=0)
        assert plan.overlay is not None
        members = tuple(
            replace(each, discovery=replace(each.discovery, similarity=False))
            for each in plan.overlay.members
        )
        normal = replace(plan, overlay=replace(plan.overlay, members=members))

        reports = [run_simulation(seed, Simulation(seed, each)) for each in (plan, normal)]

        assert all(report.ok for report in reports), [report.failure for report in reports]
        assert reports[0].trace_hash == reports[1].trace_hash
        assert reports[0].steps == reports[1].steps
