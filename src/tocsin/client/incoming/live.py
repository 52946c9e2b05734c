"""The live stream of a filter: resumes where it was when the connection breaks, drops repeats."""

from __future__ import annotations

import json
from collections.abc import Callable

from tocsin.client.incoming.reconnecting_stream import ReconnectingStream
from tocsin.client.requests import stream_target
from tocsin.client.transport.address import Address
from tocsin.client.transport.runtime import Runtime
from tocsin.client.transport.sse import POSITION, Message


class LiveStream(ReconnectingStream):
    """`dropped` counts lost events; `withheld` those that it may know of, and has no right to."""

    def __init__(
        self,
        runtime: Runtime,
        text: str,
        after: int | None,
        broker: str | Address | None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(runtime, broker, on_lost)
        self._text = text
        self.after = after
        self.dropped = 0
        self.withheld = 0

    async def start(self) -> None:
        """The stream is asked for by the first read."""

    async def read(self, deadline: float | None) -> list[Message]:
        """What came next; nothing if none came by the deadline or for a while."""
        messages = await self._read(deadline)
        seen = self.after or 0
        if any(message.kind for message in messages):
            messages = [message for message in messages if self._is_event(message)]
        if messages and messages[0].seq <= seen:
            messages = [message for message in messages if message.seq > seen]
        if messages:
            self.after = max(self.after or 0, messages[-1].seq)
        return messages

    async def close(self, *, finished: bool = True) -> None:
        """Close the connection; wakes whoever reads."""
        self._disconnect()

    async def _target(self) -> str:
        return stream_target(self._text, self.after)

    def _is_event(self, message: Message) -> bool:
        if message.kind == "dropped":
            self.dropped += count_told(message.data, "dropped")
        elif message.kind == "withheld":
            self.withheld += count_told(message.data, "withheld")
        elif message.kind == POSITION:
            self.after = max(self.after or 0, message.seq)
        return not message.kind


def count_told(data: bytes, name: str) -> int:
    """How many events a `dropped` or `withheld` message says there were."""
    try:
        value = json.loads(data)
    except ValueError:
        return 0
    if isinstance(value, dict):
        value = value.get(name, 0)
    return value if isinstance(value, int) else 0
