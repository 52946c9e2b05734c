"""Two sides of links on sockets of this machine, each with a receiver that remembers."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import uvloop

from manual_runtime import ManualRuntime
from tocsin.config import OverlaySettings
from tocsin.drivers.link.connections import LinkConnections
from tocsin.drivers.link.connector import TcpConnector
from tocsin.drivers.link.listener import LinkListener
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.services.link.transport import Transport

WAIT_S = 10.0


class Remembering:
    """A Receiver. What it is called with is in `calls`, and what came in `data`."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.calls: list[str] = []
        self.data = bytearray()
        self.reason = ""
        self.is_busy = False

    def received(self, data: bytes) -> None:
        self.calls.append("received")
        self.data += data

    def written(self) -> None:
        self.calls.append("written")

    def ended(self, reason: str) -> None:
        self.calls.append("ended")
        self.reason = reason

    @property
    def has_ended(self) -> bool:
        return "ended" in self.calls


class Side:
    """The links of one process: a connector, and a listener once it is opened."""

    def __init__(
        self,
        settings: OverlaySettings | None = None,
        receiver: Callable[[Transport], Remembering] = Remembering,
        *,
        trusts: ssl.SSLContext | None = None,
        receiving_bytes_max: int = 1 << 30,
    ) -> None:
        self.settings = settings or OverlaySettings()
        self.runtime = ManualRuntime()
        budget = ReceiveBudget(receiving_bytes_max, self.runtime.note)
        self.budget = budget
        self.connections = LinkConnections(self.settings, self.runtime, budget)
        self.connector = TcpConnector(self.connections, trusts)
        self.receivers: list[Remembering] = []
        self.listener: LinkListener | None = None
        self._receiver = receiver

    def opened(self, transport: Transport) -> Remembering:
        receiver = self._receiver(transport)
        self.receivers.append(receiver)
        return receiver

    async def listen(self, tls: ssl.SSLContext | None = None) -> str:
        self.listener = LinkListener(
            self.connections, self.opened, per_peer_max=10, peer_connected=lambda host: None
        )
        await self.listener.open("127.0.0.1:0", tls)
        return self.listener.address

    async def connect(self, address: str) -> Remembering:
        await self.connector.connect(address, self.opened)
        return self.receivers[-1]

    async def close(self) -> None:
        if self.listener is not None:
            await self.listener.close()
        await self.connections.close()

    def said(self, words: str) -> bool:
        return any(words in message for _, message in self.runtime.notes)


@contextlib.asynccontextmanager
async def closing(*sides: Side) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for side in sides:
            await side.close()


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it on the loop that a broker has."""
    uvloop.run(scene())
