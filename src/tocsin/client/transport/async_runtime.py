"""The client's runtime on asyncio."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from tocsin.client.transport.address import Address
from tocsin.client.transport.arrivals import ArrivalQueue
from tocsin.client.transport.runtime import CONNECT_TIMEOUT_S, READ_BYTES

T = TypeVar("T")


class AsyncStream:
    """A pair of asyncio streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def write(self, data: bytes, timeout_s: float) -> None:
        async with asyncio.timeout(timeout_s):
            self._writer.write(data)
            await self._writer.drain()

    async def read(self, timeout_s: float) -> bytes:
        async with asyncio.timeout(timeout_s):
            return await self._reader.read(READ_BYTES)

    def interrupt(self) -> None:
        self._writer.close()

    def close(self) -> None:
        self._writer.close()


class AsyncRuntime:
    """Waits in the task that calls."""

    async def connect(self, address: Address, tls: ssl.SSLContext | None) -> AsyncStream:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            streams = await asyncio.open_connection(address.host, address.port, ssl=tls)
        return AsyncStream(*streams)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.to_thread(function, *arguments)

    async def take(self, queue: ArrivalQueue[T], timeout_s: float) -> T | None:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        queue.on_arrival = lambda: loop.call_soon_threadsafe(arrived.set)
        # Taken at once or not at all: a task that is cancelled while it waits loses no message.
        message = queue.take(0)
        if message is None and not queue.is_over:
            try:
                async with asyncio.timeout(timeout_s):
                    await arrived.wait()
            except TimeoutError:
                return None
            message = queue.take(0)
        return message


ASYNC = AsyncRuntime()
