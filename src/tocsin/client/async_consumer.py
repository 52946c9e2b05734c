"""AsyncConsumer: the events that pass a filter, for asyncio.

    async with AsyncConsumer("topic lead/**") as events:
        async for event in events:
            print(event)

The ways to get them are those of `Consumer`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from tocsin.client.asking import filter_text
from tocsin.client.consumer import Via, no_such_way
from tocsin.client.incoming.async_sources import (
    AsyncBoxSource,
    AsyncPushSource,
    AsyncSource,
    AsyncStreamSource,
)
from tocsin.client.incoming.consumed import ConsumedEvent
from tocsin.client.transport.address import broker_address


class AsyncConsumer:
    """Iterate over it, in one task. Use it as a context manager, or `await close()` it."""

    def __init__(
        self,
        filter: str = "",
        *,
        via: Via = "stream",
        after: int | None = None,
        broker: str | None = None,
        box: str | None = None,
        listen: str = "127.0.0.1:0",
        ca_file: str | None = None,
    ) -> None:
        text = filter_text(filter)
        address = broker_address(broker, ca_file)
        self._source: AsyncSource
        if via == "stream":
            self._source = AsyncStreamSource(text, after, address)
        elif via == "box":
            self._source = AsyncBoxSource(text, after, address, box)
        elif via == "push":
            self._source = AsyncPushSource(text, after, address, listen)
        else:
            raise no_such_way(via)
        self._events = self._source.events()

    @property
    def box(self) -> str | None:
        """The id of the box, once there is one."""
        return self._source.box if isinstance(self._source, AsyncBoxSource) else None

    async def __aenter__(self) -> Self:
        await self._source.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[ConsumedEvent]:
        return self

    async def __anext__(self) -> ConsumedEvent:
        await self._source.start()
        return await anext(self._events)

    async def close(self) -> None:
        """Stop; nothing stays open, and the broker forgets what it kept for this consumer."""
        await self._events.aclose()
        await self._source.close()
