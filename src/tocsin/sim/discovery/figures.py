"""The experiments behind figures 9 to 14 of paper 001, and five of our own, from one seed.

Ours: the same with this broker's own speed, with the routers in a star, with other deviations of
the times, with shorter lives of cached answers, and with the readings of real hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tocsin.event.instant import NS_PER_S
from tocsin.overlay.discovery.requests import ModelType
from tocsin.sim.discovery.boxes import Bounds
from tocsin.sim.discovery.distribution import (
    balanced,
    geometric,
    times_of,
    uniform_in_space,
    zipf_in_space,
)
from tocsin.sim.discovery.experiment import (
    DIRECT,
    NORMAL,
    SIMILARITY,
    IssuedRequest,
    Outcome,
    Setting,
    network_with,
    register,
    run_requests,
    update,
    watch,
)
from tocsin.sim.discovery.hosts import draw_host_requests, draw_hosts
from tocsin.sim.discovery.network import MEASURED, PAPER, ClientCall, Network
from tocsin.sim.discovery.topology import TOPOLOGIES
from tocsin.sim.discovery.workload import Pools, ResourcePlan, draw_matching

PLACEMENTS = {"balanced": balanced, "geometric": geometric}
COSTS = {costs.name: costs for costs in (PAPER, MEASURED)}
BOTH = (NORMAL, SIMILARITY)
WATCHERS = 20
WATCHED = 20

Series = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of the evaluation is done."""

    resources: int
    requests: int  # of each workload
    similarities: tuple[int, ...]
    few_similarities: tuple[int, ...]  # of our own experiments
    rates: tuple[float, ...]
    registrations: int  # that static continuous requests watch
    updates: int = 50  # of each resource that dynamic continuous requests watch
    cache_s: tuple[float, ...] = (0.0, 1.0, 5.0, 20.0, 100.0)
    matches: tuple[int, ...] = (1, 10, 30, 100, 300)
    matching_requests: int = 200  # for each number of matches
    matching_rates: tuple[float, ...] = (10, 100)


FULL = Scale(
    1_000, 1_000, tuple(range(10, 101, 10)), (10, 50, 100), (10, 50, 100, 150, 200, 400), 1_000
)
QUICK = Scale(
    1_000,
    200,
    (10, 50, 100),
    (10, 100),
    (10, 100, 200),
    200,
    matches=(10, 100),
    matching_requests=50,
)


