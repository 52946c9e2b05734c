"""Larger overlays cost what their form says, in every run the same."""

from __future__ import annotations

import pytest

from tocsin.event.filter import Filter
from tocsin.event.filter_text import parse_filter
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.sim.discovery.topology import hub_topology, tree_topology
from tocsin.sim.scale.growth import Row, Size, discovery_growth, routing_growth
from tocsin.sim.scale.routing import MessageCosts, RoutingNetwork

SEED = 3


def nothing() -> int:
    return 0


def subscribed(form: str, *, covering: bool, brokers: int = 15) -> Row:
    return routing_growth(Size(form, brokers, 60), SEED, nothing, covering=covering)


def test_each_broker_of_a_tree_is_joined_to_the_one_above_it() -> None:
    names = [f"e{number:02}" for number in range(1, 7)]

    tree, star = tree_topology(6, children=2), hub_topology(6)

    assert tree.links == tuple(
        (names[above], names[place]) for place, above in enumerate((0, 0, 1, 1, 2), 1)
    )
    assert star.links == tuple((names[0], each) for each in names[1:])


@pytest.mark.parametrize("form", ["tree", "star"])
def test_without_covering_each_link_carries_each_subscription_and_one_report(form: str) -> None:
    row = subscribed(form, covering=False)

    assert row["rows"] == 15 * 60
    assert row["subscribe_messages"] == 14 * 60
    assert row["report_messages"] == 14 * 60


@pytest.mark.parametrize("form", ["tree", "star"])
def test_covering_saves_rows_and_messages(form: str) -> None:
    on, off = subscribed(form, covering=True), subscribed(form, covering=False)

    assert on["rows"] < 0.6 * off["rows"]
    assert on["subscribe_messages"] < 0.8 * off["subscribe_messages"]
    assert on["return_messages"] < off["return_messages"]


def test_a_registration_crosses_each_link_once_and_is_at_each_broker() -> None:
    row = discovery_growth(Size("tree", 15, 200), SEED, nothing)

    assert row["register_hops"] == 14 * 200
    assert row["rows"] == 15 * 200
    assert row["similarity_requests"] < row["normal_requests"] <= 14
    assert 0 < row["cut_messages"] <= 2 * 14 * 200


def test_two_runs_are_equal() -> None:
    size = Size("star", 12, 200)

    assert discovery_growth(size, SEED, nothing) == discovery_growth(size, SEED, nothing)
    assert subscribed("tree", covering=True) == subscribed("tree", covering=True)


def test_time_grows_with_the_path_and_with_what_one_broker_sends() -> None:
    costs = MessageCosts()
    path, star = (
        RoutingNetwork(topology, RoutingOptions(), costs)
        for topology in (tree_topology(9, children=1), hub_topology(9))
    )

    for network in (path, star):
        network.take_traffic()
        from_here = network.topology.edges[-1]
        network.subscribe(from_here, "s", _wanted("load > 5"))
        taken_ns = network.run()
        hops = 8 if network is path else 2
        there_and_back_ns = 2 * hops * (costs.link_ns + costs.receive_ns + costs.send_ns)
        assert there_and_back_ns <= taken_ns <= 1.2 * there_and_back_ns
        assert network.traffic.subscriptions == 8


def _wanted(text: str) -> Filter:
    return parse_filter(text)
