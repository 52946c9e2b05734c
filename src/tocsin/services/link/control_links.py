"""ControlLinks: the links as control messages use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tocsin.access.decision import Action
from tocsin.access.resources import filter_resource
from tocsin.broker.port import BrokerPort
from tocsin.errors import TocsinError
from tocsin.event.filter import TopicIs
from tocsin.event.topic import TopicPattern
from tocsin.overlay.routing.effects import Effect
from tocsin.overlay.routing.router import Router
from tocsin.services.link.connection import Connection
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.rights import check_tdns, session_of
from tocsin.wire.link.messages import Control, Serves


class ControlLinks:
    """See `services.control.bus.Links`."""

    def __init__(
        self,
        port: BrokerPort,
        router: Router,
        neighbours: Neighbours,
        perform: Callable[[Iterable[Effect]], None],
    ) -> None:
        self._port = port
        self._router = router
        self._neighbours = neighbours
        self._perform = perform
        self.ways_to = router.reach.ways_to

    @property
    def version(self) -> int:
        return self._router.reach.version

    def send(self, neighbour: str, message: Control | Serves) -> None:
        self._neighbours.send(neighbour, message)

    def written(self, neighbour: str) -> int:
        connection = self._connection(neighbour)
        return 0 if connection is None else connection.written_bytes

    def taken(self, neighbour: str) -> int:
        connection = self._connection(neighbour)
        return 0 if connection is None else connection.written_bytes - connection.transport.waiting

    def check_tdns(self, neighbour: str, broker: str) -> None:
        connection = self._connection(neighbour)
        if connection is not None:
            check_tdns(self._port, session_of(connection), broker)

    def may_have(self, neighbour: str, topic: str) -> bool:
        connection = self._connection(neighbour)
        if connection is None:
            return False
        wanted = TopicIs(TopicPattern(tuple(topic.split("/"))))
        session, resource = session_of(connection), filter_resource(wanted)
        return self._port.may(session, Action.SUBSCRIBE, resource, wanted)

    def ignored(self, neighbour: str, error: TocsinError) -> None:
        self._perform(self._router.ignored(neighbour, error))

    def _connection(self, neighbour: str) -> Connection | None:
        known = self._neighbours.find(neighbour)
        return None if known is None else known.connection
