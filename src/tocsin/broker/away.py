"""Away: the sinks that cannot be reached, by the addresses at which they were tried.

When somebody connects from one of these addresses, the sinks there are tried before their delay is
over. Sinks that answer are not among them, whatever they answer: each refusal counts towards giving
an event up, and to ask more often would only give it up sooner.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.broker.delivery.lane import EARLY_NS_MIN, Lane
from tocsin.broker.subscriber import Subscriber

EARLY_LANES_MAX = 100  # tried for one connection; the others of that address come next time


class _Place:
    """The lanes to one address, those first that were not tried early for the longest time."""

    __slots__ = ("lanes", "looked_ns")

    def __init__(self) -> None:
        self.lanes: dict[int, Lane[Subscriber]] = {}
        self.looked_ns = -EARLY_NS_MIN


class Away:
    """An index of lanes. Empty, and so false, while every sink can be reached."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def put(self, lane: Lane[Subscriber], addresses: Iterable[str]) -> None:
        """An attempt at these addresses found nobody."""
        tried = tuple(addresses)
        if tried == lane.tried:
            return
        self.drop(lane)
        lane.tried = tried
        for address in tried:
            self._places.setdefault(address, _Place()).lanes[lane.number] = lane

    def drop(self, lane: Lane[Subscriber]) -> None:
        """The sink was reached, or nobody wants to reach it any more."""
        for address in lane.tried:
            place = self._places[address]
            del place.lanes[lane.number]
            if not place.lanes:
                del self._places[address]
        lane.tried = ()

    def at(self, address: str, now_ns: int) -> list[Lane[Subscriber]]:
        """The lanes to try because somebody is there; none if that was asked a moment ago."""
        place = self._places.get(address)
        if place is None or now_ns - place.looked_ns < EARLY_NS_MIN:
            return []
        place.looked_ns = now_ns
        chosen = list(place.lanes.values())[:EARLY_LANES_MAX]
        for lane in chosen:
            place.lanes[lane.number] = place.lanes.pop(lane.number)
        return chosen
