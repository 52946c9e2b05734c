"""One workload, a request at a time, and what every broker counts meanwhile.

The same plan is carried out by brokers that are processes linked over TCP. Nothing happens at the
same time as anything else and nothing expires, so both have to count the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from tocsin.overlay.discovery.context import Counters
from tocsin.overlay.discovery.effects import Effect, Finished, Summary
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import ModelType, Request
from tocsin.overlay.region_index import RegionIndex
from tocsin.sim.discovery.boxes import Bounds
from tocsin.sim.discovery.distribution import balanced, uniform_in_space
from tocsin.sim.discovery.experiment import (
    NORMAL,
    SIMILARITY,
    IssuedRequest,
    discover,
    options_for,
    region_of,
    register,
)
from tocsin.sim.discovery.meter import Meter
from tocsin.sim.discovery.network import FREE, MS, ClientCall, Network
from tocsin.sim.discovery.topology import Topology, central_topology, path_topology
from tocsin.sim.discovery.workload import REQUESTS_MIN, ResourcePlan, draw_pools

ALGORITHMS = (NORMAL, SIMILARITY)
CACHE_S = 3_600.0  # longer than any run, so that no answer expires in one and not in the other
REGISTRATION = "registration"

Counts = Mapping[str, int]
"""How many messages of each kind a broker sent, what it looked up, and what it dropped."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of it is done."""

    edges: int
    routers: int
    resources: int
    requests: int
    similarity: int = 50


FULL_SIZES = Sizes(20, 4, 1_000, 1_000)
QUICK_SIZES = Sizes(3, 2, 100, 60, similarity=100)


@dataclass(frozen=True, slots=True)
class Plan:
    """Resources and where they are registered; requests in the order in which they are issued."""

    topology: Topology
    resources: tuple[tuple[ResourcePlan, str], ...]
    asked: tuple[IssuedRequest, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one request; the same in every run."""

    found: int
    messages: int
    shared: bool


@dataclass(frozen=True, slots=True)
class Phase:
    """The registration of all resources, or all requests by one algorithm."""

    name: str
    answers: tuple[Answer, ...]
    counts: Mapping[str, Counts]  # by broker


def draw_plan(sizes: Sizes, seed: int) -> Plan:
    """In full: the resources, requests and places of figure 9, balanced, of this seed."""
    requests = max(sizes.requests, REQUESTS_MIN)
    pools = draw_pools(Random(seed), resources=sizes.resources, requests=requests)
    topology = path_topology(sizes.edges, sizes.routers)
    random = Random(f"{seed} {sizes.similarity} uniform uniform")
    asked = pools.requests(sizes.similarity, random)[: sizes.requests]
    places = uniform_in_space(len(asked), topology.edges, random)
    placed = zip(pools.resources, balanced(sizes.resources, topology.edges), strict=True)
    return Plan(topology, tuple(placed), _in_order(asked, places))


def _in_order(requests: Sequence[Bounds], places: Sequence[str]) -> tuple[IssuedRequest, ...]:
    return tuple(
        IssuedRequest(f"q{number:04}", place, number * MS, bounds)
        for number, (bounds, place) in enumerate(zip(requests, places, strict=True), 1)
    )


def at_one_broker(plan: Plan) -> Plan:
    """The same resources and requests, all at one broker."""
    topology = central_topology()
    [only] = topology.edges
    resources = tuple((resource, only) for resource, _ in plan.resources)
    return Plan(
        topology,
        resources,
        _in_order([each.bounds for each in plan.asked], [only] * len(plan.asked)),
    )


def words_of(bounds: Bounds) -> str:
    """The bounds as a client writes them."""
    conditions = []
    for tag, (low, high) in bounds.items():
        if low > -inf:
            conditions.append(f"{tag} >= {low!r}")
        if high < inf:
            conditions.append(f"{tag} <= {high!r}")
    return " and ".join(conditions)


def simulate(plan: Plan) -> list[Phase]:
    """The registration, then all requests by each algorithm, in virtual time that costs nothing."""
    network = Network(plan.topology, options_for(NORMAL, CACHE_S), RegionIndex)
    before = _counted(network)
    for resource, broker in plan.resources:
        network.call(0, broker, register(resource, ModelType.DYNAMIC))
    network.run(FREE, Meter())
    phases = [Phase(REGISTRATION, (), counted_since(before, _counted(network)))]
    for algorithm in ALGORITHMS:
        before = _counted(network)
        answers = _ask_all(network, plan.asked, algorithm, options_for(algorithm, CACHE_S))
        phases.append(Phase(algorithm, answers, counted_since(before, _counted(network))))
    return phases


def _ask_all(
    network: Network, asked: Sequence[IssuedRequest], algorithm: str, options: DiscoveryOptions
) -> tuple[Answer, ...]:
    network.use(options)
    meter = _AnswerMeter()
    begin_ns = network.now_ns + MS
    for each in asked:
        # An id is used once: what the algorithm before it left is still known.
        request_id = f"{algorithm} {each.request_id}"
        request = Request(request_id, ModelType.DYNAMIC, region_of(each.bounds))
        at_ns = begin_ns + each.at_ns
        meter.issue(request_id, each.broker, at_ns)
        network.call(at_ns, each.broker, ClientCall(discover(request), request_id))
    network.run(FREE, meter)
    return tuple(
        Answer(summary.found, summary.messages, summary.shared)
        for summary in (meter.summaries[f"{algorithm} {each.request_id}"] for each in asked)
    )


@dataclass(slots=True)
class _AnswerMeter(Meter):
    """Keeps what the answers say too."""

    summaries: dict[str, Summary] = field(default_factory=dict)

    def performed(self, broker: str, effect: Effect, at_ns: int) -> None:
        Meter.performed(self, broker, effect, at_ns)
        if isinstance(effect, Finished):
            self.summaries[effect.request_id] = effect.summary


def _counted(network: Network) -> dict[str, Counts]:
    return {name: plain_counts(core.counters.plain()) for name, core in network.cores.items()}


def plain_counts(counters: Mapping[str, object]) -> dict[str, int]:
    """A broker's counters, as it has them or as it shows them, with the sum of what it dropped."""
    found = {}
    for name in Counters.__dataclass_fields__:
        value = counters.get(name, 0)
        parts = value.values() if isinstance(value, Mapping) else (value,)
        found[name] = sum(part for part in parts if isinstance(part, int))
    return found


def counted_since(
    before: Mapping[str, Counts], after: Mapping[str, Counts]
) -> dict[str, dict[str, int]]:
    return {
        broker: {name: count - before[broker][name] for name, count in counts.items()}
        for broker, counts in after.items()
    }


def in_total(counts: Mapping[str, Counts]) -> dict[str, int]:
    """Of all brokers."""
    total: dict[str, int] = {}
    for each in counts.values():
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total


def differences(expected: Sequence[Phase], found: Sequence[Phase]) -> list[str]:
    """What is not the same, in words."""
    words = []
    for one, other in zip(expected, found, strict=True):
        for broker, counts in one.counts.items():
            for name, count in counts.items():
                counted = other.counts[broker][name]
                if counted != count:
                    words.append(f"{one.name}, {broker}, {name}: {counted:,}, not {count:,}")
        for number, (answer, given) in enumerate(zip(one.answers, other.answers, strict=True), 1):
            if answer != given:
                words.append(f"{one.name}, request {number}: {given}, not {answer}")
    return words
