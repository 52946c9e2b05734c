"""UnreachableSinks: the sinks that cannot be reached, by the addresses at which they were tried.

When somebody connects from one of these addresses, the sinks there are tried before their delay is
over. Sinks that answer are not among them, whatever they answer: each refusal counts towards giving
an event up, and to ask more often would only give it up sooner.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.broker.delivery.lane import EARLY_NS_MIN, Lane
from tocsin.broker.state.subscriber import Subscriber

EARLY_LANES_MAX = 100  # tried for one connection; the others of that address come next time


class _Address:
    """The lanes to one address, those first that were not tried early for the longest time."""

    __slots__ = ("lanes", "tried_ns")

    def __init__(self) -> None:
        self.lanes: dict[int, Lane[Subscriber]] = {}
        self.tried_ns = -EARLY_NS_MIN


class UnreachableSinks:
    """An index of lanes. Empty, and so false, while every sink can be reached."""

    def __init__(self) -> None:
        self._addresses: dict[str, _Address] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def put(self, lane: Lane[Subscriber], addresses: Iterable[str]) -> None:
        """An attempt at these addresses found nobody."""
        tried = tuple(addresses)
        if tried == lane.tried:
            return
        self.drop(lane)
        lane.tried = tried
        for address in tried:
            self._addresses.setdefault(address, _Address()).lanes[lane.number] = lane

    def drop(self, lane: Lane[Subscriber]) -> None:
        """The sink was reached, or nobody wants to reach it any more."""
        for address in lane.tried:
            entry = self._addresses[address]
            del entry.lanes[lane.number]
            if not entry.lanes:
                del self._addresses[address]
        lane.tried = ()

    def at(self, address: str, now_ns: int) -> list[Lane[Subscriber]]:
        """The lanes to try because somebody is there; none if that was asked a moment ago."""
        entry = self._addresses.get(address)
        if entry is None or now_ns - entry.tried_ns < EARLY_NS_MIN:
            return []
        entry.tried_ns = now_ns
        chosen = list(entry.lanes.values())[:EARLY_LANES_MAX]
        for lane in chosen:
            entry.lanes[lane.number] = entry.lanes.pop(lane.number)
        return chosen
