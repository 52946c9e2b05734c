"""The live stream of a filter: resumes where it was when the connection breaks, drops repeats."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from tocsin.client.requests import stream_target
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import HttpConnection
from tocsin.client.transport.retry import pauses_s
from tocsin.client.transport.runtime import Runtime
from tocsin.client.transport.sse import POSITION, Message, StreamReader
from tocsin.errors import CannotReachBroker

POLL_S = 0.5  # how soon a consumer that waits sees that it was closed
STREAM_IDLE_S = 45.0  # three of the broker's heartbeats
RECONNECT_S_MAX = 300.0


class LiveStream:
    """`on_lost` gets why, each time the connection broke; `dropped` counts lost events."""

    def __init__(
        self,
        runtime: Runtime,
        text: str,
        after: int | None,
        broker: str | Address | None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self._text = text
        self.after = after
        self.dropped = 0
        self._connection = HttpConnection(runtime, broker)
        self._on_lost = on_lost
        self._reader: StreamReader | None = None  # of the stream that is open
        self._pauses: Iterator[float] = iter(())
        self._closed = False

    async def start(self) -> None:
        """The stream is asked for by the first read."""

    async def read(self, deadline: float | None) -> list[Message]:
        """What came next; nothing if none came by the deadline or for a while."""
        try:
            reader = self._reader or await self._open()
            return self._messages(reader, await self._connection.read_stream(_wait_s(deadline)))
        except CannotReachBroker as error:
            self._reader = None
            if self._closed:
                return []
            pause_s = next(self._pauses, None)
            if pause_s is None:
                raise
            self._report(error.problem)
            await self._connection.runtime.sleep(pause_s)
            return []

    async def close(self, *, finished: bool = True) -> None:
        """Close the connection; wakes whoever reads."""
        self._closed = True
        self._connection.interrupt()
        self._connection.close()

    async def _open(self) -> StreamReader:
        await self._connection.start_stream(
            stream_target(self._text, self.after),
            headers=[("Accept", "text/event-stream")],
            idle_s=STREAM_IDLE_S,
        )
        self._reader = StreamReader()
        return self._reader

    def _messages(self, reader: StreamReader, part: bytes | None) -> list[Message]:
        if part is None:
            self._connection.close()
            self._reader = None
            self._report("the broker ended the stream")
            return []
        # A broker that was reached once is worth waiting for when it goes away.
        self._pauses = pauses_s(RECONNECT_S_MAX)
        messages = reader.feed(part)
        seen = self.after or 0
        if any(message.kind for message in messages):
            messages = [message for message in messages if self._is_event(message)]
        if messages and messages[0].seq <= seen:
            messages = [message for message in messages if message.seq > seen]
        if messages:
            self.after = max(self.after or 0, messages[-1].seq)
        return messages

    def _is_event(self, message: Message) -> bool:
        if message.kind == "dropped":
            self.dropped += dropped_count(message.data)
        elif message.kind == POSITION:
            self.after = max(self.after or 0, message.seq)
        return not message.kind

    def _report(self, why: str) -> None:
        if self._on_lost is not None and not self._closed:
            self._on_lost(why)


def _wait_s(deadline: float | None) -> float:
    return POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())


def dropped_count(data: bytes) -> int:
    """How many events a `dropped` message says are gone."""
    try:
        value = json.loads(data)
    except ValueError:
        return 0
    if isinstance(value, dict):
        value = value.get("dropped", 0)
    return value if isinstance(value, int) else 0
