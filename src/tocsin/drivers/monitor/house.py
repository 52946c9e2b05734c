"""House: what the monitor needs of the node that it is a part of."""

from __future__ import annotations

import asyncio
from typing import Protocol

from tocsin.broker.effects import Level
from tocsin.broker.port import Replier, StreamSink
from tocsin.event.event import Event
from tocsin.event.filter import Filter


class Headed(Protocol):
    """Whoever knows where the log ends."""

    @property
    def head(self) -> int: ...


class House(Protocol):
    """What the service needs of the node that it is a part of."""

    loop: asyncio.AbstractEventLoop

    @property
    def broker(self) -> Headed: ...

    def now_ns(self) -> int: ...

    def sure_ns(self) -> int:
        """The time that it is at least, also while the machine's clock is in doubt."""
        ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    def publish(self, events: list[Event], replier: Replier) -> None: ...

    def open_stream(
        self,
        sink: StreamSink,
        filter: Filter,
        after: int | None,
        name: str,
        asks: frozenset[str] | None = None,
    ) -> int: ...

    def stream_ready(self, stream: int) -> None: ...

    def close_stream(self, stream: int) -> None: ...
