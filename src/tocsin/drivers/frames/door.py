"""The frames door on TCP and TLS: connections come in here, and are looked after while they are."""

from __future__ import annotations

import asyncio
import ssl
import traceback
from functools import partial
from typing import TYPE_CHECKING, Final

from tocsin.broker.effects import Level
from tocsin.drivers.bind_address import host_and_port, why_not
from tocsin.drivers.budget import ReceiveBudget
from tocsin.drivers.frames.connection import Connection
from tocsin.drivers.frames.doorstep import Doorstep
from tocsin.drivers.frames.session import BROKER
from tocsin.drivers.frames.sparing import Sparing
from tocsin.drivers.peers import Peers
from tocsin.errors import BadSetting

if TYPE_CHECKING:
    from tocsin.drivers.frames.desk import PerformanceDesk

BACKLOG: Final = 1_024
SWEEP_S: Final = 0.25  # one timer for all connections; deadlines are seconds, so this is fine
CLOSING_S: Final = 0.7  # for what is under way; whoever is not done then is cut off
_POLL_S: Final = 0.01


class FramesDoor:
    """An open door. `plays` is what the broker is to those who come in here."""

    def __init__(
        self, desk: PerformanceDesk, flag: str, plays: frozenset[str], budget: ReceiveBudget
    ) -> None:
        self.desk = desk
        self.plays = plays
        self.loop = desk.node.loop
        self.now_s = self.loop.time()
        self.turned_away = 0
        self.budget = budget
        self.failed = 0  # connections closed for what came by them
        self.is_secure = False
        self.host = ""
        self.port = 0
        self._flag = flag
        self._sparing = Sparing(self.note)
        self._connections: set[Connection] = set()
        limits = desk.node.settings.limits
        self._peers = Peers(limits.connections_per_peer_max, desk.limits.connections_max)
        self._doorstep: Doorstep | None = None  # of a door that speaks TLS
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
        """Those who are in, and those on the doorstep."""
        steps = 0 if self._doorstep is None else len(self._doorstep.guests)
        return len(self._connections) + steps

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
                arrive = partial(Connection, self)
                self._doorstep = Doorstep(tls, arrive, self._is_room, self.warn)
                self.port = await self._doorstep.open(self.host, port)
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {why_not(error)}",
                remedy=f"Choose another address with {self._flag} HOST:PORT; port 0 takes any free "
                f"one, and {self._flag} off disables this listener.",
            ) from None
        self._sweep = self.loop.call_later(SWEEP_S, self._turn)

    async def close(self) -> None:
        """Take no more, let what is under way end, say goodbye."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        if self._doorstep is not None:
            self._doorstep.close()
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
        self.desk.node.heard_from(connection.host)
        if not self.is_secure and not self._is_room():  # else it was asked on the doorstep
            return False
        if not self._peers.enter(connection.host):
            self._turn_away("limits.connections_per_peer_max")
            return False
        self._connections.add(connection)
        self.desk.connections += 1
        return True

    def _is_room(self) -> bool:
        if self._closing or self.connections >= self.desk.limits.connections_max:
            self._turn_away("frames.connections_max")
            return False
        return True

    def _turn_away(self, setting: str) -> None:
        self.turned_away += 1
        if not self._full and not self._closing:
            self._full = True  # told once, and again when there was room in between
            self.note(
                "warning",
                f"the frames listener has as many connections as {setting} allows",
                connections=self.connections,
            )

    def forget(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._peers.leave(connection.host)
            self.desk.connections -= 1
            self._full = False

    def note(self, level: Level, message: str, **fields: object) -> None:
        self.desk.node.note(level, message, **fields)

    def warn(self, message: str, **fields: object) -> None:
        """Tell what a peer did wrong; anybody can do any number of such things."""
        self._sparing.warn(self.loop.time(), message, **fields)

    def note_failure(self, cause: Exception, peer: str) -> None:
        """Write a failure of ours to the log, with the place where it happened."""
        frames = traceback.extract_tb(cause.__traceback__)[-4:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        told = f"{type(cause).__name__}: {cause}"
        self.note("error", "a frames connection failed", error=told, where=where, peer=peer)

    def _turn(self) -> None:
        self._sweep = self.loop.call_later(SWEEP_S, self._turn)
        self.now_s = now_s = self.loop.time()
        for connection in list(self._connections):
            connection.tick(now_s)


async def listen(
    desk: PerformanceDesk,
    address: str,
    *,
    flag: str,
    plays: frozenset[str] = BROKER,
    tls: ssl.SSLContext | None = None,
    budget: ReceiveBudget | None = None,
) -> FramesDoor:
    """Open the door; `flag` is the option that says where it is. Without the `budget` of other
    listeners it has one of its own."""
    node = desk.node
    own = budget or ReceiveBudget(node.settings.limits.receiving_bytes_max, node.note)
    door = FramesDoor(desk, flag, plays, own)
    await door.open(address, tls)
    return door
