"""One keep-alive connection to a broker, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.connection import (
    ANSWER_TIMEOUT_S,
    BODY_BYTES_MAX,
    CONNECT_TIMEOUT_S,
    READ_BYTES,
    Headers,
    cannot_reach,
)
from tocsin.client.transport.http1 import MessageReader, request_bytes
from tocsin.client.transport.refusal import Response, refusal
from tocsin.errors import TocsinError


class AsyncConnection:
    """Opened on first use and again after it broke. Requests of several tasks take turns."""

    def __init__(self, broker: str | Address | None = None) -> None:
        self.address: Address = broker_address(broker)
        self._unproven = False  # nothing came yet from a broker that is addressed without TLS
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def close(self) -> None:
        """Close the socket; the next request opens another."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()
            with suppress(OSError):
                await streams[1].wait_closed()

    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Headers = (),
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Response:
        """Ask and wait for the answer. A reused connection that turns out closed is opened anew."""
        data = request_bytes(self.address, method, target, body=body, headers=headers)
        async with self._turn:
            reused = self._streams is not None
            try:
                return await self._exchange(data, timeout_s)
            except TocsinError:
                if not reused or method == "POST":
                    raise
            return await self._exchange(data, timeout_s)

    async def _exchange(self, data: bytes, timeout_s: float) -> Response:
        whole = False
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._ask(data)
            whole = answer.headers.get("connection", "").lower() != "close"
            return answer
        except (TimeoutError, OSError) as error:
            raise cannot_reach(self.address, error or "it does not answer") from None
        finally:
            # Also when cancelled: the answer still to come belongs to nobody.
            if not whole:
                await self.close()

    async def _ask(self, data: bytes) -> Response:
        reader, writer = await self._open()
        writer.write(data)
        await writer.drain()
        message = MessageReader(response=True)
        body = bytearray()
        while not message.complete:
            body += await self._feed(message, await reader.read(READ_BYTES))
            if len(body) > BODY_BYTES_MAX:
                raise cannot_reach(self.address, "its answer has no end")
        return Response(message.status, message.headers, bytes(body))

    async def stream(
        self, target: str, *, headers: Headers = (), idle_s: float
    ) -> AsyncGenerator[bytes]:
        """The body of an answer that goes on, as it comes; ends when the broker ends it."""
        message = MessageReader(response=True)
        excerpt = b""
        try:
            reader, writer = await self._open()
            writer.write(request_bytes(self.address, "GET", target, headers=headers))
            await writer.drain()
            while not message.complete:
                async with asyncio.timeout(idle_s):
                    data = await reader.read(READ_BYTES)
                part = await self._feed(message, data)
                if message.has_head and message.status != 200:
                    excerpt += part
                else:
                    yield part
        except (TimeoutError, OSError) as error:
            raise cannot_reach(self.address, error or "it does not answer") from None
        finally:
            await self.close()
        if message.status != 200:
            raise refusal(message.status, excerpt)

    async def _feed(self, message: MessageReader, data: bytes) -> bytes:
        if not data:
            if message.end():
                return b""
            raise await self._closed_by_peer()
        self._unproven = False
        try:
            return message.feed(data)
        except TocsinError as error:
            raise cannot_reach(self.address, error.problem) from None

    async def _closed_by_peer(self) -> TocsinError:
        if self._unproven:
            from tocsin.client.transport.tls import wants_tls

            self._unproven = False
            error = await asyncio.to_thread(wants_tls, self.address)
            if error is not None:
                return error
        return cannot_reach(self.address, "the connection was closed")

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    self._streams = await self._connect()
            except (TimeoutError, OSError) as error:
                raise cannot_reach(self.address, error) from None
        return self._streams

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = self.address
        self._unproven = not address.tls
        if not address.tls:
            return await asyncio.open_connection(address.host, address.port)
        import ssl

        from tocsin.client.transport.tls import client_context, handshake_failed

        try:
            context = client_context(address.ca_file)
            return await asyncio.open_connection(address.host, address.port, ssl=context)
        except ssl.SSLError as error:
            raise handshake_failed(address, error) from None
