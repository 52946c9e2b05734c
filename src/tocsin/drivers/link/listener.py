"""The listener for links: other brokers connect here."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from tocsin.drivers.frames.pending_tls import PendingTls
from tocsin.drivers.link.connection import LinkConnection, Opened
from tocsin.drivers.link.connections import LinkConnections
from tocsin.drivers.listeners.bind_address import host_and_port, why_not
from tocsin.drivers.listeners.peers import Peers
from tocsin.errors import BadSetting

if TYPE_CHECKING:
    import asyncio

BACKLOG: Final = 128
TLS_REMEDY: Final = "Set overlay.tls = true at that broker, and its overlay.ca_file if needed."


class LinkListener:
    """An open listener."""

    def __init__(
        self,
        connections: LinkConnections,
        accept: Opened,
        *,
        per_peer_max: int,
        peer_connected: Callable[[str], None],
    ) -> None:
        self.refused = 0
        self.host = ""
        self.port = 0
        self._connections = connections
        self._accept = accept
        self._links_max = connections.settings.links_max
        self._peers = Peers(per_peer_max, self._links_max)
        self._peer_connected = peer_connected
        self._accepted = 0  # that are open
        self._pending_tls: PendingTls | None = None
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def open(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.host, port = host_and_port(address)
        loop = self._connections.loop
        new = partial(_Accepted, self, self._connections, self._accept, self._admit)
        try:
            if tls is None:
                self._server = await loop.create_server(new, self.host, port, backlog=BACKLOG)
                self.port = self._server.sockets[0].getsockname()[1]
            else:
                self._pending_tls = PendingTls(
                    tls, new, self._has_room, self._connections.warn, TLS_REMEDY
                )
                self.port = await self._pending_tls.open(self.host, port)
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {why_not(error)}",
                remedy="Choose another address with --link HOST:PORT; port 0 takes any free one, "
                "and --link off disables this listener.",
            ) from None

    async def close(self) -> None:
        """Accept no more. The connections are closed with all others."""
        if self._server is not None:
            self._server.close()
        if self._pending_tls is not None:
            self._pending_tls.close()

    def leave(self, connection: LinkConnection) -> None:
        """One that was admitted has ended."""
        self._peers.leave(connection.host)
        self._accepted -= 1

    def _admit(self, connection: LinkConnection) -> bool:
        self._peer_connected(connection.host)
        if self._pending_tls is None and not self._has_room():  # else asked before TLS
            return False
        if not self._peers.enter(connection.host):
            self._refuse("limits.connections_per_peer_max")
            return False
        self._accepted += 1
        return True

    def _has_room(self) -> bool:
        pending = 0 if self._pending_tls is None else len(self._pending_tls.handshakes)
        if self._connections.is_closing or self._accepted + pending >= self._links_max:
            self._refuse("overlay.links_max")
            return False
        return True

    def _refuse(self, setting: str) -> None:
        self.refused += 1
        if not self._connections.is_closing:
            self._connections.note_full(setting, self._accepted)


class _Accepted(LinkConnection):
    """A connection that another broker opened: it is counted."""

    def __init__(
        self,
        listener: LinkListener,
        connections: LinkConnections,
        accept: Opened,
        admit: Callable[[LinkConnection], bool],
    ) -> None:
        super().__init__(connections, accept, self._enter)
        self._listener = listener
        self._ask = admit
        self._is_counted = False

    def _enter(self, connection: LinkConnection) -> bool:
        self._is_counted = self._ask(connection)
        return self._is_counted

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_counted:
            self._listener.leave(self)
        super().connection_lost(error)
