"""Exchange: a request that is more than a publish, while it has its connection to itself."""

from __future__ import annotations

from typing import Protocol


class Exchange(Protocol):
    """What a connection calls on the answer in progress."""

    name: str
    """What it is, for the log."""

    takes_over: bool
    """True if it never gives the connection back: what the client sends from now on is its own."""

    is_long_lived: bool
    """True if the client decides how long it takes: a stream, a socket, a wait for events."""

    def start(self) -> None:
        """Begin. May raise a TocsinError, which is then the answer."""

    def received(self, data: bytes) -> None:
        """The client sent something, on a connection that was taken over."""

    def writable(self) -> None:
        """The client has read enough for more to be written."""

    def ended_by_client(self) -> None:
        """The client will send no more, and may have left."""

    def lost(self) -> None:
        """The connection is gone."""

    def tick(self) -> float:
        """Do what is due by now; returns in how many seconds to be called again."""

    def stop(self) -> None:
        """The broker is stopping: end now."""
