"""Where an asyncio consumer's events come from: the live stream, a box, or our own listener."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Protocol

from tocsin.client.asking import (
    JSON_HEADERS,
    box_body,
    messages_target,
    stream_target,
    subscription_body,
)
from tocsin.client.batching import pauses_s
from tocsin.client.incoming.async_listener import AsyncListener
from tocsin.client.incoming.consumed import ConsumedEvent, from_members, from_structured
from tocsin.client.incoming.lease import LEASE, Lease
from tocsin.client.incoming.live import RECONNECT_PATIENCE_S, STREAM_IDLE_S
from tocsin.client.incoming.sources import BOX_EVENTS_MAX, BOX_WAIT_S
from tocsin.client.transport.address import Address
from tocsin.client.transport.async_connection import AsyncConnection
from tocsin.client.transport.sse import StreamReader
from tocsin.errors import CannotReachBroker, TocsinError

PUSH_WAIT_S = 60.0  # between two looks at the lease


async def keep(lease: Lease | None, connection: AsyncConnection) -> None:
    """Renew what is ours when it is time; a broker that is away is asked again later."""
    if lease is not None and lease.is_due():
        with suppress(CannotReachBroker):
            answer = await connection.request(
                "PATCH", lease.path, body=lease.renewal, headers=JSON_HEADERS
            )
            answer.value()


class AsyncSource(Protocol):
    """One way for events to come."""

    async def start(self) -> None:
        """Ask the broker; once is enough."""

    def events(self) -> AsyncGenerator[ConsumedEvent]:
        """The events, without end."""

    async def close(self) -> None:
        """Give everything back."""


class AsyncStreamSource:
    """The live stream; resumes after a lost connection and drops what came twice."""

    def __init__(self, text: str, after: int | None, broker: str | Address | None) -> None:
        self._text = text
        self._after = after
        self._connection = AsyncConnection(broker)

    async def start(self) -> None:
        """The stream is asked for by the first event."""

    async def events(self) -> AsyncGenerator[ConsumedEvent]:
        pauses = iter(pauses_s(0))
        while True:
            parts = self._connection.stream(
                stream_target(self._text, self._after),
                headers=[("Accept", "text/event-stream")],
                idle_s=STREAM_IDLE_S,
            )
            reader = StreamReader()
            try:
                async for part in parts:
                    pauses = pauses_s(RECONNECT_PATIENCE_S)
                    for message in reader.feed(part):
                        if message.seq > (self._after or 0):
                            self._after = message.seq
                            if not message.kind:
                                yield from_structured(message.data, message.seq)
            except CannotReachBroker:
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)
            finally:
                await parts.aclose()

    async def close(self) -> None:
        await self._connection.close()


class AsyncBoxSource:
    """A box at the broker. What was handed out is released when the batch after it is asked for."""

    def __init__(
        self, text: str, after: int | None, broker: str | Address | None, box: str | None
    ) -> None:
        self._text = text
        self._after = after
        self._connection = AsyncConnection(broker)
        self._lease: Lease | None = None
        self._ack: str | None = None
        self.box = box

    async def start(self) -> None:
        if self.box is None:
            body = box_body(self._text, self._after, LEASE)
            made = await self._connection.request("POST", "/boxes", body=body, headers=JSON_HEADERS)
            self.box = str(made.value()["id"])
            self._lease = Lease("boxes", self.box)

    async def events(self) -> AsyncGenerator[ConsumedEvent]:
        while True:
            await keep(self._lease, self._connection)
            answer = await self._ask(BOX_EVENTS_MAX, BOX_WAIT_S)
            for seq, members in zip(answer["sequences"], answer["events"], strict=True):
                yield from_members(members, json.dumps(members).encode(), seq)
            self._ack = answer["next"]

    async def close(self) -> None:
        with suppress(TocsinError):
            if self._lease is not None:
                await self._connection.request("DELETE", self._lease.path)
            elif self._ack is not None:
                await self._ask(1, 0)
        await self._connection.close()

    async def _ask(self, count: int, wait_s: float) -> dict[str, Any]:
        assert self.box is not None
        target = messages_target(self.box, count=count, wait_s=wait_s, ack=self._ack)
        pauses = pauses_s(RECONNECT_PATIENCE_S)
        while True:
            try:
                answer: dict[str, Any] = (await self._connection.request("GET", target)).value()
                return answer
            except CannotReachBroker:
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)


class AsyncPushSource:
    """A listener of our own that the broker sends to."""

    def __init__(
        self, text: str, after: int | None, broker: str | Address | None, listen: str
    ) -> None:
        host, _, port = listen.rpartition(":")
        self._text = text
        self._after = after
        self._host = host or "127.0.0.1"
        self._listener = AsyncListener(self._host, int(port))
        self._connection = AsyncConnection(broker)
        self._lease: Lease | None = None

    async def start(self) -> None:
        if self._lease is not None:
            return
        port = await self._listener.start()
        sink = f"http://{self._host}:{port}/"
        try:
            made = await self._connection.request(
                "POST",
                "/subscriptions",
                body=subscription_body(sink, self._text, self._after, LEASE),
                headers=JSON_HEADERS,
            )
            self._lease = Lease("subscriptions", str(made.value()["id"]))
        except TocsinError:
            await self.close()
            raise

    async def events(self) -> AsyncGenerator[ConsumedEvent]:
        while True:
            await keep(self._lease, self._connection)
            event = await self._listener.take(PUSH_WAIT_S)
            if event is not None:
                yield event

    async def close(self) -> None:
        if self._lease is not None:
            with suppress(TocsinError):
                await self._connection.request("DELETE", self._lease.path)
        await self._connection.close()
        await self._listener.close()
