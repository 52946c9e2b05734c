"""LinkConnection: one connection to another broker, as the service of links uses it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Final, cast

from tocsin.access.session import Session, anonymous
from tocsin.drivers.link.connections import LinkConnections
from tocsin.drivers.link.frame_count import FrameCount
from tocsin.drivers.listeners.stream_listener import socket_name
from tocsin.drivers.tls.site_context import certificate_session
from tocsin.errors import NotSignedIn
from tocsin.services.link.transport import Receiver, Transport

TURN_S: Final = 0.005  # in a turn of the loop: a heartbeat of others, or a request, waits so long
# Handed on before the clock is looked at, or the rest of a message: some 80 small messages, which
# take 10 to 30 ms, while a batch of events is as large as it is.
PIECE_BYTES: Final = 4 << 10
CLOSING_S: Final = 5.0  # for a neighbour to take what was written before the end

Opened = Callable[[Transport], Receiver]
Admit = Callable[["LinkConnection"], bool]


class LinkConnection(asyncio.Protocol):
    """A Transport. `admit` may refuse a connection that somebody else opened.

    What comes is handed on in pieces, for a short while in each turn of the loop: a neighbour may
    send in a moment what takes seconds to handle. Meanwhile nothing more is read of it.
    """

    def __init__(
        self, connections: LinkConnections, opened: Opened, admit: Admit | None = None
    ) -> None:
        self._connections = connections
        self._settings = connections.settings
        self._loop = connections.loop
        self._opened = opened
        self._admit = admit
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._share = connections.share()
        self._incoming = FrameCount()
        self._held: deque[bytes] = deque()  # came, and is not handed on yet
        self._is_paused = False  # nothing is read until that is handed on
        self._began_s = inf  # the message that is not yet whole
        self._unsent: list[bytes] = []  # until the next turn of the loop: many writes, one call
        self._unsent_bytes = 0
        self._flush: asyncio.Handle | None = None
        self._written_bytes = 0
        self._taken_bytes = 0  # by the network, when last looked
        self._taken_s = inf  # when that became more, or began to wait
        self._closing_s = inf
        self._reason = ""
        self.refusal: NotSignedIn | None = None  # of the certificate at the other side
        self._peer = ""
        self._session = anonymous("link")
        self.host = ""

    # What the service calls

    @property
    def peer(self) -> str:
        return self._peer

    @property
    def session(self) -> Session:
        return self._session

    @property
    def is_open(self) -> bool:
        """It was opened, and has not ended."""
        return self._receiver is not None

    @property
    def waiting(self) -> int:
        # With TLS less than the truth by what one write may have left in the system's buffer.
        transport = self._transport
        return 0 if transport is None else self._unsent_bytes + transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._transport is None or self._closing_s != inf:
            return
        if self._taken_s == inf:
            self._taken_s = self._loop.time()
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        self._written_bytes += len(data)
        if self._flush is None:
            self._flush = self._loop.call_soon(self._send)

    def close(self) -> None:
        if self._transport is None or self._closing_s != inf:
            return
        self._closing_s = self._loop.time() + CLOSING_S
        self._send()
        self._reason = self._reason or "this broker closed the connection"
        self._transport.close()

    def abort(self) -> None:
        self._closing_s = min(self._closing_s, self._loop.time())
        self._reason = self._reason or "this broker closed the connection"
        if self._transport is not None:
            self._transport.abort()

    # Called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        name = transport.get_extra_info("peername")
        self._transport = cast(asyncio.Transport, transport)
        self._peer = socket_name(name)
        self.host = str(name[0]) if isinstance(name, tuple) else ""
        if self._connections.is_closing or (self._admit is not None and not self._admit(self)):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=0)  # to be called when all has been taken
        self._connections.add(self)
        try:
            self._session = certificate_session(
                anonymous("link", self._peer), transport.get_extra_info("ssl_object")
            )
            self._receiver = self._opened(self)
        except NotSignedIn as error:
            self._connections.warn(error.problem, code=error.code, peer=self._peer)
            self.refusal = error
            self.abort()
        except Exception as error:  # a bug: it costs this connection alone
            self._fail(error)

    def data_received(self, data: bytes) -> None:
        if self._receiver is None or self._closing_s != inf:
            return
        self._held.append(data)
        if self._is_paused:  # TLS had some more
            return
        if self.hand_on(monotonic() + TURN_S) and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
            self._connections.hand_on_later(self)

    def hand_on(self, until_s: float) -> bool:
        """What came, until this time by the monotonic clock. True if there is more."""
        while self._held and self._receiver is not None and self._closing_s == inf:
            if self._receiver.is_busy:
                return True
            self._hand_on_piece(self._receiver)
            if self._held and monotonic() >= until_s:
                return True
        self._held.clear()
        if self._is_paused:
            self._read_again()
        return False

    def _hand_on_piece(self, receiver: Receiver) -> None:
        data = self._held.popleft()
        size = max(PIECE_BYTES, self._incoming.missing)
        if len(data) > size:
            self._held.appendleft(data[size:])
            data = data[:size]
        self._incoming.receive(data)
        try:
            receiver.received(data)
        except Exception as error:  # a bug: it costs this connection alone
            self._fail(error)
            return
        waiting = self._incoming.waiting
        self._began_s = min(self._began_s, self._loop.time()) if waiting else inf
        if not self._share.hold(waiting):
            self._cut_off(self._share.refuse().problem)

    def _read_again(self) -> None:
        self._is_paused = False
        if self._incoming.waiting:
            self._began_s = self._loop.time()  # the rest could not be read before
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def resume_writing(self) -> None:
        self._all_taken()

    def connection_lost(self, error: Exception | None) -> None:
        receiver, self._receiver = self._receiver, None
        self._transport = None
        self._connections.remove(self)
        self._share.hold(0)
        self._unsent, self._unsent_bytes = [], 0
        self._held.clear()
        if self._flush is not None:
            self._flush.cancel()
        if receiver is None:
            return
        reason = self._reason or _words(error)
        try:
            receiver.ended(reason)
        except Exception as failure:
            self._connections.note_failure(failure, self._peer)

    # Called by the timer

    def excuse(self, late_s: float) -> None:
        """For so long this broker could neither read nor notice that something was taken."""
        self._began_s += late_s
        self._taken_s += late_s

    def tick(self, now_s: float) -> None:
        """Look whether a deadline has passed."""
        settings, incoming = self._settings, self._incoming.waiting
        allowed_s = settings.message_deadline_s + incoming / max(1, settings.bytes_per_s_min)
        if now_s >= self._closing_s:
            self.abort()
        elif not self._is_paused and now_s >= self._began_s + allowed_s:
            self._cut_off(f"only {incoming} bytes of a message arrived in time")
        else:
            self._look_at_the_reader(now_s)

    def _look_at_the_reader(self, now_s: float) -> None:
        waiting = self.waiting
        taken = self._written_bytes - waiting
        if not waiting:
            self._all_taken()
        elif taken > self._taken_bytes:
            self._taken_bytes, self._taken_s = taken, now_s
        elif now_s >= self._taken_s + self._settings.stalled_reader_s:
            self._cut_off("it does not read what it is sent")

    # Ours

    def _send(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if self._transport is None or not self._unsent:
            return
        unsent, self._unsent, self._unsent_bytes = self._unsent, [], 0
        self._transport.writelines(unsent)
        if not self.waiting:
            self._all_taken()

    def _all_taken(self) -> None:
        """The network has taken everything; the service is told once."""
        if self._taken_s == inf or self.waiting:
            return
        self._taken_s = inf
        self._taken_bytes = self._written_bytes
        if self._receiver is None or self._closing_s != inf:
            return
        try:
            self._receiver.written()
        except Exception as error:  # a bug: it costs this connection alone
            self._fail(error)

    def _cut_off(self, why: str) -> None:
        self._reason = self._reason or why
        self._connections.warn("a link to another broker was cut off", why=why, peer=self._peer)
        self.abort()

    def _fail(self, error: Exception) -> None:
        self._connections.note_failure(error, self._peer)
        self._reason = self._reason or "this broker failed to handle it"
        self.abort()


def _words(error: Exception | None) -> str:
    if error is None:
        return "the other side closed the connection"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
