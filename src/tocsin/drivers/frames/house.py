"""House: what producers and consumers need of the node that they visit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from tocsin.broker.broker import Broker
from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import Level, Token
from tocsin.broker.log import StoreReader
from tocsin.broker.port import StreamSink
from tocsin.broker.recent.types import SeenTypes
from tocsin.config import Settings
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.stored import Stored

T = TypeVar("T")


class House(Protocol):
    """A running broker, seen from the frames door."""

    loop: asyncio.AbstractEventLoop
    settings: Settings
    broker: Broker
    rules: SinkRules
    types: SeenTypes

    def now_ns(self) -> int: ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    def heard_from(self, host: str) -> None: ...

    async def ask(self, call: Callable[[Token, int], None]) -> Any: ...

    async def read(self, work: Callable[[StoreReader], T]) -> T: ...

    async def latest_of(self, event_type: str, holds: Callable[[Event], bool]) -> Stored | None: ...

    def open_stream(
        self, sink: StreamSink, filter: Filter, after: int | None, name: str
    ) -> int: ...

    def stream_ready(self, stream: int) -> None: ...

    def close_stream(self, stream: int) -> None: ...
