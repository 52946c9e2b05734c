"""The subscriptions of this broker's clients, as the routing tables know them: by their filters."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.local_filters import LocalFilters
from tocsin.errors import TocsinError
from tocsin.event.filter import Filter
from tocsin.event.filter_text import format_filter

ID_CHARS = 24
AT_A_TIME = 200  # are routed in one turn of the loop


def entry_id(filter: Filter) -> str:
    """The same for the same filter, also after a restart: so neighbours that kept it see that
    nothing has changed."""
    return sha256(format_filter(filter).encode()).hexdigest()[:ID_CHARS]


class LocalSubscriptions:
    """Watched from the first neighbour on: a broker without neighbours does nothing for them."""

    def __init__(self, port: BrokerPort, route: Callable[[str, Filter | None], None]) -> None:
        """`route` is given an entry's id and its filter, or None for an entry that is gone."""
        self._port = port
        self._route = route
        self._filters: LocalFilters | None = None
        self._is_closed = False

    @property
    def is_loaded(self) -> bool:
        return self._filters is not None

    async def load(self) -> None:
        """All there are, and from now on what changes."""
        self._filters = self._port.own(internal("link")).watch_local_filters(self._changed)
        changed = self._filters.take_changed()
        for start in range(0, len(changed), AT_A_TIME):
            self._route_all(changed[start : start + AT_A_TIME])
            await self._port.runtime.sleep(0.0)

    def close(self) -> None:
        self._is_closed = True

    def _changed(self) -> None:
        self._port.runtime.call_later(0.0, self._take)

    def _take(self) -> None:
        if self._filters is not None and not self._is_closed:
            self._route_all(self._filters.take_changed())

    def _route_all(self, changed: list[tuple[Filter, bool]]) -> None:
        for filter, is_there in changed:
            try:
                self._route(entry_id(filter), filter if is_there else None)
            except TocsinError as error:
                self._port.runtime.note(
                    "error",
                    "a subscription is not sent to other brokers: events of theirs do not reach it",
                    filter=format_filter(filter)[:200],
                    why=error.problem,
                    remedy=error.remedy,
                )
