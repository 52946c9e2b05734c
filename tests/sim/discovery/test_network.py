"""Discovery in a network of brokers: right answers, and the same cost in every run."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sim.discovery.test_workload import finds
from tocsin.overlay.discovery.requests import ModelType
from tocsin.sim.discovery.distribution import balanced, uniform_in_space, uniform_in_time
from tocsin.sim.discovery.experiment import (
    DIRECT,
    NORMAL,
    SIMILARITY,
    IssuedRequest,
    Outcome,
    Record,
    Setting,
    network_with,
    run_requests,
)
from tocsin.sim.discovery.network import MEASURED, PAPER, Costs
from tocsin.sim.discovery.topology import path_topology
from tocsin.sim.discovery.workload import Pools, draw_pools

REQUESTS = 60
SETTING = Setting("9", NORMAL, similarity=60)


@pytest.fixture(scope="module")
def pools() -> Pools:
    return draw_pools(Random(5), resources=300, requests=200)


def asked(pools: Pools, percent: int = 60) -> list[IssuedRequest]:
    random = Random(6)
    requests = pools.requests(percent, random)[:REQUESTS]
    places = uniform_in_space(REQUESTS, path_topology().edges, random)
    times = uniform_in_time(REQUESTS, 6.0)
    return [
        IssuedRequest(f"q{number}", *each)
        for number, each in enumerate(zip(places, times, requests, strict=True))
    ]


def run(pools: Pools, algorithm: str, *, cache_s: float = 100.0, costs: Costs = PAPER) -> Outcome:
    topology = path_topology()
    places = balanced(len(pools.resources), topology.edges)
    network, _ = network_with(
        topology, zip(pools.resources, places, strict=True), ModelType.DYNAMIC
    )
    setting = replace(SETTING, algorithm=algorithm, cache_s=cache_s)
    return run_requests(network, setting, asked(pools), costs)


def total(outcome: Outcome, column: str) -> int:
    return sum(record[column] for record in outcome.records)


def costs_of(outcome: Outcome) -> list[Record]:
    same = ("algorithm", "cache_s", "covering_lookups")
    return [{k: v for k, v in each.items() if k not in same} for each in outcome.records]


@pytest.mark.parametrize("algorithm", [NORMAL, SIMILARITY, DIRECT])
def test_every_algorithm_finds_what_there_is_and_ends(pools: Pools, algorithm: str) -> None:
    expected = {
        each.request_id: sum(finds(each.bounds, resource) for resource in pools.resources)
        for each in asked(pools)
    }

    outcome = run(pools, algorithm)

    assert {each["request"]: each["results"] for each in outcome.records} == expected
    assert all(each["finished_ns"] > each["issued_ns"] for each in outcome.records)


def test_a_run_is_repeated_to_the_last_message_and_nanosecond(pools: Pools) -> None:
    assert run(pools, SIMILARITY) == run(pools, SIMILARITY)


def test_a_network_that_was_used_before_costs_the_same(pools: Pools) -> None:
    topology = path_topology()
    places = balanced(len(pools.resources), topology.edges)
    network, hops = network_with(
        topology, zip(pools.resources, places, strict=True), ModelType.DYNAMIC
    )
    setting = replace(SETTING, algorithm=SIMILARITY)
    run_requests(network, SETTING, asked(pools), PAPER)

    again = run_requests(network, setting, asked(pools), PAPER)

    fresh = run(pools, SIMILARITY)
    times = ("issued_ns", "finished_ns", "last_result_ns")
    for used, new in zip(again.records, fresh.records, strict=True):
        assert used["finished_ns"] - used["issued_ns"] == new["finished_ns"] - new["issued_ns"]
        assert all(used[name] == new[name] for name in used.keys() - set(times))
    assert hops == 300 * 23


def test_without_a_cache_similarity_forwarding_is_the_normal_algorithm(pools: Pools) -> None:
    assert costs_of(run(pools, SIMILARITY, cache_s=0.0)) == costs_of(run(pools, NORMAL))


def test_shared_answers_save_requests_and_matching_but_not_results_on_their_way(
    pools: Pools,
) -> None:
    normal, similar = run(pools, NORMAL), run(pools, SIMILARITY)

    assert total(similar, "shared") > 0
    assert total(similar, "subscription_hops") < 0.9 * total(normal, "subscription_hops")
    assert total(similar, "matching_operations") < 0.9 * total(normal, "matching_operations")
    alone = total(similar, "publication_hops_alone") / total(normal, "publication_hops_alone")
    assert 0.8 < alone < 1.25
    assert total(similar, "publication_hops_cached") < total(normal, "publication_hops_cached")
    packaged = "publication_hops_packaged"
    assert total(similar, packaged) < total(normal, packaged)


def test_direct_results_take_one_hop_each_and_a_connection_for_each_pair(pools: Pools) -> None:
    normal, direct = run(pools, NORMAL), run(pools, DIRECT)

    assert total(direct, "subscription_hops") == total(normal, "subscription_hops")
    assert total(direct, "publication_hops_alone") < total(direct, "results")
    assert 0 < direct.connections <= 20 * 19
    assert normal.connections == 0


def test_costs_change_times_and_no_message(pools: Pools) -> None:
    slow, quick = run(pools, NORMAL), run(pools, NORMAL, costs=MEASURED)

    columns = ("subscription_hops", "publication_hops_alone", "end_markers", "matching_operations")
    for one, other in zip(slow.records, quick.records, strict=True):
        assert all(one[name] == other[name] for name in columns)
    times = [
        sum(each["finished_ns"] - each["issued_ns"] for each in outcome.records)
        for outcome in (slow, quick)
    ]
    assert times[1] < times[0]
