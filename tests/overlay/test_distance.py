"""How many links away a resource is, when the tree becomes another one."""

from __future__ import annotations

from overlay.network import Network
from tocsin.overlay.discovery.requests import ModelType


def test_the_distance_follows_the_tree_behind_a_neighbour() -> None:
    """B has another way to D, behind C, when it loses its link: A is told the same once more."""
    network = Network([("A", "B"), ("B", "D"), ("D", "C")])
    network.register("D", "R", "[cores,<=,8]", {}, ModelType.STATIC)
    network.settle()

    network.connect("B", "C")
    network.settle()
    network.disconnect("B", "D")
    network.settle()

    network.discover("A", "Q", "[cores,>,1]", ModelType.STATIC)
    assert [each.hops for each in network.answers["Q"]] == [3]
