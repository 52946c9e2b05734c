"""The listener that a pushed asyncio consumer brings along, with a bounded queue of events."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tocsin.client.incoming.consumed import ConsumedEvent
from tocsin.client.incoming.listener import IDLE_S, READ_BYTES
from tocsin.client.incoming.pushed import (
    BAD,
    BAD_METHOD,
    CONNECTIONS_MAX,
    NOT_TAKEN,
    QUEUE_EVENTS_MAX,
    REQUEST_BYTES_MAX,
    TAKEN,
    TAKEN_WAIT_S,
    TOO_LARGE,
    handshake_answer,
    pushed_events,
)
from tocsin.client.transport.http1 import MessageReader
from tocsin.errors import TocsinError


class _Arrival:
    __slots__ = ("event", "taken")

    def __init__(self, event: ConsumedEvent, taken: asyncio.Future[None]) -> None:
        self.event = event
        self.taken = taken


class AsyncListener:
    """Answers a pushed event with 204 once `take` has handed it out."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._arrivals: asyncio.Queue[_Arrival] = asyncio.Queue(QUEUE_EVENTS_MAX)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen; returns the port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, self._host, self._port)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def take(self, timeout_s: float) -> ConsumedEvent | None:
        """The next event; None if none came in time."""
        try:
            async with asyncio.timeout(timeout_s):
                arrival = await self._arrivals.get()
        except TimeoutError:
            return None
        if arrival.taken.done():
            return None  # its sender was told to come again
        arrival.taken.set_result(None)
        return arrival.event

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._converse(reader, writer)
        except (OSError, TimeoutError):
            return
        except TocsinError:
            writer.write(BAD)
        except asyncio.CancelledError:
            # Only close() cancels, and it waits for this task; nobody else is to be told.
            return
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rest = b""
        while True:
            message = MessageReader(response=False)
            body = bytearray(message.feed(rest) if rest else b"")
            while not message.complete:
                async with asyncio.timeout(IDLE_S):
                    data = await reader.read(READ_BYTES)
                if not data:
                    return
                body += message.feed(data)
                if len(body) > REQUEST_BYTES_MAX:
                    writer.write(TOO_LARGE)
                    return
            writer.write(await self._answer(message, bytes(body)))
            await writer.drain()
            rest = message.rest

    async def _answer(self, message: MessageReader, body: bytes) -> bytes:
        method = message.start_line.partition(" ")[0]
        if method == "OPTIONS":
            return handshake_answer(message.headers)
        if method != "POST":
            return BAD_METHOD
        loop = asyncio.get_running_loop()
        events = pushed_events(message.headers, body)
        arrivals = [_Arrival(event, loop.create_future()) for event in events]
        return TAKEN if await self._hand_over(arrivals) else NOT_TAKEN

    async def _hand_over(self, arrivals: list[_Arrival]) -> bool:
        """True once all were taken; otherwise none of the rest will be."""
        try:
            async with asyncio.timeout(TAKEN_WAIT_S):
                for arrival in arrivals:
                    await self._arrivals.put(arrival)
                if arrivals:
                    await arrivals[-1].taken
            return True
        except TimeoutError:
            for arrival in arrivals:
                arrival.taken.cancel()
            return False
