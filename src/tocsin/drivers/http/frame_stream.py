"""`POST /gma?role=consumer`: a subscription whose events come back in the answer, as frames."""

from __future__ import annotations

import asyncio
from math import inf

from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.session import session_of
from tocsin.drivers.http.streams import begin_stream
from tocsin.errors import TocsinError
from tocsin.services.performance.http_sessions import unframed
from tocsin.services.performance.service import PerformanceService
from tocsin.services.performance.session import PerformanceSession
from tocsin.wire.framing import framed

_HEAD = b"content-type: application/octet-stream\r\ncache-control: no-store\r\n"


def wants_stream(request: Request) -> bool:
    """True if whoever asks says that it is a consumer."""
    if request.query == b"role=consumer":
        return True
    return b"SubscribeRequest" in request.body and b'role="consumer"' in request.body


class FrameStream:
    """One consumer by HTTP: the reply to its request, then its events, each with its length."""

    takes_over = True
    is_long_lived = True

    def __init__(
        self, connection: Connection, request: Request, service: PerformanceService
    ) -> None:
        self.name = f"frames to {connection.peer}"
        self._connection = connection
        self._message = unframed(request.body)
        caller = session_of(connection, request.headers)
        self._session: PerformanceSession | None = PerformanceSession(service, self, caller)
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False

    # Called by the connection

    def start(self) -> None:
        begin_stream(self._connection, _HEAD)
        self._task = self._connection.server.loop.create_task(self._begin())

    async def _begin(self) -> None:
        session, message = self._session, self._message
        self._message = b""
        if session is None:
            return
        try:
            await session.take([message])
        except TocsinError as error:
            server = self._connection.server
            server.note("warning", error.problem, code=error.code, peer=self._connection.peer)
        self._has_begun = True
        if self._session is None:
            session.lost()  # again: it may have subscribed to something yet
        elif not session.is_subscribed:
            self._close()

    def received(self, data: bytes) -> None:
        """Nothing more is read from this connection."""

    def writable(self) -> None:
        if self._session is not None:
            self._session.writable()

    def ended_by_client(self) -> None:
        self._close()

    def lost(self) -> None:
        if self._session is not None:
            self._session.lost()
            self._session = None  # it has us: together we would be a cycle

    def tick(self) -> float:
        return inf

    def stop(self) -> None:
        if self._session is not None:
            self._session.end()
        self._close()

    # Called by the session

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        self._connection.write(b"".join(map(framed, messages)))
        if self._has_begun and self._session is not None and not self._session.is_subscribed:
            self._close()  # that was the goodbye: the broker has ended it
        return not self._connection.write_paused

    async def wait_writable(self) -> None:
        """Only one message is read: there is nothing to hold back."""

    def _close(self) -> None:
        self.lost()
        self._connection.close()
