"""A broker is killed in the middle of a flood, after each of its messages: nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sim.searching_worlds import idle
from tocsin.services.link.connection import Connection
from tocsin.sim.faults.crashes import CrashKind
from tocsin.sim.overlay.connections import LinkEnd
from tocsin.sim.overlay_plan import address_of, calm, search
from tocsin.sim.plan import Plan, PublisherPlan, draw_linked
from tocsin.sim.run import Report, Simulation, run_simulation
from tocsin.wire.link.codec import LinkMessage
from tocsin.wire.link.discovery_messages import Advertise
from tocsin.wire.link.messages import Subscribe

CRASH = "a flood is on its way"


def in_a_line(seed: int) -> Plan:
    """Three brokers: what one end floods comes to the other one by the middle."""
    random = Random(f"flood {seed}")
    linked = draw_linked(random, random, 3)
    assert linked.overlay is not None
    overlay = search(calm(linked.overlay), random)
    members = tuple(
        replace(
            member,
            options=replace(member.options, peers=(address_of(number - 1),) if number else ()),
            resources=2,
            requests=1,
            watches=1,
        )
        for number, member in enumerate(overlay.members)
    )
    publisher = PublisherPlan(requests=3, events_max=1, in_flight_max=1, pace_ms=150.0)
    brokers = tuple(
        replace(idle(each), subscriptions=4, publishers=(publisher,)) for each in linked.brokers
    )
    weather = replace(linked.weather, loss=0.0, duplication=0.0, delay_ms_max=5.0)
    return Plan(weather, brokers, replace(overlay, members=members))


def crashed_after(
    sent: int, kind: type[LinkMessage], patch: pytest.MonkeyPatch
) -> tuple[Report, int]:
    """A run in which the middle one is killed when it has sent so many messages of this kind."""
    simulation = Simulation(1, in_a_line(1))
    machine = simulation.sites[1].machine
    send, count = Connection.send, 0

    def counted(self: Connection, message: LinkMessage) -> None:
        nonlocal count
        send(self, message)
        end, process = self.transport, machine.process
        assert isinstance(end, LinkEnd)
        if isinstance(message, kind) and end._host == machine.host and process is not None:
            count += 1
            if count == sent:
                process.later(0, 0, lambda: process.crash(CrashKind.KILL, CRASH))

    with patch.context() as patched:
        patched.setattr(Connection, "send", counted)
        return run_simulation(1, simulation), count


@pytest.mark.parametrize("kind", [Advertise, Subscribe])
def test_a_broker_killed_after_each_message_of_a_flood_loses_nothing(
    kind: type[LinkMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    calm_report, messages = crashed_after(0, kind, monkeypatch)
    assert calm_report.ok, calm_report.failure
    assert messages >= 3

    for sent in range(1, messages + 1):
        report, _ = crashed_after(sent, kind, monkeypatch)
        assert report.ok, f"after {sent} of {messages}: {report.failure}"
        assert report.counters.get(f"crash: {CRASH}") == 1
