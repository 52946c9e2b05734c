"""House: what the archive needs of the node that it is a part of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from tocsin.broker.broker import Broker
from tocsin.broker.effects import Level
from tocsin.broker.log import StoreReader
from tocsin.config import Settings

T = TypeVar("T")


class House(Protocol):
    """A node, as far as the archive goes."""

    loop: asyncio.AbstractEventLoop
    settings: Settings
    broker: Broker
    on_dead: list[Callable[[dict[str, bytes | None]], None]]

    def now_ns(self) -> int: ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    async def read(self, work: Callable[[StoreReader], T]) -> T: ...
