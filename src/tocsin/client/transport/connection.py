"""One keep-alive HTTP connection to a broker: request and response, or a response without end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext

from tocsin.client.closeable import Closeable
from tocsin.client.requests import JSON_HEADERS
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.http1 import MessageReader, request_bytes
from tocsin.client.transport.refusal import Response, refusal
from tocsin.client.transport.renewal import renew_if_due
from tocsin.client.transport.runtime import (
    BLOCKING,
    NO_ANSWER,
    Runtime,
    Stream,
    cannot_reach,
    connect_stream,
    lost_connection,
    run,
)
from tocsin.errors import CannotReachBroker, TocsinError

RESPONSE_TIMEOUT_S = 60.0  # between two reads of one response
BODY_BYTES_MAX = 256 * 1024 * 1024  # a response this long is a mistake, not a page

Headers = Iterable[tuple[str, str]]

_NO_LOCK = nullcontext()


class HttpConnection:
    """Opened on first use and again after it broke. For one thread or task at a time; with a
    `lock`, requests of several take turns."""

    def __init__(
        self,
        runtime: Runtime,
        broker: str | Address | None = None,
        *,
        timeout_s: float = RESPONSE_TIMEOUT_S,
        lock: AbstractAsyncContextManager[None] = _NO_LOCK,
    ) -> None:
        self.address = broker_address(broker)
        self.runtime = runtime
        self._lock = lock
        self._stream: Stream | None = None
        self._rest = b""
        self._timeout_s = timeout_s
        self._reader = MessageReader(response=True)  # of the response that is read
        self._excerpt = b""
        self._idle_s = timeout_s
        self._read_at_s = 0.0
        self._unproven = False  # nothing came yet from a broker that is addressed without TLS

    def close(self) -> None:
        """Close the stream; the next request opens another."""
        stream, self._stream = self._stream, None
        self._rest = b""
        if stream is not None:
            stream.close()

    def interrupt(self) -> None:
        """Wake whoever reads here, as if the broker had closed."""
        if self._stream is not None:
            self._stream.interrupt()

    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Headers = (),
        timeout_s: float | None = None,
    ) -> Response:
        """Send a request and read its response. A reused connection that turns out closed is
        opened again, except for a POST."""
        data = await self.encode(method, target, body=body, headers=headers)
        async with self._lock:
            reused = self._stream is not None
            try:
                return await self._exchange(data, timeout_s)
            except CannotReachBroker:
                if not reused or method == "POST":
                    raise
            return await self._exchange(data, timeout_s)

    async def ask(self, method: str, target: str, value: object = None) -> Response:
        """Send a value as JSON, if there is one, and read the response; raises its refusal."""
        body = b"" if value is None else json.dumps(value).encode()
        if method == "POST":
            # It is not repeated on a connection that turns out closed, so it gets a new one.
            self.close()
        headers = () if value is None else JSON_HEADERS
        response = await self.request(method, target, body=body, headers=headers)
        if response.status >= 300:
            raise refusal(response.status, response.body)
        return response

    async def encode(
        self, method: str, target: str, *, body: bytes = b"", headers: Headers = ()
    ) -> bytes:
        """A whole request, to `send`, with a token that holds."""
        await renew_if_due(self.runtime, self.address)
        return request_bytes(self.address, method, target, body=body, headers=headers)

    async def _exchange(self, data: bytes, timeout_s: float | None) -> Response:
        try:
            await self.send(data, timeout_s=timeout_s)
            return await self.receive()
        except BaseException:
            # Also when cancelled or interrupted: the response still to come belongs to nobody.
            self.close()
            raise

    async def send(self, data: bytes, *, timeout_s: float | None = None) -> None:
        """Send a whole request without waiting for its response."""
        if self._stream is None:
            self._stream = await connect_stream(self.runtime, self.address)
            self._unproven = not self.address.tls
        self._idle_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            await self._stream.write(data, self._idle_s)
        except OSError as error:
            self.close()
            raise lost_connection(self.address, error) from None

    async def receive(self) -> Response:
        """The response to the oldest request that has none."""
        reader = self._reader = MessageReader(response=True)
        body = [self._feed(self._rest)]
        size = len(body[0])
        while not reader.complete and await self._read(self._idle_s, body):
            size += len(body[-1])
            if size > BODY_BYTES_MAX:
                self.close()
                raise cannot_reach(self.address, "its answer has no end")
        self._rest = reader.rest
        if reader.headers.get("connection", "").lower() == "close":
            self.close()
        return Response(reader.status, reader.headers, b"".join(body))

    async def start_stream(self, target: str, *, headers: Headers = (), idle_s: float) -> None:
        """Ask for a response that goes on, to be read by `read_stream`."""
        await self.send(await self.encode("GET", target, headers=headers))
        self._reader = MessageReader(response=True)
        self._excerpt = self._rest = b""
        self._idle_s = idle_s
        self._read_at_s = time.monotonic()

    async def read_stream(self, wait_s: float) -> bytes | None:
        """What comes next of it: b"" if nothing came in that time, None once the broker ended it.

        Raises CannotReachBroker if nothing came for `idle_s`, and what a refusal says.
        """
        parts: list[bytes] = []
        more = not self._reader.complete
        if more:
            try:
                more = await self._read(wait_s, parts, quiet=True)
            except TimeoutError:
                if time.monotonic() - self._read_at_s > self._idle_s:
                    self.close()
                    raise cannot_reach(self.address, NO_ANSWER) from None
                return b""
        if self._reader.has_head and self._reader.status != 200:
            self._excerpt += b"".join(parts)
            if more and not self._reader.complete:
                return b""
            self.close()
            raise refusal(self._reader.status, self._excerpt)
        return b"".join(parts) if more else None

    async def _read(self, timeout_s: float, parts: list[bytes], *, quiet: bool = False) -> bool:
        """Add what the next read brings of the body; False if it was ended by a close.

        If nothing comes in time, TimeoutError if `quiet`, else CannotReachBroker.
        """
        try:
            if self._stream is None:
                raise ConnectionError("the connection was closed")
            data = await self._stream.read(timeout_s)
        except OSError as error:
            if quiet and isinstance(error, TimeoutError):
                raise
            self.close()
            raise lost_connection(self.address, error) from None
        if data:
            self._unproven = False
            self._read_at_s = time.monotonic()
            parts.append(self._feed(data))
            return True
        self.close()
        if self._reader.end():
            return False
        raise await self._closed_by_peer()

    def _feed(self, data: bytes) -> bytes:
        try:
            return self._reader.feed(data)
        except TocsinError as error:
            self.close()
            raise cannot_reach(self.address, error.problem) from None

    async def _closed_by_peer(self) -> CannotReachBroker:
        if self._unproven:
            from tocsin.client.transport.tls import wants_tls

            self._unproven = False
            if (error := await self.runtime.call(wants_tls, self.address)) is not None:
                return error
        return cannot_reach(self.address, "the connection was closed")


class Connection(Closeable):
    """An HttpConnection for a program without an event loop: every call blocks."""

    def __init__(
        self, broker: str | Address | None = None, *, timeout_s: float = RESPONSE_TIMEOUT_S
    ) -> None:
        self.http = HttpConnection(BLOCKING, broker, timeout_s=timeout_s)

    @property
    def address(self) -> Address:
        return self.http.address

    def __del__(self) -> None:
        # `Publisher().publish(...)` in one line leaves nobody to close it.
        if hasattr(self, "http"):
            self.close()

    def close(self) -> None:
        """Close the stream; the next request opens another."""
        self.http.close()

    def interrupt(self) -> None:
        """Wake a thread that is reading here, as if the broker had closed."""
        self.http.interrupt()

    def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Headers = (),
        timeout_s: float | None = None,
    ) -> Response:
        """As `HttpConnection.request`."""
        work = self.http.request(method, target, body=body, headers=headers, timeout_s=timeout_s)
        return run(work)

    def encode(
        self, method: str, target: str, *, body: bytes = b"", headers: Headers = ()
    ) -> bytes:
        """As `HttpConnection.encode`."""
        return run(self.http.encode(method, target, body=body, headers=headers))

    def send(self, data: bytes, *, timeout_s: float | None = None) -> None:
        """Send a whole request without waiting for its response."""
        run(self.http.send(data, timeout_s=timeout_s))

    def receive(self) -> Response:
        """The response to the oldest request that has none."""
        return run(self.http.receive())
