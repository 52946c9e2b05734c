"""House: what the monitor needs of the node that it is a part of."""

from __future__ import annotations

import asyncio
from typing import Protocol

from tocsin.access.session import internal
from tocsin.broker.effects import Level
from tocsin.broker.port import BrokerPort

SESSION = internal("monitor")  # in which it follows the log, and publishes alerts


class Headed(Protocol):
    """Whoever knows where the log ends."""

    @property
    def head(self) -> int: ...


class House(Protocol):
    """What the service needs of the node that it is a part of."""

    loop: asyncio.AbstractEventLoop
    port: BrokerPort

    @property
    def broker(self) -> Headed: ...

    def now_ns(self) -> int: ...

    def sure_ns(self) -> int:
        """The time that it is at least, also while the machine's clock is in doubt."""
        ...

    def note(self, level: Level, message: str, **fields: object) -> None: ...
