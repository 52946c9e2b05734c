"""Publisher and AsyncPublisher: hand events to a broker, and return when they are on its disk.

    Publisher().publish("lead/ohio/radar", {"load5": 7})

    async with AsyncPublisher() as publisher:
        await publisher.publish("lead/ohio/radar", {"load5": 7})

If the connection is lost on the way, the same event is sent again with the same id, for
`patience_s` at most; the broker stores it once. With an `identity` (its directory) every event is
signed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Self, Unpack

from tocsin.client.batch_sender import (
    BATCH_BYTES_MAX,
    BATCH_EVENTS_MAX,
    Batch,
    BatchResults,
    BatchSender,
    post_events,
    publish_event,
)
from tocsin.client.closeable import Closeable
from tocsin.client.event_json import DEFAULT_TYPE, default_source, make_event
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.connection import Connection, HttpConnection

if TYPE_CHECKING:
    from tocsin.client.background import BackgroundSender
    from tocsin.client.event_signer import EventSigner
    from tocsin.credentials.sign_in import SignIn
    from tocsin.topics.identity import Identity

PATIENCE_S = 10.0


class Publisher(Closeable):
    """Keeps one connection. With `batching=True`, `publish` returns at once and `flush` waits."""

    def __init__(
        self,
        broker: str | None = None,
        *,
        source: str | None = None,
        batching: bool = False,
        in_flight_max: int = 10_000,
        patience_s: float = PATIENCE_S,
        ca_file: str | None = None,
        identity: Identity | str | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        self._signer = _signer(identity)
        self._connection = Connection(broker_address(broker, ca_file, **sign_in))
        self._patience_s = patience_s
        self.source = source or default_source("python")
        self._background: BackgroundSender | None = None
        if batching:
            from tocsin.client.background import BackgroundSender

            self._background = BackgroundSender(self._connection, in_flight_max, patience_s)

    def publish(
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
        """Publish one event; its place in the log, or 0 while batching, where it is not known."""
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
            signer=self._signer,
        )
        if self._background is not None:
            self._background.put(event)
            return 0
        return publish_event(self._connection, event, self._patience_s).last

    def publish_many(self, events: Iterable[tuple[str, object]]) -> int:
        """Publish pairs of topic and data in large batches; how many are stored.

        Raises SomeFailed, after everything was sent, if the broker refused some of them.
        """
        results = BatchResults()
        sender = BatchSender(self._connection, results.settle, patience_s=self._patience_s)
        batch, size = Batch([], []), 0
        for number, (topic, data) in enumerate(events):
            event = make_event(topic, data, source=self.source, signer=self._signer)
            batch.events.append(event)
            batch.numbers.append(number)
            size += len(event)
            if len(batch.events) >= BATCH_EVENTS_MAX or size >= BATCH_BYTES_MAX:
                sender.offer(batch)
                batch, size = Batch([], []), 0
        if batch.events:
            sender.offer(batch)
        sender.drain()
        results.raise_failures()
        return results.accepted

    def flush(self) -> None:
        """Wait until everything is on the broker's disk; raises if something is not."""
        if self._background is not None:
            self._background.flush()

    def close(self) -> None:
        """Flush, and close the connection."""
        try:
            if self._background is not None:
                self._background.close()
        finally:
            self._connection.close()


class AsyncPublisher:
    """The same for asyncio. Keeps one connection; many tasks may publish through it."""

    def __init__(
        self,
        broker: str | None = None,
        *,
        source: str | None = None,
        patience_s: float = PATIENCE_S,
        ca_file: str | None = None,
        identity: Identity | str | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        import asyncio

        from tocsin.client.transport.async_runtime import ASYNC

        self._signer = _signer(identity)
        address = broker_address(broker, ca_file, **sign_in)
        self._connection = HttpConnection(ASYNC, address, lock=asyncio.Lock())
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
            signer=self._signer,
        )
        return (await post_events(self._connection, [event], self._patience_s)).last

    async def publish_many(self, events: Iterable[tuple[str, object]]) -> int:
        """Publish pairs of topic and data in batches; how many are stored.

        A batch is stored as a whole or refused as a whole, with the broker's error.
        """
        accepted = 0
        rest = iter(events)
        while some := list(islice(rest, BATCH_EVENTS_MAX)):
            batch = [
                make_event(topic, data, source=self.source, signer=self._signer)
                for topic, data in some
            ]
            accepted += (await post_events(self._connection, batch, self._patience_s)).accepted
        return accepted

    async def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _signer(identity: Identity | str | None) -> EventSigner | None:
    if identity is None:
        return None
    from tocsin.client.event_signer import EventSigner  # most programs sign nothing

    return EventSigner(identity)
