"""PendingTls: connections whose TLS handshake is under way.

A server that does this by itself reports nothing of those that fail, and does not count them. Here
they are connections, and why one was closed is in the log.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Final

BACKLOG: Final = 1_024
TLS_HANDSHAKE_S: Final = 10.0
OUT_OF_DESCRIPTORS_S: Final = 0.1  # before the next look whether there is one again
REMEDY: Final = "Use TLS on this port (gmas:// in our own clients), and trust its certificate."

Warn = Callable[..., None]
"""Writes to the broker's own log what a peer did wrong: a message, then fields by name."""


class PendingTls:
    """Accepts connections at some sockets, and passes on those that speak TLS."""

    def __init__(
        self,
        tls: ssl.SSLContext,
        connection: Callable[[], asyncio.Protocol],
        has_room: Callable[[], bool],
        warn: Warn,
        remedy: str = REMEDY,
    ) -> None:
        self._tls = tls
        self._connection = connection
        self._has_room = has_room
        self._warn = warn
        self._remedy = remedy
        self._loop = asyncio.get_running_loop()
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.handshakes: set[asyncio.Task[None]] = set()

    async def open(self, host: str, port: int) -> int:
        """Listen, and return the port; OSError if that cannot be."""
        found = await self._loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in sorted(set(found)):
            listening = socket.create_server(address, family=family, backlog=BACKLOG)
            listening.setblocking(False)
            self._listening.append(listening)
            self._begin(self._tasks, self._accept(listening))
        opened: int = self._listening[0].getsockname()[1]
        return opened

    def close(self) -> None:
        for task in (*self._tasks, *self.handshakes):
            task.cancel()
        for listening in self._listening:
            listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                accepted, address = await self._loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(OUT_OF_DESCRIPTORS_S)
                continue
            if self._has_room():
                peer = f"{address[0]}:{address[1]}"
                self._begin(self.handshakes, self._shake_hands(accepted, peer))
            else:
                accepted.close()

    async def _shake_hands(self, accepted: socket.socket, peer: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._connection, accepted, ssl=self._tls, ssl_handshake_timeout=TLS_HANDSHAKE_S
            )
        except OSError as error:  # so are those of TLS, and the time that ran out
            why = getattr(error, "reason", None) or str(error) or type(error).__name__
            self._warn("a TLS handshake failed", why=why, remedy=self._remedy, peer=peer)

    def _begin(self, among: set[asyncio.Task[None]], work: Coroutine[None, None, None]) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)
