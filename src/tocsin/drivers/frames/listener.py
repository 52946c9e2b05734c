"""The frames listener on TCP and TLS: accepts connections, counts them, keeps their deadlines."""

from __future__ import annotations

import asyncio
import ssl
import traceback
from functools import partial
from typing import Final

from tocsin.config import Settings
from tocsin.drivers.frames.connection import Connection
from tocsin.drivers.frames.pending_tls import PendingTls
from tocsin.drivers.listeners.bind_address import host_and_port, why_not
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.listeners.connection_quotas import ConnectionQuotas
from tocsin.drivers.listeners.peers import Peers
from tocsin.errors import BadSetting
from tocsin.services.limited_log import LimitedLog
from tocsin.services.performance.service import PerformanceService
from tocsin.services.performance.session import BROKER

BACKLOG: Final = 1_024
SWEEP_S: Final = 0.25  # one timer for all connections; deadlines are seconds, so this is fine
CLOSING_S: Final = 0.7  # for what is under way; whoever is not done then is cut off
_POLL_S: Final = 0.01


class FramesListener:
    """An open listener. `roles` is what the broker is to those who connect here."""

    quotas: ConnectionQuotas | None = None  # of connections; None where there are none

    def __init__(
        self,
        service: PerformanceService,
        settings: Settings,
        name: str,
        roles: frozenset[str],
        budget: ReceiveBudget,
    ) -> None:
        self.name = name
        self.service = service
        self.settings = settings.frames
        self.roles = roles
        self.note = service.runtime.note
        self.warn = LimitedLog(service.runtime).warn
        self.loop = asyncio.get_running_loop()
        self.now_s = self.loop.time()
        self.budget = budget
        self.failed = 0  # connections closed for what came by them
        self.is_secure = False
        self.host = ""
        self.port = 0
        self._peer_connected = service.port.peer_connected
        self._connections: set[Connection] = set()
        per_peer_max = settings.limits.connections_per_peer_max
        self._peers = Peers(per_peer_max, self.settings.connections_max)
        self._pending_tls: PendingTls | None = None
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closing = False
        self._full = False

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def connections(self) -> int:
        """Those that are open, and those whose handshake is under way."""
        pending = 0 if self._pending_tls is None else len(self._pending_tls.handshakes)
        return len(self._connections) + pending

    async def open(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.host, port = host_and_port(address)
        self.is_secure = tls is not None
        try:
            if tls is None:
                self._server = await self.loop.create_server(
                    partial(Connection, self), self.host, port, backlog=BACKLOG
                )
                self.port = self._server.sockets[0].getsockname()[1]
            else:
                connection = partial(Connection, self)
                self._pending_tls = PendingTls(tls, connection, self._has_room, self.warn)
                self.port = await self._pending_tls.open(self.host, port)
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {why_not(error)}",
                remedy=f"Choose another address with --{self.name} HOST:PORT; port 0 takes any "
                f"free one, and --{self.name} off disables this listener.",
            ) from None
        self._sweep = self.loop.call_later(SWEEP_S, self._turn)

    async def close(self) -> None:
        """Take no more, let what is under way end, say goodbye."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        if self._pending_tls is not None:
            self._pending_tls.close()
        for connection in list(self._connections):
            connection.stop()
        deadline_s = self.loop.time() + CLOSING_S
        while self._connections and self.loop.time() < deadline_s:
            await asyncio.sleep(_POLL_S)
        for connection in list(self._connections):
            connection.abort()
        if self._sweep is not None:
            self._sweep.cancel()
        await asyncio.sleep(0)

    def admit(self, connection: Connection) -> bool:
        """False if there are as many connections as there may be."""
        self._peer_connected(connection.host)
        if not self.is_secure and not self._has_room():  # else asked before TLS
            return False
        if not self._peers.enter(connection.host):
            self._log_full("limits.connections_per_peer_max")
            return False
        self._connections.add(connection)
        self.service.connections += 1
        return True

    def _has_room(self) -> bool:
        if self._closing or self.connections >= self.settings.connections_max:
            self._log_full("frames.connections_max")
            return False
        return True

    def _log_full(self, setting: str) -> None:
        if not self._full and not self._closing:
            self._full = True  # logged once, and again when there was room in between
            self.note(
                "warning",
                f"the frames listener has as many connections as {setting} allows",
                connections=self.connections,
            )

    def forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._peers.leave(connection.host)
            if self.quotas is not None:
                self.quotas.lost(connection)
            self.service.connections -= 1
            self._full = False

    def note_failure(self, cause: Exception, peer: str) -> None:
        """Write a failure of ours to the log, with the place where it happened."""
        frames = traceback.extract_tb(cause.__traceback__)[-4:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        text = f"{type(cause).__name__}: {cause}"
        self.note("error", "a frames connection failed", error=text, where=where, peer=peer)

    def _turn(self) -> None:
        self._sweep = self.loop.call_later(SWEEP_S, self._turn)
        self.now_s = now_s = self.loop.time()
        for connection in list(self._connections):
            connection.tick(now_s)


async def listen(
    service: PerformanceService,
    settings: Settings,
    address: str,
    *,
    name: str = "frames",
    roles: frozenset[str] = BROKER,
    tls: ssl.SSLContext | None = None,
    budget: ReceiveBudget | None = None,
) -> FramesListener:
    """Listen; `name` is the option and the setting for the address. Without the `budget` of other
    listeners it has one of its own."""
    own = budget or ReceiveBudget(settings.limits.receiving_bytes_max, service.runtime.note)
    listener = FramesListener(service, settings, name, roles, own)
    await listener.open(address, tls)
    return listener
