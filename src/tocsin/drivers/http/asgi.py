"""A bridge to an ASGI application: one whole request in, one answer out, at the client's pace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from math import inf
from typing import Any

from tocsin.drivers.http import answers
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.session import SCOPE_KEY, session_of
from tocsin.errors import TooLarge
from tocsin.services.publishing.content_encoding import decoded
from tocsin.wire.api.problem import internal_error

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

# One document in JSON is read while everybody waits, about a quarter of a second a megabyte at
# worst. Where many events come in one body, each is read on its own, and quicker.
DOCUMENT_BYTES_MAX = 4 << 20
MANY_EVENTS = frozenset({"/events", "/blackboard/messages", "/gma"})

_BODILESS = frozenset({204, 304})
_LAST_CHUNK = b"0\r\n\r\n"


class AsgiExchange:
    """A request that the application answers."""

    takes_over = False

    def __init__(self, connection: Connection, request: Request, application: Application) -> None:
        self.name = f"{request.method.decode()} {request.path[:200]}"
        self.is_long_lived = b"wait=" in request.query  # at a box
        self._connection = connection
        self._request = request
        self._application = application
        self._session = connection.session
        self._body: bytes | None = None
        self._head: bytes | None = None  # made, and not yet written
        self._status = 0
        self._chunked = False
        self._keep_alive = request.keep_alive
        self._complete = False
        loop = connection.server.loop
        self._gone: asyncio.Future[None] = loop.create_future()
        self._drained: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    # Called by the connection

    def start(self) -> None:
        request, server = self._request, self._connection.server
        self._session = session_of(self._connection, request.headers)
        coding = request.headers.get(b"content-encoding")
        self._body = request.body
        if coding is not None:
            self._body = decoded(request.body, coding, server.limits.body_bytes_max)
        if len(self._body) > DOCUMENT_BYTES_MAX and request.path not in MANY_EVENTS:
            raise TooLarge(
                f"the body has {len(self._body)} bytes",
                remedy=f"Send at most {DOCUMENT_BYTES_MAX} bytes to {request.path[:100]}.",
            )
        self._task = server.loop.create_task(self._run())

    def received(self, data: bytes) -> None:
        raise AssertionError("this exchange takes over nothing")

    def writable(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def ended_by_client(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)

    def lost(self) -> None:
        self.ended_by_client()
        self.writable()

    def tick(self) -> float:
        return inf

    def stop(self) -> None:
        """A request in progress may end by itself; whoever waits is woken by the server."""

    # Called by the application

    async def _run(self) -> None:
        connection = self._connection
        try:
            await self._application(self._scope(), self._receive, self._send)
        except Exception as error:
            connection.server.note_failure("a request failed", error, request=self.name)
        if connection.transport is None:
            return
        if self._status == 0:
            self._answer_failure()
        elif not self._complete:
            connection.abort()  # half an answer must not look like a whole one
        else:
            connection.finished(keep_alive=self._keep_alive)

    def _scope(self) -> Message:
        request, transport = self._request, self._connection.transport
        assert transport is not None
        server = transport.get_extra_info("sockname")
        client = transport.get_extra_info("peername")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": request.version,
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "path": request.path,
            "raw_path": request.raw_path,
            "query_string": request.query,
            "root_path": "",
            "headers": list(request.headers.items()),
            "client": client[:2] if isinstance(client, tuple) else None,
            "server": server[:2] if isinstance(server, tuple) else None,
            SCOPE_KEY: self._session,
        }

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await asyncio.shield(self._gone)
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", []))
            return
        assert message["type"] == "http.response.body", message["type"]
        self._write(message.get("body", b""), is_last=not message.get("more_body", False))
        if self._connection.write_paused and self._connection.transport is not None:
            self._drained = self._connection.server.loop.create_future()
            await self._drained

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        assert self._status == 0, "the answer has begun already"
        self._status = status
        names = {name.lower() for name, _ in headers}
        lines = [
            answers.status_line(status),
            self._connection.server.response_heads.date,
            answers.SERVER,
            *(b"%b: %b\r\n" % header for header in headers),
        ]
        if b"content-length" not in names and status not in _BODILESS:
            if self._request.version == "1.1":
                self._chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self._keep_alive = False  # in HTTP/1.0 only the end tells the length
        lines.append(answers.connection_header(self._request.version, keep_alive=self._keep_alive))
        self._head = b"".join(lines) + b"\r\n"

    def _write(self, body: bytes, *, is_last: bool) -> None:
        assert self._status, "the answer has not begun"
        assert not self._complete, "the answer was complete"
        if self._request.method == b"HEAD" or self._status in _BODILESS:
            body = b""
        elif self._chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if is_last:
                body += _LAST_CHUNK
        if self._head is not None:
            body, self._head = self._head + body, None
        self._complete = is_last
        if body:
            self._connection.write(body)

    def _answer_failure(self) -> None:
        is_head = self._request.method == b"HEAD"
        response_heads = self._connection.server.response_heads
        self._connection.write(
            answers.refused(
                response_heads, internal_error(), self._request.connection_header, head=is_head
            )
        )
        self._connection.finished(keep_alive=self._keep_alive)