class Experiments:
    """All settings of one seed, and how each is run. A network is used for all runs on it."""

    def __init__(self, pools: Pools, scale: Scale, seed: int, series: Series | None) -> None:
        self._pools = pools
        self._scale = scale
        self._seed = seed
        self._series = series
        self._networks: dict[tuple[str, str, str, bool], tuple[Network, int]] = {}
        self._drawn: dict[tuple[str, int, bool], tuple[Sequence[Bounds], Any]] = {}
        self._hosts: list[ResourcePlan] = []
        if series:
            self._hosts = draw_hosts(Random(seed), series, len(pools.resources))

    def settings(self) -> Iterator[Setting]:
        """In the order in which they are run."""
        for figure, space, time in (
            ("9", "uniform", "uniform"),
            ("10", "zipf", "uniform"),
            ("11", "uniform", "gaussian"),
        ):
            for similarity in self._scale.similarities:
                for placement in PLACEMENTS:
                    for algorithm in BOTH:
                        yield Setting(
                            figure,
                            algorithm,
                            placement=placement,
                            space=space,
                            time=time,
                            similarity=similarity,
                        )
        yield from self._four_models()
        yield from self._over_matches()
        yield from (Setting("14", each, similarity=50) for each in (*BOTH, DIRECT))
        yield from self._of_our_own()

    def _four_models(self) -> Iterator[Setting]:
        static = Setting("12a", NORMAL, model="static", similarity=100)
        dynamic = Setting("12b", NORMAL, similarity=100)
        for rate in self._scale.rates:
            yield replace(static, topology="central", rate=rate)
            yield replace(static, rate=rate)
            yield replace(dynamic, topology="central", rate=rate)
            yield replace(dynamic, rate=rate)
            yield replace(dynamic, algorithm=SIMILARITY, rate=rate)
            for figure, model in (("12c", "static continuous"), ("12d", "dynamic continuous")):
                for topology in ("central", "path"):
                    yield Setting(figure, NORMAL, topology=topology, model=model, rate=rate)

    def _over_matches(self) -> Iterator[Setting]:
        """Figures 12a and 12b as the paper has them: over how many resources a request finds."""
        for rate in self._scale.matching_rates:
            for matches in self._scale.matches:
                static = Setting("12a", NORMAL, model="static", matches=matches, rate=rate)
                dynamic = Setting("12b", NORMAL, matches=matches, rate=rate)
                for each in (static, dynamic):
                    yield replace(each, topology="central")
                    yield each
                yield replace(dynamic, algorithm=SIMILARITY)

    def _of_our_own(self) -> Iterator[Setting]:
        for cache_s in self._scale.cache_s:
            yield Setting("cache", SIMILARITY, similarity=50, cache_s=cache_s)
        for similarity in self._scale.few_similarities:
            for algorithm in BOTH:
                ours = Setting("speed", algorithm, similarity=similarity)
                yield replace(ours, costs=MEASURED.name)
                for placement in PLACEMENTS:
                    yield replace(ours, figure="star", topology="star", placement=placement)
                for part in (4, 16):
                    yield replace(ours, figure="deviation", time=f"gaussian/{part}")
        if self._series:
            yield from (Setting("hosts", algorithm) for algorithm in BOTH)

    def run(self, setting: Setting) -> Outcome:
        if setting.model == "static continuous":
            return self._static_continuous(setting)
        if setting.model == "dynamic continuous":
            return self._dynamic_continuous(setting)
        network, advertised = self._network(setting)
        done = run_requests(network, setting, self.asked(setting), COSTS[setting.costs])
        return replace(done, advertisement_hops=advertised)

    def _network(self, setting: Setting) -> tuple[Network, int]:
        resources = self._hosts if setting.figure == "hosts" else self._pools.resources
        key = setting.topology, setting.placement, setting.model, setting.figure == "hosts"
        if key not in self._networks:
            topology = TOPOLOGIES[setting.topology]()
            places = PLACEMENTS[setting.placement](len(resources), topology.edges)
            placed = zip(resources, places, strict=True)
            self._networks[key] = network_with(topology, placed, ModelType(setting.model))
        return self._networks[key]

    def asked(self, setting: Setting) -> list[IssuedRequest]:
        """The same requests, places and times for every algorithm, placement and topology."""
        requests, random = self._requests(setting)
        count = len(requests)
        brokers = TOPOLOGIES[setting.topology]().edges
        in_space = zipf_in_space if setting.space == "zipf" else uniform_in_space
        places = in_space(count, brokers, random)
        times = times_of(setting.time, count, count / setting.rate, random)
        return [
            IssuedRequest(f"q{number:04}", *each)
            for number, each in enumerate(zip(places, times, requests, strict=True))
        ]

    def _requests(self, setting: Setting) -> tuple[Sequence[Bounds], Random]:
        """The requests of a workload, drawn once, and the source of chance as it is after that."""
        key = f"{self._seed} {setting.similarity} {setting.space} {setting.time}"
        drawn = key, setting.matches, setting.figure == "hosts"
        random = Random(key)
        if drawn not in self._drawn:
            requests: Sequence[Bounds]
            if setting.figure == "hosts":
                assert self._series is not None
                requests = draw_host_requests(random, self._series, self._scale.requests)
            elif setting.matches:
                count = self._scale.matching_requests
                requests = draw_matching(random, self._pools.resources, setting.matches, count)
            else:
                requests = self._pools.requests(setting.similarity, random)
                requests = requests[: self._scale.requests]
            self._drawn[drawn] = requests, random.getstate()
        requests, state = self._drawn[drawn]
        random.setstate(state)
        return requests, random

    def _watchers(self, brokers: Sequence[str]) -> list[IssuedRequest]:
        """One wide request at each broker: what it finds comes from everywhere."""
        return [
            IssuedRequest(
                f"w{number:02}", brokers[number % len(brokers)], 0, self._pools.block[number % 10]
            )
            for number in range(WATCHERS)
        ]

    def _static_continuous(self, setting: Setting) -> Outcome:
        topology = TOPOLOGIES[setting.topology]()
        network, _ = network_with(topology, [], ModelType.STATIC)
        resources = self._pools.resources[: self._scale.registrations]
        places = balanced(len(resources), topology.edges)
        changes = [
            (_at_ns(number, setting), place, resource.name, register(resource, ModelType.STATIC))
            for number, (resource, place) in enumerate(zip(resources, places, strict=True))
        ]
        watchers = self._watchers(topology.edges)
        return watch(network, setting, watchers, changes, COSTS[setting.costs])

    def _dynamic_continuous(self, setting: Setting) -> Outcome:
        topology = TOPOLOGIES[setting.topology]()
        random = Random(f"{self._seed} updates")
        resources = self._pools.resources[:WATCHED]
        names = [each.name for each in resources]
        placed = dict(zip(names, balanced(WATCHED, topology.edges), strict=True))
        network, _ = network_with(
            topology, ((each, placed[each.name]) for each in resources), ModelType.DYNAMIC
        )
        changes: list[tuple[int, str, str, ClientCall]] = []
        for number in range(WATCHED * self._scale.updates):
            resource = resources[number % WATCHED]
            values = {
                tag: float(random.randint(1, int(high)))
                for tag, (_, high) in resource.advertised.items()
            }
            place = placed[resource.name]
            changes.append(
                (_at_ns(number, setting), place, resource.name, update(resource.name, values))
            )
        watchers = self._watchers(topology.edges)
        return watch(network, setting, watchers, changes, COSTS[setting.costs])


def _at_ns(number: int, setting: Setting) -> int:
    return round(number / setting.rate * NS_PER_S)
