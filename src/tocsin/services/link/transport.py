"""Transport and Connector: connections to other brokers, as the service of links uses them.

Both runtimes have them: sockets, or the simulated network.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from tocsin.access.session import Session


class Transport(Protocol):
    """One connection. Bytes arrive in the order they were written, or it ends."""

    @property
    def peer(self) -> str:
        """The address of the other side, as host:port."""

    @property
    def session(self) -> Session:
        """Who is at the other side, as the connection shows it."""

    @property
    def waiting(self) -> int:
        """How many bytes were written and not yet taken by the network."""

    def write(self, data: bytes) -> None:
        """Send this after all that was written before; nothing happens if it has ended."""

    def close(self) -> None:
        """End it once what was written has gone out, or a short while later."""

    def abort(self) -> None:
        """End it now."""


class Receiver(Protocol):
    """Who is called about a connection."""

    @property
    def is_busy(self) -> bool:
        """So much of what came is not handled yet that no more should be read now."""

    def received(self, data: bytes) -> None:
        """These bytes came."""

    def written(self) -> None:
        """Everything that was written has been taken by the network."""

    def ended(self, reason: str) -> None:
        """It is over, for this reason; called once, and last, whoever ended it."""


class Connector(Protocol):
    """Connects to other brokers."""

    def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> Awaitable[None]:
        """Call `opened` once there is a connection, and return; or raise PeerFailed."""
