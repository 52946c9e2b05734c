"""What an overlay of a size costs: to register and to subscribe, to ask, and when it breaks.

Everything but `bytes_a_row` is counted, or is virtual time with the costs of `MEASURED` and
`MessageCosts`: two runs of one seed are equal.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from typing import Any

from tocsin.event.filter_text import parse_filter
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.discovery.requests import ModelType
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.sim.discovery.distribution import uniform_in_space, uniform_in_time
from tocsin.sim.discovery.experiment import (
    NORMAL,
    SIMILARITY,
    IssuedRequest,
    Setting,
    network_with,
    run_requests,
)
from tocsin.sim.discovery.meter import Meter
from tocsin.sim.discovery.network import MEASURED, Network
from tocsin.sim.discovery.summary import summarise
from tocsin.sim.discovery.topology import Topology, hub_topology, tree_topology
from tocsin.sim.discovery.workload import draw_matching, draw_resources
from tocsin.sim.scale.routing import MessageCosts, RoutingNetwork

Row = dict[str, Any]

NS_PER_MS = 1_000_000
FORMS: dict[str, Callable[[int], Topology]] = {"tree": tree_topology, "star": hub_topology}
REQUESTS = 100  # half of them asked before, by a client of another broker
FOUND_SHARE = 100  # a request finds one resource in so many
RATE = 10.0
BREAK_ROWS_MAX = 400_000  # the middle broker is taken out of overlays with no more rows
REPORTED_ROWS_MAX = 400_000  # where a subscription holds is kept for every broker that it passes
SITES = 100
UNLIMITED = 1 << 60  # how far it goes is what is measured

Memory = Callable[[], int]
"""How many bytes the process has. Reading it is for whoever runs this."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of resources or of subscriptions."""

    form: str
    brokers: int
    entries: int

    @property
    def topology(self) -> Topology:
        return FORMS[self.form](self.brokers)


