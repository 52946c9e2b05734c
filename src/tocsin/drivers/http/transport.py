"""The side of a connection that faces its transport: writing, stalled readers, closing, and how
much of what the client sent is held."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final

from tocsin.access.session import Session, anonymous
from tocsin.drivers.http.server import HttpServer
from tocsin.drivers.http.session import ENDPOINT
from tocsin.drivers.listeners.budget import OWN_BYTES_MAX

# What the bytes that come in are for.
REQUESTS: Final = 0
EXCHANGE: Final = 1  # one that keeps the connection: a stream or a socket
NOBODY: Final = 2  # the final answer is sent, or will be; what still comes is discarded


class ClientTransport(asyncio.Protocol):
    """What every connection does, whatever is sent on it."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.transport: asyncio.Transport | None = None
        self.peer = ""
        self.session = anonymous(ENDPOINT)
        self.signed_in: tuple[bytes, Session] = (b"", self.session)  # by the last such header
        self.deadline_s = inf
        self.write_paused = False
        self._is_silent = True  # until its first request
        self._reading_for: int = REQUESTS
        self._stalled_bytes = 0
        self._share = server.budget.share()
        self._active_bytes = 0  # of the request, or of a message, that is being handled

    def _take_transport(self, transport: asyncio.BaseTransport) -> str:
        """Returns the address of the peer, without the port."""
        self.transport = transport  # type: ignore[assignment]  # uvloop's is no asyncio.Transport
        peer = transport.get_extra_info("peername")
        if not isinstance(peer, tuple):
            self.peer = "?"
            return ""
        self.peer = f"{peer[0]}:{peer[1]}"
        self.session = anonymous(ENDPOINT, self.peer)
        return str(peer[0])

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """Close once everything is written, unless the client takes too long to read it."""
        if self.transport is not None:
            self._reading_for = NOBODY
            self.deadline_s = self.server.now_s + self.server.limits.stalled_reader_s
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _pause(self) -> None:
        self.write_paused = True
        if self.transport is not None:
            self._stalled_bytes = self.transport.get_write_buffer_size()

    def _check_stalled(self, now_s: float, what: str) -> None:
        """The client has read nothing for a while: disconnect it, unless it did."""
        assert self.transport is not None
        unread_bytes = self.transport.get_write_buffer_size()
        if unread_bytes < self._stalled_bytes:
            self._stalled_bytes = unread_bytes
            self.deadline_s = now_s + self.server.limits.stalled_reader_s
            return
        message = "a client did not read for too long and was disconnected"
        self.server.note("warning", message, client=what, unread_bytes=unread_bytes)
        self.abort()

    def hold(self, size: int) -> bool:
        """The exchange holds so much of what the client sent; False if there is no room for it."""
        self._active_bytes = size
        if size == self._share.held_bytes or self._share.hold(size):
            return True
        self._share.refuse()  # which notes and counts it
        return False

    @property
    def _in_haste(self) -> bool:
        """Much of the room that many wait for is taken by what this client sends."""
        return self._share.held_bytes > OWN_BYTES_MAX and self.server.budget.is_tight
