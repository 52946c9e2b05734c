"""The door itself: monitoring daemons connect, write events, and get no answer.

Their protocol knows none. So what has come is put on disk before more of it is read: whoever sends
faster than that is slowed down by TCP itself. What was read and not stored when the broker stops is
lost to us, and nobody but the sender can send it again; ids are such that all of it may be sent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tocsin.config import PegasusSettings
from tocsin.drivers.bind_address import host_and_port
from tocsin.drivers.receiving import events_from, received
from tocsin.errors import BadSetting, ShuttingDown, TocsinError
from tocsin.event.event import Event
from tocsin.wire.pegasus import Cutter, Stampede

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

BACKLOG: Final = 128
READ_BYTES: Final = 64 << 10
TLS_HANDSHAKE_S: Final = 10.0
CLOSING_S: Final = 0.5  # for what is on its way to the disk
RETRY_S: Final = 1.0  # while the disk is full, or more waits for it than may
BAD_NOTED_MAX: Final = 5  # of one connection; the rest is only counted
RECORDS_AT_ONCE: Final = 100  # before others have their turn: a piece may hold thousands


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """How many may come, and how long they may be silent."""

    connections_max: int = 200
    idle_s: float = 86_400.0  # a daemon has nothing to say while a long job runs
    record_deadline_s: float = 60.0  # for the rest of an event that has begun
    record_bytes_max: int = 1 << 20


@dataclass(slots=True)
class Counts:
    """What came by the door so far."""

    records: int = 0
    messages: int = 0
    bad: int = 0
    turned_away: int = 0


class PegasusDoor:
    """An open door."""

    def __init__(self, node: Node, limits: DoorLimits) -> None:
        self._node = node
        self._limits = limits
        self._stampede = Stampede()
        self._event_limits = node.settings.event_limits()
        self._server: asyncio.Server | None = None
        self._sessions: dict[asyncio.Task[None], _Session] = {}
        self._closing = False
        self._full = False
        self.counts = Counts()
        self.host = ""
        self.port = 0

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def unknown(self) -> int:
        """How many events were of a kind that is not known."""
        return self._stampede.unknown

    async def open(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.host, port = host_and_port(address)
        try:
            self._server = await asyncio.start_server(
                self._welcome,
                self.host,
                port,
                limit=READ_BYTES,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else TLS_HANDSHAKE_S,
            )
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {error}",
                remedy="Choose another address with --pegasus HOST:PORT; port 0 takes any free "
                "one, and --pegasus off does without this door.",
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Read no more, let what was read reach the disk, hang up."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for task, session in self._sessions.items():
            session.stopping = True
            if not session.storing:
                task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=CLOSING_S)
        for task in self._sessions:
            task.cancel()
        if self._sessions:
            await asyncio.wait(self._sessions)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing or len(self._sessions) >= self._limits.connections_max:
            self._turn_away(writer)
            return
        connection = writer.get_extra_info("socket")
        if connection is not None:
            # A host that is gone says no goodbye, and a day is long.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        session = _Session(self, reader, _peer(writer), self._limits)
        task = asyncio.get_running_loop().create_task(self._serve(session, writer))
        self._sessions[task] = session
        task.add_done_callback(self._forget)

    def _turn_away(self, writer: asyncio.StreamWriter) -> None:
        self.counts.turned_away += 1
        writer.transport.abort()
        if not self._full and not self._closing:
            self._full = True  # told once, and again when there was room in between
            self._node.note(
                "warning",
                "the Pegasus door has as many connections as it may",
                connections=len(self._sessions),
            )

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._sessions[task]
        self._full = False

    async def _serve(self, session: _Session, writer: asyncio.StreamWriter) -> None:
        try:
            await session.run()
        except OSError:
            pass  # the peer is gone
        except ShuttingDown:
            self._node.note("warning", "events of Pegasus were not stored", peer=session.peer)
        except Exception as error:
            # A bug. It costs this connection and is told; the others go on.
            trace = "".join(traceback.format_exception(error))
            self._node.note("error", "a Pegasus connection failed", trace=trace, peer=session.peer)
        finally:
            session.told_at_the_end()
            writer.close()
            with suppress(OSError):
                async with asyncio.timeout(CLOSING_S):
                    await writer.wait_closed()

    # What sessions call

    def read(self, record: bytes) -> list[Event]:
        """The events of one record. Raises what is wrong with it."""
        self.counts.records += 1
        messages = self._stampede.read(record, received(self._node))
        events = events_from(messages, self._event_limits)
        self.counts.messages += len(events)
        return events

    def note_bad(self, error: TocsinError, peer: str, *, is_told: bool) -> None:
        self.counts.bad += 1
        if is_told:
            self._node.note("warning", error.problem, code=error.code, peer=peer)

    def note_lost(self, problem: str, peer: str, **fields: object) -> None:
        self._node.note("warning", problem, peer=peer, **fields)

    async def store(self, events: list[Event]) -> None:
        """Put them on disk, however long it takes. Raises ShuttingDown."""
        broker = self._node.broker
        is_told = False
        while True:
            try:
                await self._node.ask(lambda token, _: broker.publish(events, token))
                return
            except ShuttingDown:
                raise
            except TocsinError as error:
                if not is_told:
                    self._node.note("warning", "events of Pegasus wait", why=error.problem)
                is_told = True
                await asyncio.sleep(RETRY_S)


class _Session:
    """One connection."""

    def __init__(
        self, door: PegasusDoor, reader: asyncio.StreamReader, peer: str, limits: DoorLimits
    ) -> None:
        self._door = door
        self._reader = reader
        self._limits = limits
        self._cutter = Cutter(limits.record_bytes_max)
        self._bad = 0
        self.peer = peer
        self.storing = False
        self.stopping = False

    async def run(self) -> None:
        """Until the peer has said all, or nothing for too long."""
        while not self.stopping:
            between = self._cutter.is_between_records
            patience_s = self._limits.idle_s if between else self._limits.record_deadline_s
            try:
                async with asyncio.timeout(patience_s):
                    data = await self._reader.read(READ_BYTES)
            except TimeoutError:
                if not between:
                    self._door.note_lost("an event of Pegasus did not come whole", self.peer)
                return
            if not data:
                await self._store([self._cutter.end()])
                return
            await self._store(list(self._cutter.receive(data)))

    async def _store(self, records: list[bytes]) -> None:
        self.storing = True
        try:
            if events := await self._read(records):
                await self._door.store(events)
        finally:
            self.storing = False

    async def _read(self, records: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for number, record in enumerate(records, 1):
            if number % RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not record:
                continue
            try:
                events += self._door.read(record)
            except TocsinError as error:
                self._bad += 1
                self._door.note_bad(error, self.peer, is_told=self._bad <= BAD_NOTED_MAX)
        return events

    def told_at_the_end(self) -> None:
        """Say what was left out, where not every single one was told of."""
        too_long = self._cutter.too_long
        self._door.counts.bad += too_long
        if too_long or self._bad > BAD_NOTED_MAX:
            self._door.note_lost(
                "not everything that came from Pegasus could be read",
                self.peer,
                bad=self._bad,
                too_long=too_long,
            )


def _peer(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) and len(name) >= 2 else ""


def door_limits(settings: PegasusSettings) -> DoorLimits:
    """The limits that the settings name."""
    return DoorLimits(
        connections_max=settings.connections_max,
        idle_s=settings.idle_s,
        record_bytes_max=settings.line_bytes_max,
    )


async def listen(
    node: Node,
    address: str,
    limits: DoorLimits | None = None,
    *,
    tls: ssl.SSLContext | None = None,
) -> PegasusDoor:
    """Open the door; what comes by it is published by the node."""
    door = PegasusDoor(node, limits or DoorLimits())
    await door.open(address, tls)
    return door
