"""TcpConnector: connects to other brokers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial

from tocsin.config import split_address
from tocsin.drivers.link.connection import LinkConnection
from tocsin.drivers.link.connections import LinkConnections
from tocsin.drivers.listeners.bind_address import why_not
from tocsin.errors import PeerFailed
from tocsin.services.link.transport import Receiver, Transport


class TcpConnector:
    """A Connector. With a TLS context, peers are believed by their certificates."""

    def __init__(self, connections: LinkConnections, tls: ssl.SSLContext | None) -> None:
        self._connections = connections
        self._tls = tls

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        parts = split_address(address.strip())
        if parts is None:
            raise PeerFailed(
                f"{address!r} is not the address of a broker",
                remedy="Write it as host:port, as in --peer 127.0.0.1:8403.",
            )
        host, port = parts
        connection = LinkConnection(self._connections, opened)
        connect_s = self._connections.settings.connect_s
        failed = partial(_failed, address.strip())
        try:
            async with asyncio.timeout(connect_s):
                await self._connections.loop.create_connection(
                    lambda: connection,
                    host,
                    port,
                    ssl=self._tls,
                    server_hostname=None if self._tls is None else host.removesuffix("."),
                )
            if connection.refusal is not None:
                raise failed(
                    connection.refusal.problem, "This broker's log says what is wrong with it."
                )
        except TimeoutError:
            if connection.is_open:
                return  # at the last moment
            raise failed(
                f"no answer within {connect_s:g} s",
                "Check the address, and that nothing on the way blocks it.",
            ) from None
        except ssl.SSLCertVerificationError as error:
            raise failed(
                f"its TLS certificate is not trusted: {error.verify_message}",
                "Name the file of the authority that signed it in overlay.ca_file, and the peer as "
                "its certificate does.",
            ) from None
        except ssl.SSLError as error:
            raise failed(
                f"TLS failed: {error.reason or error}",
                "Give that broker a certificate (--tls-cert), or set overlay.tls = false here.",
            ) from None
        except (OSError, UnicodeError) as error:
            raise failed(
                why_not(error), "Start that broker, and check the address it listens on: --link."
            ) from None


def _failed(address: str, why: str, remedy: str) -> PeerFailed:
    return PeerFailed(f"cannot connect to {address}: {why}", remedy=remedy)
