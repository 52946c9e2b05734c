"""Connection: one peer on TCP or TLS. What it sends waits here, in order and in bounds, until the
session has taken what came before; a peer that sends faster than we store is held back by TCP."""

from __future__ import annotations

import asyncio
import socket
from math import inf
from typing import Protocol, cast

from tocsin.access.session import anonymous
from tocsin.broker.effects import Level
from tocsin.config.tables import FramesSettings
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.listeners.connection_quotas import ConnectionQuotas
from tocsin.drivers.listeners.stream_listener import socket_name
from tocsin.drivers.tls.site_context import certificate_session
from tocsin.errors import BadFrame, NotSignedIn, QuotaReached, TocsinError, TooSlow
from tocsin.services.performance.service import PerformanceService
from tocsin.services.performance.session import PerformanceSession
from tocsin.wire.framing import HEAD, FrameSplitter

WAITING_BYTES_MAX = 256 << 10
WRITE_BUFFER_BYTES = 256 << 10  # unread by the peer, before the broker waits for it
UNREAD_BYTES_MAX = 8 << 20  # of replies that a peer asks for and does not read
KEEPALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 20), (socket.TCP_KEEPCNT, 3))
CLOSING_S = 10.0  # for a peer to read the last replies


class Listener(Protocol):
    """What a connection needs of the listener that accepted it."""

    name: str
    service: PerformanceService
    settings: FramesSettings
    roles: frozenset[str]
    loop: asyncio.AbstractEventLoop
    now_s: float
    is_secure: bool
    failed: int
    budget: ReceiveBudget
    quotas: ConnectionQuotas | None

    def admit(self, connection: Connection) -> bool: ...

    def forget(self, connection: Connection) -> None: ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    def warn(self, message: str, **fields: object) -> None: ...

    def note_failure(self, cause: Exception, peer: str) -> None: ...


