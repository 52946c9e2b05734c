"""The live stream of a filter: resumes where it was when the connection breaks, drops repeats."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from tocsin.client.asking import stream_target
from tocsin.client.batching import pauses_s
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import Connection
from tocsin.client.transport.sse import POSITION, Message, StreamReader
from tocsin.errors import CannotReachBroker

POLL_S = 0.5  # how soon a consumer that waits sees that it was closed
STREAM_IDLE_S = 45.0  # three of the broker's heartbeats
RECONNECT_PATIENCE_S = 300.0


class LiveStream:
    """`lost` is told each time the connection broke and why, `dropped` counts what is gone."""

    def __init__(
        self,
        text: str,
        after: int | None,
        broker: str | Address | None,
        lost: Callable[[str], None] | None = None,
    ) -> None:
        self._text = text
        self.after = after
        self.dropped = 0
        self._connection = Connection(broker)
        self._lost = lost
        self._parts: Iterator[bytes] | None = None
        self._reader = StreamReader()
        self._pauses: Iterator[float] = iter(())
        self._deadline: float | None = None
        self._closed = False

    def read(self, deadline: float | None) -> list[Message]:
        """What came next; nothing if none came by the deadline or for a while."""
        self._deadline = deadline
        try:
            return self._take(next(self._open(), None))
        except CannotReachBroker as error:
            self._parts = None
            if self._closed:
                return []
            pause_s = next(self._pauses, None)
            if pause_s is None:
                raise
            self._tell(error.problem)
            time.sleep(pause_s)
            return []

    def close(self) -> None:
        """Close the connection; wakes a thread that reads."""
        self._closed = True
        self._connection.interrupt()
        self._connection.close()

    def _open(self) -> Iterator[bytes]:
        if self._parts is None:
            self._reader = StreamReader()
            self._parts = self._connection.stream(
                stream_target(self._text, self.after),
                headers=[("Accept", "text/event-stream")],
                idle_s=STREAM_IDLE_S,
                waiting=self._patience_s,
            )
        return self._parts

    def _take(self, part: bytes | None) -> list[Message]:
        if part is None:
            self._connection.close()
            self._parts = None
            self._tell("the broker ended the stream")
            return []
        # Having been there once is what makes waiting for a broker to come back worth while.
        self._pauses = pauses_s(RECONNECT_PATIENCE_S)
        messages = self._reader.feed(part)
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

    def _tell(self, why: str) -> None:
        if self._lost is not None and not self._closed:
            self._lost(why)

    def _patience_s(self) -> float:
        if self._deadline is None:
            return POLL_S
        return min(POLL_S, max(0.001, self._deadline - time.monotonic()))


def dropped_count(data: bytes) -> int:
    """How many events a `dropped` message says are gone."""
    try:
        value = json.loads(data)
    except ValueError:
        return 0
    if isinstance(value, dict):
        value = value.get("dropped", 0)
    return value if isinstance(value, int) else 0
