"""CheckedLinks: the service of links that ships; what it tells clients is seen by the check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tocsin.errors import NotAllowed
from tocsin.event.filter import Filter
from tocsin.overlay.routing.effects import Began, Effect
from tocsin.services.link.connection import Connection
from tocsin.services.link.service import LinkService
from tocsin.sim.checks.link_access import LinkAccessCheck
from tocsin.sim.checks.overlay import OverlayCheck
from tocsin.sim.overlay.connections import LinkEnd
from tocsin.wire.link.codec import LinkMessage
from tocsin.wire.link.messages import Advertise, Direct, Hello, Subscribe


class CheckedLinks(LinkService):
    """Does what the service does."""

    check: OverlayCheck
    access: LinkAccessCheck | None
    host: str
    _is_loading = True

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._found: set[str] = set()  # the subscriptions of clients, while they are loaded

    async def start(self) -> None:
        await super().start()
        self._check_found()

    def _greet(self, connection: Connection, leaving: str = "") -> None:
        super()._greet(connection, leaving)
        self._check_found()

    def received(self, connection: Connection, message: LinkMessage, size: int) -> None:
        if self.access is None:
            super().received(connection, message, size)
            return
        session, end = connection.transport.session, connection.transport
        assert isinstance(end, LinkEnd)
        assert end.check is not None
        if isinstance(message, Hello):
            self.access.knows(message.broker, session)
        elif isinstance(message, Direct):
            end.check.is_for_results()
        super().received(connection, message, size)
        if isinstance(message, Subscribe | Advertise) and self._has_taken(connection, message):
            self.access.check_entry(session, message)

    def _has_taken(self, connection: Connection, message: Subscribe | Advertise) -> bool:
        """Whether it is in the routing table now, as that neighbour's; not if the link has ended,
        of which what is there may stay."""
        if self.router.neighbour(connection.number) is None:
            return False
        state, key = self.router._state, (message.origin, message.id)
        table = state.subscriptions if isinstance(message, Subscribe) else state.advertisements
        return table.text_from(connection.broker, key) == message.filter

    def _check_entry(self, link: int, table: str, filter: Filter) -> None:
        try:
            super()._check_entry(link, table, filter)
        except NotAllowed:
            self.check.refused_entry()
            raise

    def _check_found(self) -> None:
        """Once the subscriptions of clients are loaded, those of before that are not among them
        have ended."""
        if self._is_loading and self._local.is_loaded:
            self._is_loading = False
            self.check.only(self.host, self._found)

    def _route_local(self, entry: str, wanted: Filter | None) -> None:
        if wanted is None:
            self.check.withdrawn(self.host, entry)
        elif self._is_loading:
            self._found.add(entry)
        super()._route_local(entry, wanted)

    def _perform(self, effects: Iterable[Effect]) -> None:
        wanted = list(effects)
        for effect in wanted:
            if isinstance(effect, Began):
                self.check.began(self.host, effect.subscription, effect.broker)
        super()._perform(wanted)
