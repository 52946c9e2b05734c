"""ConnectionQuotas: how many connections a principal and an address have, at all listeners."""

from __future__ import annotations

from tocsin.access.quotas.holders import Holder
from tocsin.access.quotas.quotas import Quotas
from tocsin.access.session import Session


class ConnectionQuotas:
    """Knows of each connection whom it counts for. Where clients sign in, a connection on which
    nobody has yet counts for its address alone."""

    def __init__(self, quotas: Quotas, *, is_open: bool) -> None:
        self._quotas = quotas
        self._is_open = is_open
        self._held: dict[object, list[Holder]] = {}

    def connected(self, connection: object, session: Session) -> None:
        """A connection, of somebody who has signed in with it or has not. Raises QuotaReached."""
        if session.is_signed_in or self._is_open:
            wanted = self._quotas.counted_for(session)
        else:
            wanted = [self._quotas.peer(session.peer)]
        held = self._held.get(connection, [])
        self._quotas.connect(session, [each for each in wanted if each not in held])
        self._quotas.disconnect([each for each in held if each not in wanted])
        self._held[connection] = wanted

    def lost(self, connection: object) -> None:
        self._quotas.disconnect(self._held.pop(connection, []))
