"""Topologies: which brokers of an evaluation are linked. All are trees.

The paper names 20 brokers with clients and 4 routers between them, and no links. The path of
routers is the default here; in the star the other routers are around the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

EDGES = 20
ROUTERS = 4


@dataclass(frozen=True, slots=True)
class Topology:
    """Brokers by name: those with clients, those that only route, and the links between them."""

    name: str
    edges: tuple[str, ...]
    routers: tuple[str, ...]
    links: tuple[tuple[str, str], ...]

    @property
    def brokers(self) -> tuple[str, ...]:
        return self.edges + self.routers

    def neighbours(self) -> dict[str, tuple[str, ...]]:
        """Of each broker, in the order of the links."""
        found: dict[str, list[str]] = {broker: [] for broker in self.brokers}
        for one, other in self.links:
            found[one].append(other)
            found[other].append(one)
        return {broker: tuple(others) for broker, others in found.items()}


def path_topology(edges: int = EDGES, routers: int = ROUTERS) -> Topology:
    """Routers in a path, edge brokers numbered consecutively under them."""
    names, hubs = _edges(edges), _routers(routers)
    a_router = -(-edges // routers)
    links = [(hubs[place // a_router], name) for place, name in enumerate(names)]
    links += list(pairwise(hubs))
    return Topology("path", names, hubs, tuple(links))


def star_topology(edges: int = EDGES, routers: int = ROUTERS) -> Topology:
    """Router r1 in the middle: the other routers around it, each with its edge brokers."""
    names, hubs = _edges(edges), _routers(routers)
    a_router = -(-edges // routers)
    links = [(hubs[place // a_router], name) for place, name in enumerate(names)]
    links += [(hubs[0], hub) for hub in hubs[1:]]
    return Topology("star", names, hubs, tuple(links))


def tree_topology(brokers: int, children: int = 4) -> Topology:
    """Every broker has so many others under it, but for the last ones; clients at all of them."""
    names = _edges(brokers)
    links = tuple((names[(place - 1) // children], names[place]) for place in range(1, brokers))
    return Topology("tree", names, (), links)


def hub_topology(brokers: int) -> Topology:
    """One broker in the middle, and all others around it."""
    names = _edges(brokers)
    return Topology("star", names, (), tuple((names[0], each) for each in names[1:]))


def central_topology() -> Topology:
    """One broker, to which every client connects."""
    return Topology("central", ("e01",), (), ())


TOPOLOGIES: Mapping[str, Callable[[], Topology]] = {
    "path": path_topology,
    "star": star_topology,
    "central": central_topology,
}


def _edges(count: int) -> tuple[str, ...]:
    return tuple(f"e{number:02}" for number in range(1, count + 1))


def _routers(count: int) -> tuple[str, ...]:
    return tuple(f"r{number}" for number in range(1, count + 1))
