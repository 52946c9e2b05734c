"""The frames listener on UDP: a socket, in front of `services/performance/datagram_sessions.py`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from tocsin.broker.delivery.trust import is_trusted
from tocsin.drivers.listeners.bind_address import host_and_port, why_not
from tocsin.errors import BadSetting
from tocsin.services.performance.datagram_sessions import Address, DatagramSessions

if TYPE_CHECKING:
    from tocsin.services.performance.service import PerformanceService


class DatagramListener(asyncio.DatagramProtocol):
    """An open socket."""

    def __init__(self, service: PerformanceService, trusted: tuple[str, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.DatagramTransport | None = None
        self._sessions = DatagramSessions(
            service, self._send, lambda host: is_trusted(host, trusted)
        )
        self.address = ""

    async def open(self, address: str) -> None:
        host, port = host_and_port(address)
        try:
            await self._loop.create_datagram_endpoint(lambda: self, (host, port))
        except OSError as error:
            self._sessions.close()
            raise BadSetting(
                f"cannot receive datagrams on {address}: {why_not(error)}",
                remedy="Choose another address with --frames HOST:PORT.",
            ) from None
        self.address = address

    async def close(self) -> None:
        self._sessions.close()
        if self._transport is not None:
            self._transport.close()
        await asyncio.sleep(0)

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str | int, ...]) -> None:
        self._sessions.received(data, (str(address[0]), int(address[1])))

    def error_received(self, error: Exception) -> None:
        """A peer that we sent to is not there; its lease will end."""

    def _send(self, data: bytes, address: Address) -> None:
        if self._transport is not None:
            self._transport.sendto(data, address)


async def listen(
    service: PerformanceService, trusted: tuple[str, ...], address: str
) -> DatagramListener:
    """Take datagrams where the frames listener is, from senders that are trusted."""
    listener = DatagramListener(service, trusted)
    await listener.open(address)
    return listener
