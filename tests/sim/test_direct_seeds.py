"""Results that go straight to whoever asked, by connections that have broken unnoticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sim.searching_worlds import searching
from tocsin.services.link.direct import DirectResults
from tocsin.sim.clients.discovery import Seeker
from tocsin.sim.overlay.connections import LinkEnd
from tocsin.sim.overlay.member import links_of_process
from tocsin.sim.plan import Plan
from tocsin.sim.run import Report, Simulation, run_simulation

SEEDS = range(4)


def directly(seed: int) -> Plan:
    """A world in which hardly anything happens but discovery; results go directly."""
    plan = searching(seed)
    assert plan.overlay is not None
    members = tuple(
        replace(each, discovery=replace(each.discovery, direct=True))
        for each in plan.overlay.members
    )
    return replace(plan, overlay=replace(plan.overlay, members=members))


def run_with_broken_connections(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Report, int]:
    """All that results went by break just before the clients ask whose answers must be whole; how
    many that were."""
    simulation = Simulation(seed, directly(seed))
    broken: set[LinkEnd] = set()
    ask = Seeker.ask_in_calm

    def break_all() -> None:
        for site in simulation.sites:
            links = links_of_process(site.machine.process)
            assert links is not None
            for each in links._direct._outgoing.values():
                end = each._transport
                assert isinstance(end, LinkEnd)
                assert end.other is not None
                end._is_broken = end.other._is_broken = True
                broken.add(end)

    def ask_then(seeker: Seeker) -> None:
        if not broken:
            break_all()
        ask(seeker)

    with monkeypatch.context() as patch:
        patch.setattr(Seeker, "ask_in_calm", ask_then)
        return run_simulation(seed, simulation), len(broken)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_whole_although_connections_broke(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, broken = run_with_broken_connections(seed, monkeypatch)

    assert report.ok, report.failure
    assert broken


def test_a_broker_that_does_not_send_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DirectResults, "_send_again", lambda *_: None)

    failures = [str(run_with_broken_connections(seed, monkeypatch)[0].failure) for seed in SEEDS]

    assert any("brokers that answer directly" in each for each in failures)
