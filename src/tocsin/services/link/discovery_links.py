"""DiscoveryLinks: the links as resource discovery uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tocsin.errors import TocsinError
from tocsin.overlay.routing.effects import Effect
from tocsin.overlay.routing.router import Router
from tocsin.services.link.direct import DirectResults
from tocsin.services.link.neighbours import Neighbours
from tocsin.wire.link.discovery_messages import DiscoveryMessage


class DiscoveryLinks:
    """See `services.discovery.core_driver.Links`."""

    def __init__(
        self,
        router: Router,
        neighbours: Neighbours,
        direct: DirectResults,
        perform: Callable[[Iterable[Effect]], None],
    ) -> None:
        self._router = router
        self._neighbours = neighbours
        self._direct = direct
        self._perform = perform

    def send(self, neighbour: str, message: DiscoveryMessage) -> None:
        self._neighbours.send(neighbour, message)

    def send_direct(self, broker: str, address: str, message: DiscoveryMessage) -> None:
        self._direct.send(broker, address, message)

    def ignored(self, neighbour: str, error: TocsinError) -> None:
        self._perform(self._router.ignored(neighbour, error))

    def round_trip_s(self, broker: str) -> float | None:
        """To the neighbour on the way to a broker, by the last heartbeat."""
        way = self._router.way_to(broker)
        neighbour = None if way is None else self._neighbours.find(way)
        if neighbour is None or neighbour.connection is None:
            return None
        round_trip_ms = neighbour.connection.round_trip_ms
        return None if round_trip_ms is None else round_trip_ms / 1e3
