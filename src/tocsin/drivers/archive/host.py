"""ArchiveHost: what the archive needs of the process that runs the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from tocsin.broker.broker import Broker
from tocsin.broker.effects import Level
from tocsin.broker.log import StoreReader
from tocsin.config import Settings

T = TypeVar("T")


class ArchiveHost(Protocol):
    """A broker with its loop, settings and log."""

    loop: asyncio.AbstractEventLoop
    settings: Settings
    broker: Broker
    on_dead: list[Callable[[dict[str, bytes | None]], None]]

    def now_ns(self) -> int: ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    async def read(self, work: Callable[[StoreReader], T]) -> T: ...
