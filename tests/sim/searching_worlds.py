"""Worlds in which hardly anything happens but discovery, so that a run is short."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tocsin.event.instant import NS_PER_MS, NS_PER_S
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.sim.overlay_plan import calm, search
from tocsin.sim.plan import BrokerPlan, Plan, draw_linked


def searching(
    seed: int, *, brokers: int | None = None, expiry_ms: int = 500, timeout_ms: int = 2_000
) -> Plan:
    """Four to seven brokers that stay linked, and clients whose requests cover each other."""
    random = Random(f"searching {seed}")
    linked = draw_linked(random, random, brokers or random.randint(4, 7))
    assert linked.overlay is not None
    overlay = search(calm(linked.overlay), random)
    members = tuple(
        replace(
            member,
            discovery=DiscoveryOptions(
                cache_expiry_ns=expiry_ms * NS_PER_MS,
                guard_ns=NS_PER_S // 4,
                timeout_ns=timeout_ms * NS_PER_MS,
            ),
            requests=random.randint(6, 12),
            watches=0,
        )
        for member in overlay.members
    )
    weather = replace(linked.weather, loss=0.0, delay_ms_max=40.0)
    machines = tuple(map(idle, linked.brokers))
    return Plan(weather, machines, replace(overlay, members=members))


def idle(plan: BrokerPlan) -> BrokerPlan:
    """No client but those of discovery, and no fault."""
    return replace(
        plan,
        crashes=(),
        publishers=(),
        sinks=plan.sinks[:1],
        subscriptions=0,
        boxes=0,
        streams=0,
        changes=0,
        state_changes=0,
        soap_publishers=(),
        soap_subscribers=(),
        sockets=(),
        clock_set=0.0,
        damage=0.0,
        disk_full_at_ms=None,
        sync_fails_at_ms=None,
    )
