"""AsyncPublisher: hands events to a broker and returns when they are on its disk, for asyncio.

async with AsyncPublisher() as publisher:
    await publisher.publish("lead/ohio/radar", {"load5": 7})
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Self

from tocsin.client.batching import BATCH_EVENTS_MAX, Stored, pauses_s, stored, worth_another_try
from tocsin.client.outgoing import (
    BATCH_MEDIA_TYPE,
    DEFAULT_TYPE,
    EVENT_MEDIA_TYPE,
    default_source,
    make_event,
)
from tocsin.client.publisher import PATIENCE_S
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.async_connection import AsyncConnection
from tocsin.errors import TocsinError


class AsyncPublisher:
    """Keeps one connection; many tasks may publish through it."""

    def __init__(
        self,
        broker: str | None = None,
        *,
        source: str | None = None,
        patience_s: float = PATIENCE_S,
        ca_file: str | None = None,
    ) -> None:
        self._connection = AsyncConnection(broker_address(broker, ca_file))
        self._patience_s = patience_s
        self.source = source or default_source("python")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def publish(
        self,
        topic: str,
        data: object = None,
        *,
        type: str = DEFAULT_TYPE,
        source: str | None = None,
        id: str | None = None,
        subject: str | None = None,
        time: str | None = None,
        content_type: str | None = None,
        **extensions: str | int | bool,
    ) -> int:
        """Publish one event; its place in the log."""
        event = make_event(
            topic,
            data,
            source=source or self.source,
            type=type,
            id=id,
            subject=subject,
            time=time,
            content_type=content_type,
            extensions=extensions,
        )
        return (await self._send(event, EVENT_MEDIA_TYPE)).last

    async def publish_many(self, events: Iterable[tuple[str, object]]) -> int:
        """Publish pairs of topic and data in batches; how many are stored.

        A batch is stored as a whole or refused as a whole, with the broker's error.
        """
        accepted = 0
        rest = iter(events)
        while some := list(islice(rest, BATCH_EVENTS_MAX)):
            batch = [make_event(topic, data, source=self.source) for topic, data in some]
            body = b"[" + b",".join(batch) + b"]"
            accepted += (await self._send(body, BATCH_MEDIA_TYPE)).accepted
        return accepted

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _send(self, body: bytes, media_type: str) -> Stored:
        pauses = pauses_s(self._patience_s)
        while True:
            try:
                response = await self._connection.request(
                    "POST", "/events", body=body, headers=[("Content-Type", media_type)]
                )
                return stored(response)
            except TocsinError as error:
                if not worth_another_try(error):
                    raise
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)
