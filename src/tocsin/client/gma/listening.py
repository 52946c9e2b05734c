"""Listening: what both sides that accept connections have in common."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, Protocol

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import PeerConnection
from tocsin.errors import BadSetting

CONNECTIONS_MAX: Final = 1_000
HANDSHAKE_S_MAX: Final = 10.0
GOODBYE_S_MAX: Final = 2.0  # for everybody to hear that it is over


class Caller(Protocol):
    """Who called us."""

    connection: PeerConnection
    gone: asyncio.Event

    def say_goodbye(self) -> None:
        """End what there is; the connection is closed when the other side has replied."""


async def listen(
    address: PeerAddress, context: ssl.SSLContext | None, make: Callable[[], PeerConnection]
) -> tuple[asyncio.Server, PeerAddress]:
    """A server there, and the address with the port it got; BadSetting if there can be none."""
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            make,
            address.host or None,
            address.port,
            ssl=context,
            ssl_handshake_timeout=None if context is None else HANDSHAKE_S_MAX,
        )
    except (OSError, UnicodeError) as error:
        raise BadSetting(
            f"cannot listen on {address.authority}: {getattr(error, 'strerror', None) or error}",
            remedy="Choose another port, or 0 for any that is free.",
        ) from None
    port = server.sockets[0].getsockname()[1]
    return server, address._replace(port=port, tls=context is not None)


async def say_goodbye(callers: Collection[Caller]) -> None:
    """Tell everybody, wait a little for them to hear it, and close what is left."""
    leaving = list(callers)
    for caller in leaving:
        caller.say_goodbye()
    with suppress(TimeoutError):
        async with asyncio.timeout(GOODBYE_S_MAX):
            await asyncio.gather(*(caller.gone.wait() for caller in leaving))
    for caller in list(callers):
        caller.connection.abort("it is over")