class Connection(asyncio.Protocol):
    """Frames in, frames out."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._limits = listener.settings
        self._splitter = FrameSplitter(self._limits.message_bytes_max)
        self._frames: list[bytes] = []
        self._waiting_bytes = 0
        self._share = listener.budget.share()
        self._worker: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._session: PerformanceSession | None = None
        self._began_s = 0.0  # the message that is not yet whole
        self._last_read_s = 0.0
        self._stalled_s = inf  # since when the peer reads nothing
        self._writable = asyncio.Event()
        self._writable.set()
        self._closing_s = inf
        self._ends = False  # as soon as nothing is under way
        self._wrong: TocsinError | None = None  # why; what came before it is taken yet
        self.peer = ""
        self.host = ""

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self.peer = socket_name(name)
        self.host = str(name[0]) if isinstance(name, tuple) else ""
        if not self._listener.admit(self):
            self._transport.abort()
            return
        handle = transport.get_extra_info("socket")
        if handle is not None and handle.family in (socket.AF_INET, socket.AF_INET6):
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in KEEPALIVE:
                handle.setsockopt(socket.IPPROTO_TCP, option, value)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._last_read_s = self._listener.now_s
        listener = self._listener
        try:
            caller = certificate_session(
                anonymous(listener.name, self.peer), transport.get_extra_info("ssl_object")
            )
            if listener.quotas is not None:
                listener.quotas.connected(self, caller)
        except (NotSignedIn, QuotaReached) as error:
            self._note(error)
            self._transport.abort()
            return
        self._session = PerformanceSession(
            listener.service, self, caller, listener.roles, in_order=True
        )

    def data_received(self, data: bytes) -> None:
        if self._closing_s != inf or self._wrong is not None:
            return
        self._last_read_s = now_s = self._listener.now_s
        if not self._splitter.waiting:
            self._began_s = now_s
        try:
            frames = self._splitter.split(data)
            self._wrong = self._splitter.refusal
        except TocsinError as error:
            # Its traceback has us, and what came: it would all stay until a collection.
            frames, self._wrong = [], error.with_traceback(None)
        if frames:
            self._began_s = now_s
            self._frames += frames
            self._waiting_bytes += sum(map(len, frames))
            if self._worker is None:
                self._worker = self._listener.loop.create_task(self._work())
            elif self._waiting_bytes > WAITING_BYTES_MAX and self._transport is not None:
                self._transport.pause_reading()
        elif self._wrong is not None:
            self._end_if_done()
        self._hold(self._splitter.waiting + self._waiting_bytes)

    def eof_received(self) -> bool:
        """The peer sends no more: answer what it asked, then hang up."""
        self._ends = True
        self._wrong = self._wrong or self._cut_short()
        self._end_if_done()
        return not self._listener.is_secure  # TLS has no half of a connection to keep

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        if self._worker is None:
            self._listener.forget(self)
        if self._session is not None:
            self._session.lost()
        self._wrong = self._wrong or self._cut_short()
        self._end_if_done()
        self._let_go()

    def _let_go(self) -> None:
        """Hold on to nothing: who came and went with megabytes must not wait for a collection."""
        if self._transport is None and self._worker is None:
            self._splitter = FrameSplitter(self._limits.message_bytes_max)
            self._frames = []
            self._session = None
            self._hold(0)

    def _hold(self, size: int) -> None:
        """So many bytes of the peer's are here now; all peers together may have only so many."""
        if not self._share.hold(size):
            self._fail(self._share.refuse())

    def pause_writing(self) -> None:
        self._stalled_s = self._listener.now_s
        self._writable.clear()

    def resume_writing(self) -> None:
        self._stalled_s = inf
        self._writable.set()
        if self._session is not None:
            self._session.writable()

    # Called by the session

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        transport = self._transport
        if transport is None or not messages:
            return self._stalled_s == inf
        pack = HEAD.pack
        transport.write(b"".join([part for each in messages for part in (pack(len(each)), each)]))
        if not paced and transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            self._fail(_unread())
        return self._stalled_s == inf

    async def wait_writable(self) -> None:
        """Until the peer has read what it was sent: what it asks next can wait so long."""
        await self._writable.wait()
        if self._transport is None:
            raise _unread()

    # Called by the listener

    def tick(self, now_s: float) -> None:
        """Look whether a deadline has passed."""
        limits = self._limits
        if now_s >= self._closing_s:
            self.abort()
        elif now_s >= self._stalled_s + limits.stalled_reader_s:
            self._fail(_unread())
            self.abort()
        elif self._worker is not None:
            return
        elif self._splitter.waiting:
            flow_s = self._splitter.waiting / limits.bytes_per_s_min
            if now_s >= self._began_s + limits.message_deadline_s + flow_s:
                self._fail(
                    TooSlow(
                        f"only {self._splitter.waiting} bytes of a message arrived in time",
                        remedy="Send it faster, or raise frames.message_deadline_s.",
                    )
                )
        elif now_s >= self._last_read_s + limits.idle_s and not self._is_subscribed():
            self._listener.note(
                "info", "no message for frames.idle_s: connection closed", peer=self.peer
            )
            self._hang_up()

    def stop(self) -> None:
        """The broker stops: let what is under way end, say goodbye, hang up."""
        self._ends = True
        self._end_if_done()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _is_subscribed(self) -> bool:
        return self._session is not None and self._session.is_subscribed

    async def _work(self) -> None:
        session = self._session
        assert session is not None, "there was a connection"
        try:
            while self._frames and self._closing_s == inf:
                frames, self._frames, self._waiting_bytes = self._frames, [], 0
                if self._transport is not None:
                    self._transport.resume_reading()
                await session.take(frames)
        except TocsinError as error:
            self._fail(error)
        except Exception as error:  # a bug: it costs this connection alone
            self._listener.note_failure(error, self.peer)
            self._hang_up()
        finally:
            self._worker = None
            self._hold(self._splitter.waiting + self._waiting_bytes)
            self._began_s = self._last_read_s = self._listener.now_s  # nothing could come meanwhile
        if self._transport is None:
            self._listener.forget(self)  # counted until now: it held what it had sent
            session.lost()  # again: it may have subscribed to something yet
            self._let_go()
        self._end_if_done()

    def _end_if_done(self) -> None:
        """Hang up if there is a reason to, and nothing of what came before is under way."""
        if self._worker is not None:
            return
        if self._wrong is not None:
            self._fail(self._wrong)
        elif self._ends:
            self._hang_up()

    def _cut_short(self) -> BadFrame | None:
        if not self._splitter.waiting:
            return None
        return BadFrame(
            "the peer closed the connection in the middle of a message, "
            f"after {self._splitter.waiting} bytes of it",
            remedy="Send each message whole, with its true length in front.",
        )

    def _fail(self, error: TocsinError) -> None:
        if self._closing_s == inf:
            self._note(error)
            self._hang_up()

    def _note(self, error: TocsinError) -> None:
        self._listener.failed += 1
        self._listener.warn(error.problem, code=error.code, remedy=error.remedy, peer=self.peer)

    def _hang_up(self) -> None:
        """Close when what was written has been sent, or soon."""
        if self._closing_s != inf:
            return
        self._closing_s = self._listener.now_s + CLOSING_S
        if self._session is not None and self._transport is not None:
            self._session.end()
        if self._transport is not None:
            self._transport.close()


def _unread() -> TooSlow:
    return TooSlow(
        "the peer does not read what it is sent",
        remedy="Read it as it comes, or raise frames.stalled_reader_s.",
    )
