"""The listener for pegasus-monitord: daemons connect, write events, and get no answer.

Their protocol has none. So events are stored before more is read: whoever sends faster than that is
slowed down by TCP. What was read and not stored when the broker stops is lost here, and only the
sender can send it again; ids are such that all of it may be sent again.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from dataclasses import dataclass
from typing import Final

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.config import PegasusSettings, Settings
from tocsin.drivers.engine_messages import events_from, received
from tocsin.drivers.listeners.budget import ReceiveBudget, Share
from tocsin.drivers.listeners.stream_listener import READ_BYTES, StreamListener, hang_up
from tocsin.errors import BadFrame, Busy, NotAllowed, NotSignedIn, ShuttingDown, TocsinError
from tocsin.event.event import Event
from tocsin.wire.pegasus import RecordSplitter, Stampede

RETRY_S: Final = 1.0  # while the disk is full, or more waits for it than may
BAD_NOTED_MAX: Final = 5  # of one connection; the rest is only counted
RECORDS_AT_ONCE: Final = 100  # before others have their turn: a piece may hold thousands


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """How many connections there may be, and how long they may be idle."""

    connections_max: int = 200
    idle_s: float = 86_400.0  # a daemon sends nothing while a long job runs
    record_deadline_s: float = 60.0  # for the rest of an event that has begun
    record_bytes_max: int = 1 << 20


@dataclass(slots=True)
class Counts:
    """What was received so far."""

    records: int = 0
    messages: int = 0
    bad: int = 0


class PegasusListener(StreamListener["_Session"]):
    """An open listener."""

    flag = "--pegasus"
    endpoint = "pegasus"
    name = "Pegasus"

    def __init__(
        self, port: BrokerPort, settings: Settings, limits: ListenerLimits, budget: ReceiveBudget
    ) -> None:
        per_peer_max = settings.limits.connections_per_peer_max
        self._note = port.runtime.note
        super().__init__(limits.connections_max, per_peer_max, self._note, port.peer_connected)
        self._broker = port
        self._limits = limits
        self._budget = budget
        self._stampede = Stampede()
        self._event_limits = settings.event_limits()
        self.counts = Counts()

    @property
    def unknown(self) -> int:
        """How many events were of a kind that is not known."""
        return self._stampede.unknown

    def _session(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, caller: Session
    ) -> _Session:
        connection = writer.get_extra_info("socket")
        if connection is not None:
            # A host that is gone closes nothing, and a day is long.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return _Session(self, reader, caller, self._limits, self._budget.share())

    async def _serve(self, session: _Session, writer: asyncio.StreamWriter) -> None:
        try:
            await session.run()
        except (BadFrame, Busy, NotAllowed, NotSignedIn) as error:
            self.note_lost(error.problem, session.peer, code=error.code, remedy=error.remedy)
        except OSError:
            pass  # the peer is gone
        except ShuttingDown:
            self._note("warning", "events from Pegasus were not stored", peer=session.peer)
        except Exception as error:
            # A bug. It costs this connection and is noted; the others go on.
            trace = "".join(traceback.format_exception(error))
            self._note("error", "a Pegasus connection failed", trace=trace, peer=session.peer)
        finally:
            session.note_at_the_end()
            await hang_up(writer)

    # What sessions call

    def read(self, record: bytes) -> list[Event]:
        """The events of one record. Raises what is wrong with it."""
        self.counts.records += 1
        messages = self._stampede.read(record, received(self._broker.runtime))
        events = events_from(messages, self._event_limits)
        self.counts.messages += len(events)
        return events

    def note_bad(self, error: TocsinError, peer: str, *, is_noted: bool) -> None:
        self.counts.bad += 1
        if is_noted:
            self._note("warning", error.problem, code=error.code, peer=peer)

    def note_lost(self, problem: str, peer: str, **fields: object) -> None:
        self._note("warning", problem, peer=peer, **fields)

    async def store(self, session: Session, events: list[Event]) -> None:
        """Put them on disk, however long it takes. Raises ShuttingDown, NotAllowed
        and NotSignedIn."""
        is_noted = False
        while True:
            try:
                await self._broker.publish(session, events)
                return
            except (ShuttingDown, NotAllowed, NotSignedIn):
                raise
            except TocsinError as error:
                if not is_noted:
                    self._note(
                        "warning", "events from Pegasus are waiting to be stored", why=error.problem
                    )
                is_noted = True
                await asyncio.sleep(RETRY_S)


class _Session:
    """One connection."""

    def __init__(
        self,
        listener: PegasusListener,
        reader: asyncio.StreamReader,
        caller: Session,
        limits: ListenerLimits,
        share: Share,
    ) -> None:
        self._listener = listener
        self._reader = reader
        self._limits = limits
        self._share = share
        self._splitter = RecordSplitter(limits.record_bytes_max)
        self._bad = 0
        self._has_begun = False  # with a record, as only monitord does
        self.peer = caller.peer
        self._access = caller
        self.is_busy = False
        self.stopping = False

    async def run(self) -> None:
        """Until the peer has sent everything, or nothing for too long. Raises BadFrame and Busy."""
        try:
            await self._run()
        finally:
            self._share.hold(0)

    async def _run(self) -> None:
        while not self.stopping:
            between = self._splitter.is_between_records
            patience_s = self._limits.idle_s if between else self._limits.record_deadline_s
            try:
                async with asyncio.timeout(patience_s):
                    data = await self._reader.read(READ_BYTES)
            except TimeoutError:
                if not between:
                    self._listener.note_lost("an event from Pegasus was incomplete", self.peer)
                return
            if not data:
                await self._store([self._splitter.end()])
                return
            await self._store(list(self._splitter.receive(data)))
            if not self._share.hold(self._splitter.waiting):
                raise self._share.refuse()

    async def _store(self, records: list[bytes]) -> None:
        self.is_busy = True
        try:
            if events := await self._read(records):
                await self._listener.store(self._access, events)
        finally:
            self.is_busy = False

    async def _read(self, records: list[bytes]) -> list[Event]:
        events: list[Event] = []
        if self._splitter.too_long and not self._has_begun:  # counted at the end
            raise _no_record("it is too long")
        for number, record in enumerate(records, 1):
            if number % RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not record:
                continue
            try:
                events += self._listener.read(record)
                self._has_begun = True
            except TocsinError as error:
                if not self._has_begun:
                    self._listener.counts.bad += 1
                    raise _no_record(error.problem) from None
                self._bad += 1
                self._listener.note_bad(error, self.peer, is_noted=self._bad <= BAD_NOTED_MAX)
        return events

    def note_at_the_end(self) -> None:
        """Note what was left out, if not every record was noted by itself."""
        too_long = self._splitter.too_long
        self._listener.counts.bad += too_long
        if too_long or self._bad > BAD_NOTED_MAX:
            self._listener.note_lost(
                "some records of Pegasus could not be read",
                self.peer,
                bad=self._bad,
                too_long=too_long,
            )


def _no_record(problem: str) -> BadFrame:
    """A web page can have a browser send lines here, but always behind the request of the browser;
    whatever does not begin with a record is therefore not read any further."""
    return BadFrame(
        f"the first data is not a Pegasus record: {problem}",
        remedy="Only pegasus-monitord may write to this port.",
    )


def listener_limits(settings: PegasusSettings) -> ListenerLimits:
    """The limits that the settings name."""
    return ListenerLimits(
        connections_max=settings.connections_max,
        idle_s=settings.idle_s,
        record_bytes_max=settings.line_bytes_max,
    )


async def listen(
    port: BrokerPort,
    settings: Settings,
    address: str,
    limits: ListenerLimits | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    budget: ReceiveBudget | None = None,
) -> PegasusListener:
    """Listen, and publish what is received. Without a `budget` it has one of its own."""
    own = budget or ReceiveBudget(settings.limits.receiving_bytes_max, port.runtime.note)
    listener = PegasusListener(port, settings, limits or ListenerLimits(), own)
    await listener.open(address, tls)
    return listener
