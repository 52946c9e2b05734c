"""The machine's clock, read every few seconds and shown to the brokers of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from tocsin.broker.broker import Broker
from tocsin.broker.effects import Token

READ_S: Final = 2.0


class House(Protocol):
    """A node, as far as its clock goes."""

    loop: asyncio.AbstractEventLoop
    broker: Broker

    def steady_ns(self) -> int: ...

    def kick(self) -> None: ...

    async def ask(self, call: Callable[[Token, int], None]) -> Any: ...


class ClockWatch:
    """Tells a broker, and that of its message boxes, what the clock says, and who accepted it."""

    def __init__(self, node: House) -> None:
        self._nodes = [node]
        self._timer = node.loop.call_later(READ_S, self._read)

    def also(self, node: House) -> None:
        """Another log of the same process."""
        self._nodes.append(node)

    def close(self) -> None:
        self._timer.cancel()

    def _read(self) -> None:
        self._timer = self._nodes[0].loop.call_later(READ_S, self._read)
        self.look()

    def look(self) -> None:
        """Read it now."""
        for node in self._nodes:
            node.broker.clock.read(time.time_ns(), node.steady_ns())
            node.kick()

    async def accept(self) -> None:
        """An operator says that it is right."""
        for node in self._nodes:
            await node.ask(partial(_accept, node))

    def complaints(self) -> list[str]:
        """What speaks against the clock; of several logs the first that says so."""
        said = (node.broker.clock.complaint() for node in self._nodes)
        return [words for words in said if words][:1]


def _accept(node: House, token: Token, now_ns: int) -> None:
    node.broker.clock.accept(time.time_ns(), token, now_ns)
