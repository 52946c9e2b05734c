"""CheckedLinks: the service of links that ships; what it tells clients is seen by the check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tocsin.event.filter import Filter
from tocsin.overlay.routing.effects import Began, Effect
from tocsin.services.link.connection import Connection
from tocsin.services.link.service import LinkService
from tocsin.sim.checks.overlay import OverlayCheck


class CheckedLinks(LinkService):
    """Does what the service does."""

    check: OverlayCheck
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
