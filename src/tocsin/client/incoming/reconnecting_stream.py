"""A stream of server-sent events that is opened again when the connection breaks."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final

from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import HttpConnection
from tocsin.client.transport.retry import pauses_s
from tocsin.client.transport.runtime import Runtime
from tocsin.client.transport.sse import Message, StreamReader
from tocsin.errors import CannotReachBroker

POLL_S: Final = 0.5  # how soon one that waits sees that it was closed
STREAM_IDLE_S: Final = 45.0  # three of the broker's heartbeats
RECONNECT_S_MAX: Final = 300.0


class ReconnectingStream(ABC):
    """On either runtime. `on_lost` gets why, each time the connection broke."""

    def __init__(
        self,
        runtime: Runtime,
        broker: str | Address | None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self._connection = HttpConnection(runtime, broker)
        self._on_lost = on_lost
        self._reader: StreamReader | None = None  # of the stream that is open
        self._pauses: Iterator[float] = iter(())
        self.closed = False

    @abstractmethod
    async def _target(self) -> str:
        """Where the stream is. Asked each time that it is opened."""

    async def _read(self, deadline: float | None) -> list[Message]:
        """What came next; nothing if none came by the deadline or for a while."""
        wait_s = POLL_S if deadline is None else min(POLL_S, max(0.0, deadline - time.monotonic()))
        try:
            reader = self._reader or await self._open()
            part = await self._connection.read_stream(wait_s)
        except CannotReachBroker as error:
            self._reader = None
            if self.closed:
                return []
            pause_s = next(self._pauses, None)
            if pause_s is None:
                raise
            self._report(error.problem)
            await self._connection.runtime.sleep(pause_s)
            return []
        if part is None:
            self._connection.close()
            self._reader = None
            self._report("the broker ended the stream")
            return []
        # A broker that was reached once is worth waiting for when it goes away.
        self._pauses = pauses_s(RECONNECT_S_MAX)
        return reader.feed(part)

    async def _open(self) -> StreamReader:
        target = await self._target()
        headers = [("Accept", "text/event-stream")]
        await self._connection.start_stream(target, headers=headers, idle_s=STREAM_IDLE_S)
        self._reader = StreamReader()
        return self._reader

    def _report(self, why: str) -> None:
        if self._on_lost is not None and not self.closed:
            self._on_lost(why)

    def _disconnect(self) -> None:
        """Close the connection; wakes whoever reads."""
        self.closed = True
        self._connection.interrupt()
        self._connection.close()
