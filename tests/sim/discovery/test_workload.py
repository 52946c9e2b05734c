"""Workloads of discovery requests: exact similarity, and nothing but the seed decides."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tocsin.event.instant import NS_PER_S
from tocsin.overlay.discovery.similarity import block_sizes, similarity
from tocsin.sim.discovery.boxes import Bounds
from tocsin.sim.discovery.distribution import (
    balanced,
    gaussian_in_time,
    geometric,
    uniform_in_time,
    zipf_in_space,
)
from tocsin.sim.discovery.experiment import region_of
from tocsin.sim.discovery.topology import Topology, path_topology, star_topology
from tocsin.sim.discovery.workload import Pools, ResourcePlan, draw_pools


@pytest.fixture(scope="module")
def pools() -> Pools:
    return draw_pools(Random(1), requests=200)


def finds(request: Bounds, resource: ResourcePlan) -> bool:
    return all(
        tag in resource.values and low <= resource.values[tag] <= high
        for tag, (low, high) in request.items()
    )


def meets(request: Bounds, resource: ResourcePlan) -> bool:
    return all(
        tag in resource.advertised
        and low <= resource.advertised[tag][1]
        and resource.advertised[tag][0] <= high
        for tag, (low, high) in request.items()
    )


@pytest.mark.parametrize("percent", range(10, 101, 10))
def test_a_workload_has_exactly_the_similarity_that_is_asked_for(
    pools: Pools, percent: int
) -> None:
    requests = [region_of(each) for each in pools.requests(percent, Random(2))]

    assert len(requests) == 200
    assert block_sizes(requests) == [2 * percent]
    assert similarity(requests) == percent / 100


@pytest.mark.parametrize("percent", [10, 50, 100])
def test_as_many_requests_find_something_as_are_similar(pools: Pools, percent: int) -> None:
    requests = pools.requests(percent, Random(2))

    valid = [each for each in requests if any(finds(each, host) for host in pools.resources)]

    assert len(valid) == 2 * percent


def test_the_mean_number_of_advertisements_met_changes_little(pools: Pools) -> None:
    means = []
    for percent in range(10, 101, 10):
        requests = pools.requests(percent, Random(2))
        met = sum(meets(each, host) for each in requests for host in pools.resources)
        means.append(met / len(requests))

    assert max(means) < 1.2 * min(means)


def test_a_value_lies_in_the_range_that_its_resource_advertises(pools: Pools) -> None:
    for resource in pools.resources:
        assert resource.values.keys() == resource.advertised.keys()
        assert all(
            low <= resource.values[tag] <= high for tag, (low, high) in resource.advertised.items()
        )
        assert 2 <= len(resource.values) <= 5


def test_a_seed_gives_the_same_workload_again() -> None:
    one, other = (draw_pools(Random(7), requests=200) for _ in range(2))

    assert one == other
    assert one.requests(40, Random(3)) == other.requests(40, Random(3))


@pytest.mark.parametrize("topology", [path_topology(), star_topology()])
def test_a_topology_is_a_tree_of_24_brokers(topology: Topology) -> None:
    neighbours = topology.neighbours()
    reached = {"e01"}
    while more := {each for one in reached for each in neighbours[one]} - reached:
        reached |= more

    assert len(topology.brokers) == 24
    assert reached == set(topology.brokers)
    assert len(topology.links) == 23
    assert all(len(neighbours[edge]) == 1 for edge in topology.edges)


def test_resources_are_placed_as_in_figure_7a() -> None:
    brokers = path_topology().edges

    even, uneven = Counter(balanced(1_000, brokers)), Counter(geometric(1_000, brokers))

    assert set(even.values()) == {50}
    assert [uneven[broker] for broker in brokers[:5]] == [333, 223, 148, 99, 66]
    assert sum(uneven.values()) == 1_000


def test_most_requests_of_a_zipf_workload_begin_at_few_brokers() -> None:
    counts = Counter(zipf_in_space(10_000, path_topology().edges, Random(1))).most_common()

    assert counts[0][1] == pytest.approx(2 * counts[1][1], rel=0.15)
    assert counts[0][1] == pytest.approx(20 * counts[-1][1], rel=0.4)


def test_gaussian_requests_crowd_in_the_middle_and_none_is_outside() -> None:
    times = gaussian_in_time(1_000, 100.0, Random(1))

    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= 100 * NS_PER_S
    assert sum(25 * NS_PER_S <= each <= 75 * NS_PER_S for each in times) > 900
    assert uniform_in_time(4, 100.0) == [0, 25 * NS_PER_S, 50 * NS_PER_S, 75 * NS_PER_S]
