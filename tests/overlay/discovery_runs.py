"""Random runs of similarity forwarding, from a seed, and what must hold in each of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from math import inf
from random import Random

import msgspec

from overlay.network import MS, CoreFactory, Network, S
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import ModelType, Registration, Request
from tocsin.overlay.region import Region, admits, overlaps
from tocsin.sim.checks.checked_core import CheckedCore
from tocsin.sim.checks.discovery import DiscoveryCheck

TAGS = "abcde"
OPTIONS = DiscoveryOptions(cache_expiry_ns=5 * S, guard_ns=1 * S, timeout_ns=10 * S)
DELAY_MS = (1, 40)


@dataclass(frozen=True)
class Plan:
    """A tree, resources and requests with the time of each after the start."""

    edges: list[tuple[str, str]]
    resources: list[tuple[str, Registration]]
    requests: list[tuple[int, str, Request]]
    updates: list[tuple[int, str, str, dict[str, int]]] = field(default_factory=list)


def make_plan(seed: int, *, spread_ms: int = 300, with_updates: bool = False) -> Plan:
    random = Random(seed)
    names = [f"b{number}" for number in range(random.randint(2, 12))]
    edges = [(names[random.randrange(n)], names[n]) for n in range(1, len(names))]
    resources = [
        (random.choice(names), _registration(random, f"r{number}"))
        for number in range(random.randint(0, 25))
    ]
    regions: list[Region] = []
    requests = []
    for number in range(random.randint(2, 24)):
        if regions and random.random() < 0.6:
            region = _narrowed(random, random.choice(regions))
        else:
            region = _request(random)
        regions.append(region)
        request = Request(f"q{number}", ModelType.DYNAMIC, region)
        # Most come while others are on their way, some when those are answered.
        at_ns = random.choice((random.randint(0, spread_ms), spread_ms * 4)) * MS
        requests.append((at_ns, random.choice(names), request))
    updates = []
    if with_updates:
        for _ in range(random.randint(0, 60)):
            if not resources:
                break
            broker, registration = random.choice(resources)
            values = _values(random, registration.region)
            at_ns = random.randint(0, 12_000) * MS
            updates.append((at_ns, broker, registration.resource_id, values))
    return Plan(edges, resources, requests, updates)


def stopping_early(plan: Plan, seed: int) -> Plan:
    """The same, and every other request wants only the first ones."""
    random = Random(f"first {seed}")
    requests = [
        (at_ns, broker, replace(request, first=random.choice((0, random.randint(1, 4)))))
        for at_ns, broker, request in plan.requests
    ]
    return replace(plan, requests=requests)


def _registration(random: Random, name: str) -> Registration:
    tags = random.sample(TAGS, random.randint(2, 5))
    region = Region({(tag, "n"): (-inf, float(random.randint(1, 100))) for tag in tags})
    return Registration(name, ModelType.DYNAMIC, region, _values(random, region))


def _values(random: Random, region: Region) -> dict[str, int]:
    found = {}
    for (tag, _), bound in region.bounds.items():
        assert not isinstance(bound, str)
        found[tag] = random.randint(1, int(bound[1]))
    return found


def _request(random: Random) -> Region:
    tags = ["a", *random.sample(TAGS[1:], random.randint(0, 1))]
    return Region({(tag, "n"): (float(random.randint(1, 40)), inf) for tag in tags})


def _narrowed(random: Random, wide: Region) -> Region:
    """The same, or a part of it."""
    bounds = dict(wide.bounds)
    for key, bound in wide.bounds.items():
        assert not isinstance(bound, str)
        if random.random() < 0.5:
            bounds[key] = (bound[0] + random.randint(0, 10), bound[1])
    if random.random() < 0.3:
        bounds.setdefault((random.choice(TAGS), "n"), (float(random.randint(1, 20)), inf))
    return Region(bounds)


def expected(plan: Plan, request: Request) -> list[str]:
    """What the request finds if nothing changes."""
    return sorted(
        registration.resource_id
        for _, registration in plan.resources
        if overlaps(request.region, registration.region)
        and admits(request.region, registration.values)
    )


def run(
    plan: Plan,
    seed: int,
    *,
    options: DiscoveryOptions = OPTIONS,
    make_core: CoreFactory | None = None,
    keeps_order: bool = True,
) -> Network:
    """One run. What the check of the simulator finds wrong is in the network's `problems`."""
    problems: list[str] = []
    check = DiscoveryCheck(problems.append)
    make_core = make_core or partial(CheckedCore, check=check)
    network = Network(plan.edges, options, seed, DELAY_MS, keeps_order, make_core, problems)
    for broker, registration in plan.resources:
        network.register_it(broker, registration)
    network.settle()
    start = network.started_ns = network.now_ns = network.now_ns + S
    for at_ns, broker, request in plan.requests:
        network.at(start + at_ns, lambda b=broker, r=request: network.discover_it(b, r))
    for at_ns, broker, resource_id, values in plan.updates:
        network.at(
            start + at_ns,
            lambda b=broker, r=resource_id, v=values: network.update(b, r, v),
        )
    network.run_until(start + 40 * S)
    return network


def problems_of(plan: Plan, network: Network) -> list[str]:
    """Every invariant that does not hold of a run without changes."""
    found = list(network.problems)
    for _, _, request in plan.requests:
        name, want = request.request_id, expected(plan, request)
        have = network.found(name)
        if request.first:
            is_right = set(have) <= set(want) and len(have) == min(request.first, len(want))
        else:
            is_right = have == want
        if not is_right:
            found.append(f"1: {name} wants {want} and has {have}")
        if name not in network.finished:
            found.append(f"9: {name} did not end")
        elif network.finished[name].incomplete:
            found.append(f"9: {name} is incomplete: {network.finished[name].incomplete}")
    some_stop_early = any(request.first for _, _, request in plan.requests)
    for name, core in network.cores.items():
        dropped = () if some_stop_early else core.counters.dropped.keys() - {"result known"}
        if core.one_time.paths or dropped:
            found.append(f"8: {name} keeps {core.tables()['sizes']}, {core.counters.dropped}")
    if len(network.trace) != sum(core.counters.received for core in network.cores.values()):
        found.append("7: some message was neither received nor dropped")
    return found


def trace_hash(network: Network) -> str:
    parts = [(sent.at_ns, sent.sender, sent.receiver, sent.message) for sent in network.trace]
    return sha256(msgspec.msgpack.encode(parts)).hexdigest()
