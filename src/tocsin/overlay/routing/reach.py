"""Reach: which brokers are behind which neighbour, and the cycles that shows.

Every neighbour tells which brokers are behind it, each with the broker before it on the way. On a
tree a broker is behind one neighbour only. If one is behind two, or this broker behind itself, then
there is a cycle; its edges are known then, so that everybody on it agrees which one has to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

Edge = tuple[str, str]
"""The ids of two brokers with a link between them, in their order."""


def edge(one: str, other: str) -> Edge:
    return (one, other) if one < other else (other, one)


class Reach:
    """What lies behind each neighbour of one broker."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._behind: dict[str, dict[str, str]] = {}  # neighbour -> broker -> the one before it
        self._ways: dict[str, dict[str, None]] = {}  # broker -> neighbours that it is behind
        self._double: dict[str, None] = {}  # brokers behind two neighbours, or this one itself
        self._complete: set[str] = set()  # neighbours whose tables have been read
        self.version = 0  # another one after each change

    def __len__(self) -> int:
        return len(self._ways)

    def behind(self, neighbour: str) -> Mapping[str, str]:
        return self._behind.get(neighbour, {})

    def overlap(
        self, ids: Iterable[str], *, without: Iterable[str] = (), cut: tuple[str, str] = ("", "")
    ) -> str | None:
        """The first of these brokers that is reached already, or None.

        Leaves out what is reached through these neighbours, or from the one broker to the other.
        """
        ways_left = self._behind.keys() - set(without)
        before, after = cut
        beyond_cut = {
            way: beyond(behind, after)
            for way, behind in self._behind.items()
            if way in ways_left and before and behind.get(after) == before
        }
        for each in sorted(ids):
            ways = self._ways.get(each, {}).keys() & ways_left
            if each == self._broker or any(each not in beyond_cut.get(way, ()) for way in ways):
                return each
        return None

    def add_neighbour(self, neighbour: str, behind: Mapping[str, str]) -> None:
        assert neighbour not in self._behind
        self._behind[neighbour] = {}
        self.change(neighbour, {neighbour: self._broker, **behind}, ())

    def complete(self, neighbour: str) -> list[str]:
        """The neighbour's tables are known: what is behind it may be told to others."""
        self._complete.add(neighbour)
        self.version += 1
        return list(self._behind[neighbour])

    def remove_neighbour(self, neighbour: str) -> list[str]:
        """Gives the brokers that were behind it."""
        gone = list(self._behind.get(neighbour, ()))
        self.change(neighbour, {}, gone)
        self._behind.pop(neighbour, None)
        self._complete.discard(neighbour)
        return gone

    def change(self, neighbour: str, added: Mapping[str, str], removed: Iterable[str]) -> None:
        behind = self._behind[neighbour]
        self.version += 1
        for each in removed:
            if behind.pop(each, None) is not None:
                ways = self._ways[each]
                del ways[neighbour]
                if not ways:
                    del self._ways[each]
                if len(ways) < 2:
                    self._double.pop(each, None)
        for each, before in added.items():
            behind[each] = before
            ways = self._ways.setdefault(each, {})
            ways[neighbour] = None
            if len(ways) > 1 or each == self._broker:
                self._double[each] = None

    def ways(self, broker: str) -> Iterable[str]:
        """The neighbours behind which the broker is."""
        return self._ways.get(broker, ())

    def way_to(self, broker: str) -> str | None:
        """The neighbour behind which the broker is; None if it cannot be reached now."""
        ways = [way for way in self._ways.get(broker, ()) if way in self._complete]
        return min(ways, default=None)

    def ways_to(self, broker: str) -> list[str]:
        """All neighbours behind which it is: several only while there is a cycle."""
        return sorted(way for way in self._ways.get(broker, ()) if way in self._complete)

    def is_only_way(self, neighbour: str, broker: str) -> bool:
        """True if the broker is behind this neighbour, and none other leads or will lead there."""
        ways = self._ways.get(broker, {})
        return len(ways) == 1 and neighbour in ways

    def hop_before(self, neighbour: str, broker: str) -> str | None:
        """What the neighbour is to know about a broker: the one before it on the way, or None if
        it is not behind this one."""
        if broker == self._broker:
            return None
        ways = [
            way for way in self._ways.get(broker, ()) if way in self._complete and way != neighbour
        ]
        return self._behind[min(ways)][broker] if ways else None

    def is_coming(self, neighbour: str, broker: str) -> bool:
        """True if this one is to hear of the broker once the tables of another one are read."""
        ways = self._ways.get(broker, ())
        return any(way != neighbour and way not in self._complete for way in ways)

    def paths(self, *, without: Iterable[str] = ()) -> dict[str, str]:
        """Everything that a new neighbour would reach through this broker."""
        leaving = set(without)
        return {
            broker: self._behind[min(open_ways)][broker]
            for broker, ways in self._ways.items()
            if broker != self._broker and (open_ways := ways.keys() - leaving)
        }

    def known(self) -> Iterable[str]:
        return self._ways

    @property
    def has_cycle(self) -> bool:
        return bool(self._double)

    def edge_to_cut(self) -> Edge | None:
        """Of the cycle that the first doubled broker shows, the edge with the largest ids.

        Everybody on a cycle finds the same edge, so the two brokers at its ends cut it and nobody
        else cuts another. What is left, if all cut what they find, still joins everybody. Linear in
        what the neighbours say: those that say what leads nowhere are walked once.
        """
        connected: dict[str, set[str]] = {}
        for broker in sorted(self._double):
            ways = sorted(self._ways[broker])[: 1 if broker == self._broker else 2]
            for way in ways:
                if way not in connected:
                    connected[way] = beyond(self._behind[way], way)
            if all(broker in connected[way] for way in ways):
                return max(self._cycle(broker, [self._path(way, broker) for way in ways]))
        return None

    def _cycle(self, broker: str, paths: list[list[str]]) -> list[Edge]:
        """The edges on the way out by the first path, and back by the second if there is one."""
        one = paths[0]
        if broker == self._broker:
            return _edges([self._broker, *one])
        place_in_other = {each: place for place, each in enumerate(paths[1])}
        end = next(place for place, each in enumerate(one) if each in place_in_other)
        back = paths[1][: place_in_other[one[end]]]
        return _edges([self._broker, *one[: end + 1], *reversed(back), self._broker])

    def _path(self, neighbour: str, broker: str) -> list[str]:
        """From the neighbour to the broker, which is known to be connected to it."""
        behind = self._behind[neighbour]
        path = [broker]
        while path[-1] != neighbour:
            path.append(behind[path[-1]])
        return path[::-1]


def beyond(behind: Mapping[str, str], broker: str) -> set[str]:
    """The broker, and all that are reached by way of it."""
    after: dict[str, list[str]] = {}
    for each, before in behind.items():
        after.setdefault(before, []).append(each)
    found = {broker}
    waiting = [broker]
    while waiting:
        fresh = [each for each in after.get(waiting.pop(), ()) if each not in found]
        found.update(fresh)
        waiting.extend(fresh)
    return found


def _edges(walk: list[str]) -> list[Edge]:
    return [edge(one, other) for one, other in pairwise(walk)]
