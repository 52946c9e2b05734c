"""A listener for connections that are streams of bytes: opened, counted, and closed."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from tocsin.access.session import Session as AccessSession
from tocsin.access.session import anonymous
from tocsin.drivers.listeners.bind_address import host_and_port, why_not
from tocsin.drivers.listeners.connection_quotas import ConnectionQuotas
from tocsin.drivers.listeners.peers import Peers
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.tls.site_context import certificate_session
from tocsin.errors import BadSetting, NotSignedIn, QuotaReached

BACKLOG: Final = 1_024
READ_BYTES: Final = 64 << 10
CLOSING_S: Final = 0.7  # for what is in progress; the rest are cut off
TLS_HANDSHAKE_S: Final = 10.0

"""Writes to the broker's own log: level, message, then fields by name."""

PeerConnected = Callable[[str], None]
"""Called with the address of every peer that connects."""


class Session(Protocol):
    """One connection at work."""

    stopping: bool

    @property
    def is_busy(self) -> bool:
        """Something is under way that should be let end."""
        ...


S = TypeVar("S", bound=Session)


class StreamListener(ABC, Generic[S]):
    """An open listener, and its connections."""

    flag: str  # that sets its address
    endpoint: str  # in sessions
    name: str  # in messages
    quotas: ConnectionQuotas | None = None  # of connections; None where there are none

    def __init__(
        self, connections_max: int, per_peer_max: int, note: WriteLog, peer_connected: PeerConnected
    ) -> None:
        self._connections_max = connections_max
        self._note = note
        self._peer_connected = peer_connected
        self._peers = Peers(per_peer_max, connections_max)
        self._sessions: dict[asyncio.Task[None], S] = {}
        self._server: asyncio.Server | None = None
        self._closing = False
        self._full = False
        self.refused = 0
        self.host = ""
        self.port = 0

    @abstractmethod
    def _session(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, caller: AccessSession
    ) -> S:
        """A peer connected, and this is who it is."""

    @abstractmethod
    async def _serve(self, session: S, writer: asyncio.StreamWriter) -> None:
        """Look after one connection until it ends. Raises nothing."""

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def open(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.host, port = host_and_port(address)
        try:
            self._server = await asyncio.start_server(
                self._accept,
                self.host,
                port,
                limit=READ_BYTES,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else TLS_HANDSHAKE_S,
            )
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {why_not(error)}",
                remedy=f"Choose another address with {self.flag} HOST:PORT; port 0 takes any free "
                f"one, and {self.flag} off disables this listener.",
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Accept no more, let what is in progress end, disconnect."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task, session in self._sessions.items():
            session.stopping = True
            if not session.is_busy:
                task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=CLOSING_S)
        for task in self._sessions:
            task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = writer.get_extra_info("peername")
        host = str(name[0]) if isinstance(name, tuple) else ""
        self._peer_connected(host)
        if self._closing or len(self._sessions) >= self._connections_max:
            self._refuse(writer, "{}.connections_max")
            return
        if not self._peers.enter(host):
            self._refuse(writer, "limits.connections_per_peer_max")
            return
        caller = self._caller(writer, socket_name(name))
        if caller is None:
            self._peers.leave(host)
            self.refused += 1
            writer.transport.abort()
            return
        session = self._session(reader, writer, caller)
        task = asyncio.get_running_loop().create_task(self._serve(session, writer))
        self._sessions[task] = session
        task.add_done_callback(self._forget)
        task.add_done_callback(lambda _: self._left(writer, host))

    def _caller(self, connection: asyncio.StreamWriter, peer: str) -> AccessSession | None:
        """Who connected; None if he may not, which is noted with the reason."""
        try:
            caller = certificate_session(
                anonymous(self.endpoint, peer), connection.get_extra_info("ssl_object")
            )
            if self.quotas is not None:
                self.quotas.connected(connection, caller)
        except NotSignedIn:  # which was noted, with what is wrong with it
            return None
        except QuotaReached as error:
            if not self._full:
                self._full = True  # as with the listener's own limits
                self._note("warning", error.problem, listener=self.name, peer=peer)
            return None
        return caller

    def _left(self, connection: asyncio.StreamWriter, host: str) -> None:
        self._peers.leave(host)
        if self.quotas is not None:
            self.quotas.lost(connection)

    def _refuse(self, writer: asyncio.StreamWriter, limit: str) -> None:
        self.refused += 1
        writer.transport.abort()
        if not self._full and not self._closing:
            self._full = True  # reported once, and again when there was room in between
            setting = limit.format(self.flag.removeprefix("--").replace("-", "_"))
            self._note(
                "warning",
                f"the {self.name} listener has as many connections as {setting} allows",
                connections=len(self._sessions),
            )

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._sessions[task]
        self._full = False


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close, and wait only so long for a peer that does not read the rest."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSING_S):
            await writer.wait_closed()
    except OSError:  # TimeoutError is one
        pass
    finally:
        writer.transport.abort()


def socket_name(name: object) -> str:
    """A socket's name as host:port."""
    if not isinstance(name, tuple) or len(name) < 2:
        return ""
    host, port = str(name[0]), name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
