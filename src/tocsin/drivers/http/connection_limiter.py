"""Who may connect by HTTP, and for whom connections are reserved when there are many.

Streams, sockets and requests that wait may have four of five connections, so that publishers find
some. When all are taken, the oldest that never asked anything makes room. Past the last one, and
past a peer's own share, a few more are let in to be refused politely: if they ask for liveness,
they are answered, as an orchestrator would restart it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from tocsin.drivers.listeners.peers import Peers
from tocsin.drivers.logger import WriteLog
from tocsin.errors import Busy, TocsinError, TooManySubscriptions

PROBES: Final = frozenset({b"/livez", b"/readyz"})
LONG_LIVED_SHARE: Final = 0.8  # of all connections, for those that are held open
EXTRA_MAX: Final = 64  # connections over the limit, each until it has its answer
EXTRA_SHARE: Final = 16  # or so much of the limit, where that is less
CROWDED_SHARE: Final = 0.9  # from there on nobody may be idle for long
CROWDED_IDLE_S: Final = 2.0

PeerConnected = Callable[[str], None]
"""Called with the address of every peer that connects."""


class LimitedConnection(Protocol):
    """A connection, as the listener sees it."""

    deadline_s: float

    def deadline_passed(self, now_s: float) -> None: ...

    def close_if_idle(self, now_s: float, idle_s: float) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class ConnectionLimiter:
    """The connections of a listener, and how many of each kind there may be."""

    def __init__(
        self, connections_max: int, per_peer_max: int, note: WriteLog, peer_connected: PeerConnected
    ) -> None:
        self.connections: set[LimitedConnection] = set()
        self.connections_max = connections_max
        self.long_lived_max = long_lived_max(connections_max)
        self.refused = 0
        self._long_lived: set[LimitedConnection] = set()
        self._extra: dict[LimitedConnection, None] = {}  # in the order in which they came
        self._extra_max = min(EXTRA_MAX, max(1, connections_max // EXTRA_SHARE))
        self._hosts: dict[LimitedConnection, str] = {}
        self._silent: dict[
            LimitedConnection, None
        ] = {}  # that sent no whole request yet, the oldest first
        self._peers = Peers(per_peer_max, connections_max)
        self._note = note
        self._peer_connected = peer_connected
        self._is_noted = False

    @property
    def long_lived(self) -> int:
        """How many are held open by streams, sockets and requests that wait."""
        return len(self._long_lived)

    @property
    def is_crowded(self) -> bool:
        return len(self.connections) > self.connections_max * CROWDED_SHARE

    def admit(self, connection: LimitedConnection, host: str) -> TocsinError | None:
        """None if it may send any request; else its answer, unless it only probes."""
        self._peer_connected(host)
        refusal: TocsinError | None = None
        if len(self._hosts) >= self.connections_max and self._silent:
            silent = next(iter(self._silent))
            self.forget(silent)
            silent.abort()
        if len(self._hosts) >= self.connections_max:
            refusal = _crowded()
        elif not self._peers.enter(host):
            refusal = _too_many(self._peers.most)
        self.connections.add(connection)
        if refusal is None:
            self._hosts[connection] = host
            self._silent[connection] = None
            return None
        self._refuse(connection, refusal, host)
        return refusal

    def _refuse(self, connection: LimitedConnection, refusal: TocsinError, host: str) -> None:
        self.refused += 1
        if not self._is_noted:
            self._is_noted = True  # and again once there was room in between
            self._note("warning", refusal.problem, connections=len(self._hosts), peer=host)
        if len(self._extra) >= self._extra_max:
            oldest = next(iter(self._extra))  # it had the most time to ask
            del self._extra[oldest]
            oldest.abort()
        self._extra[connection] = None

    def sent_request(self, connection: LimitedConnection) -> bool:
        """It sent its first request; False, as it is silent no longer."""
        self._silent.pop(connection, None)
        return False

    def forget(self, connection: LimitedConnection) -> None:
        self.connections.discard(connection)
        self._silent.pop(connection, None)
        self._long_lived.discard(connection)
        self._extra.pop(connection, None)
        host = self._hosts.pop(connection, None)
        if host is not None:
            self._peers.leave(host)
            self._is_noted = self._is_noted and self.is_crowded

    def begin_long_lived(self, connection: LimitedConnection, *, is_stream: bool) -> None:
        """It will be held open for as long as it pleases the client. Raises if too many are."""
        if len(self._long_lived) >= self.long_lived_max:
            problem = (
                f"{self.long_lived_max} connections are held open by streams and waiting requests"
            )
            remedy = "Close some, wait a while, or raise http.connections_max."
            raise (TooManySubscriptions if is_stream else Busy)(problem, remedy=remedy)
        self._long_lived.add(connection)

    def end_long_lived(self, connection: LimitedConnection) -> None:
        self._long_lived.discard(connection)


def long_lived_max(connections_max: int) -> int:
    """How many of so many connections may be held open."""
    return max(1, int(connections_max * LONG_LIVED_SHARE))


def _crowded() -> Busy:
    return Busy(
        "the broker has reached its limit of connections",
        remedy="Keep connections open and use them again, or raise http.connections_max.",
    )


def _too_many(most: int) -> Busy:
    return Busy(
        f"your address has {most} connections already",
        remedy="Use those again, or raise limits.connections_per_peer_max.",
    )
