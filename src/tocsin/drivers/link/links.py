"""Links: the service of links of one process, and the connections that it uses."""

from __future__ import annotations

import socket
import ssl

from tocsin import __version__
from tocsin.broker.port import BrokerPort
from tocsin.config import Settings
from tocsin.drivers.link.connections import LinkConnections
from tocsin.drivers.link.connector import TcpConnector
from tocsin.drivers.link.listener import LinkListener
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.listeners.own_address import ANY_ADDRESS
from tocsin.drivers.tls.site_context import SiteContext
from tocsin.services.control.bus import ControlBus
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.link.identity import Ids
from tocsin.services.link.service import LinkService


class Links:
    """Begins with `start`, when the listeners are open."""

    def __init__(
        self,
        port: BrokerPort,
        discovery: ResourceDiscovery,
        control: ControlBus,
        ids: Ids,
        settings: Settings,
        budget: ReceiveBudget,
        tls: SiteContext | None = None,
    ) -> None:
        """`tls`: of the connections that this broker opens."""
        overlay = settings.overlay
        self.connections = LinkConnections(overlay, port.runtime, budget)
        connector = TcpConnector(self.connections, tls)
        options = overlay.link_options()
        self.service = LinkService(
            port, discovery, control, connector, options, ids, f"tocsin/{__version__}"
        )
        self._overlay = overlay
        self._port = port
        self._per_peer_max = settings.limits.connections_per_peer_max
        self._listener: LinkListener | None = None
        self._is_started = False

    async def listen(self, address: str, tls: ssl.SSLContext | None) -> LinkListener:
        """Open the listener."""
        self._listener = LinkListener(
            self.connections,
            self.service.accept,
            per_peer_max=self._per_peer_max,
            peer_connected=self._port.peer_connected,
        )
        await self._listener.open(address, tls)
        self.service.address = self._overlay.public_address or _reached(self._listener)
        return self._listener

    async def start(self) -> None:
        """Connect to the peers."""
        self._is_started = True
        await self.service.start()

    async def close(self) -> None:
        """Accept no more, say goodbye to the neighbours, disconnect."""
        if self._listener is not None:
            await self._listener.close()
        if self._is_started:
            await self.service.close()
        await self.connections.close()


def _reached(listener: LinkListener) -> str:
    """How others may connect to a listener: one for all addresses has the name of this machine."""
    if listener.host in ANY_ADDRESS:
        return f"{socket.gethostname()}:{listener.port}"
    return listener.address
