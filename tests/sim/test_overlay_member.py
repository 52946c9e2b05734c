"""A simulated broker's part in an overlay begins where that of a real one does."""

from __future__ import annotations

import pytest

from tocsin.broker.port import BrokerPort
from tocsin.services.link.identity import Ids, ids_of
from tocsin.sim.faults.crashes import CrashKind
from tocsin.sim.overlay import member
from tocsin.sim.run import Simulation

SEED = 3992  # of an overlay
SOON_S = 0.2


def test_no_link_begins_in_a_process_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(SEED)
    machines = [site.machine for site in simulation.sites]
    stopped: list[str] = []

    async def ids_as_it_stops(port: BrokerPort) -> Ids:
        ids = await ids_of(port)
        (machine,) = (each for each in machines if each.node and each.node.port is port)
        assert machine.process is not None
        machine.process.crash(CrashKind.STOP, "its ids were written")
        stopped.append(machine.host)
        return ids

    monkeypatch.setattr(member, "ids_of", ids_as_it_stops)
    for site in simulation.sites:
        site.start(0.0)
    assert simulation.overlay is not None
    simulation.overlay.start()
    while simulation.world.elapsed_s < SOON_S:
        simulation.world.step()

    assert len(stopped) >= len(machines)
    assert all(each.services is None or each.services.links is None for each in machines)
    for site in simulation.sites:
        site.close()