def discovery_growth(size: Size, seed: int, memory: Memory) -> Row:
    """Resources are registered, requests made, and a link and the middle broker fail."""
    topology = size.topology
    random = Random(f"{seed} {size.entries}")
    resources = draw_resources(random, size.entries)
    places = uniform_in_space(size.entries, topology.edges, random)
    before = memory()
    network, hops = network_with(topology, zip(resources, places, strict=True), ModelType.DYNAMIC)
    rows = size.brokers * size.entries
    assert all(len(core.advertisements) == size.entries for core in network.cores.values())
    found = max(1, size.entries // FOUND_SHARE)
    half = draw_matching(random, resources, found, REQUESTS // 2)
    asked = [
        IssuedRequest(f"q{number}", *each)
        for number, each in enumerate(
            zip(
                uniform_in_space(REQUESTS, topology.edges, random),
                uniform_in_time(REQUESTS, REQUESTS / RATE),
                [*half, *half],
                strict=True,
            )
        )
    ]
    row: Row = {"form": size.form, "brokers": size.brokers, "resources": size.entries}
    row |= {"rows": rows, "register_hops": hops, "bytes_a_row": (memory() - before) / rows}
    for algorithm in (NORMAL, SIMILARITY):
        setting = Setting("scale", algorithm, costs=MEASURED.name, topology=size.form, rate=RATE)
        (cost,) = summarise(run_requests(network, setting, asked, MEASURED).records)
        name = algorithm.lower()
        row[f"{name}_ms"] = cost["completed_ms"]
        row[f"{name}_requests"] = cost["subscription_hops"] / REQUESTS
        row[f"{name}_packages"] = cost["publication_hops_packaged"] / REQUESTS
        row[f"{name}_ends"] = cost["end_markers"] / REQUESTS
    return row | _break_discovery(network, topology, rows)


def _break_discovery(network: Network, topology: Topology, rows: int) -> Row:
    """Messages and time until every table is right again."""
    middle, next_to_it = topology.links[0]
    found: Row = {}
    total = len(network.cores[middle].advertisements)
    found |= _until_idle(network, "cut", partial(network.disconnect, middle, next_to_it))
    found |= _until_idle(network, "return", partial(network.connect, middle, next_to_it))
    assert {len(core.advertisements) for core in network.cores.values()} == {total}
    if rows > BREAK_ROWS_MAX:
        return found | dict.fromkeys(("standby_messages", "standby_ms"))
    neighbours = topology.neighbours()[middle]
    lost = sum(each.last_hop == "" for each in network.cores[middle].advertisements.entries())
    found |= _until_idle(network, "standby", partial(_use_standby, network, middle, neighbours))
    left = [len(core.advertisements) for each, core in network.cores.items() if each != middle]
    assert {*left} == {total - lost}
    return found


def _use_standby(network: Network, middle: str, neighbours: tuple[str, ...]) -> None:
    """The middle broker is left alone, and its neighbours connect to one of them."""
    for neighbour in neighbours:
        network.disconnect(middle, neighbour)
    for neighbour in neighbours[1:]:
        network.connect(neighbours[0], neighbour)


def _until_idle(network: Network, name: str, act: Callable[[], None]) -> Row:
    meter = Meter()
    begin_ns = network.now_ns = network.idle_ns
    act()
    network.run(MEASURED, meter)
    ended_ns = network.idle_ns
    return {
        f"{name}_messages": meter.advertisement_hops,
        f"{name}_ms": (ended_ns - begin_ns) / NS_PER_MS,
    }


@lru_cache
def _parsed(text: str) -> Any:
    return parse_filter(text)


def draw_filter(random: Random) -> str:
    """Events of one of 100 sites, most of few; half of them of a high load, a third of a system."""
    text = f"topic site{min(int(random.paretovariate(1)), SITES)}/**"
    if random.random() < 0.5:
        text += f" and load >= {10 * random.randrange(1, 10)}"
    if random.random() < 0.3:
        text += f" and system = {random.choice(('Linux', 'AIX', 'Solaris'))}"
    return text


def routing_growth(size: Size, seed: int, memory: Memory, *, covering: bool) -> Row:
    """Brokers join one by one, clients subscribe, and a link and the middle broker fail."""
    topology = size.topology
    rows_max = size.brokers * size.entries
    reports = covering or rows_max <= REPORTED_ROWS_MAX
    options = RoutingOptions(
        covering=covering,
        report_reached=reports,
        entry_bytes_max=UNLIMITED,
        subscriptions_per_neighbour_max=UNLIMITED,
        advertisements_per_neighbour_max=UNLIMITED,
        entry_bytes_per_neighbour_max=UNLIMITED,
    )
    network = RoutingNetwork(topology, options, MessageCosts())
    joined = network.take_traffic()
    random = Random(f"{seed} {size.entries}")
    before = memory()
    for number in range(size.entries):
        place = random.choice(topology.edges)
        network.subscribe(place, f"s{number}", _parsed(draw_filter(random)))
    taken_ns = network.run()
    asked = network.take_traffic()
    rows = [router.sizes()[1] for router in network.routers.values()]
    middle, next_to_it = topology.links[0]
    row: Row = {"form": size.form, "brokers": size.brokers, "subscriptions": size.entries}
    row |= {
        "covering": covering,
        "join_messages": joined.total,
        "subscribe_messages": asked.subscriptions,
        "report_messages": asked.reports if reports else None,
        "subscribe_ms": taken_ns / NS_PER_MS,
        "busiest_messages": asked.busiest,
        "rows": sum(rows),
        "rows_max": max(rows),
        "bytes_a_row": (memory() - before) / sum(rows),
    }
    network.disconnect(middle, next_to_it)
    row |= _quiet(network, "cut")
    network.now_ns += NS_PER_S
    network.connect(middle, next_to_it)
    row |= _quiet(network, "return")
    assert [router.sizes()[1] for router in network.routers.values()] == rows
    if not covering and rows_max > BREAK_ROWS_MAX:
        return row | dict.fromkeys(("standby_messages", "standby_ms"))
    neighbours = network.remove(middle)
    for neighbour in neighbours[1:]:
        network.connect(neighbour, neighbours[0])
    row |= _quiet(network, "standby")
    gc.collect()
    return row


def _quiet(network: RoutingNetwork, name: str) -> Row:
    taken_ns = network.run()
    return {
        f"{name}_messages": network.take_traffic().total,
        f"{name}_ms": taken_ns / NS_PER_MS,
    }
