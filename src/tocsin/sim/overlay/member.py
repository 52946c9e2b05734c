"""Member: a simulated broker's part in an overlay, over all its crashes."""

from __future__ import annotations

from tocsin.access.session import Session
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.overlay.control.options import ControlOptions
from tocsin.overlay.region_index import RegionIndex
from tocsin.services.control.bus import ControlBus
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.link.identity import Ids, ids_of
from tocsin.services.link.service import LinkService
from tocsin.sim.checks.checked_core import CheckedCore
from tocsin.sim.checks.discovery import DiscoveryCheck
from tocsin.sim.checks.link_access import LinkAccessCheck
from tocsin.sim.checks.overlay import OverlayCheck
from tocsin.sim.overlay.checked_links import CheckedLinks
from tocsin.sim.overlay.connections import LinkNetwork, SimConnector
from tocsin.sim.overlay_plan import PORT, MemberPlan
from tocsin.sim.process import Process

RETRY_S = 0.05


class Member:
    """Starts the services of an overlay in each process."""

    def __init__(
        self,
        host: str,
        plan: MemberPlan,
        network: LinkNetwork,
        check: OverlayCheck,
        discovery_check: DiscoveryCheck,
        access: LinkAccessCheck | None,
    ) -> None:
        """`access`: None where every broker may do everything."""
        self.plan = plan
        self._host = host
        self._network = network
        self._check = check
        self._discovery_check = discovery_check
        self._access = access

    def started(self, process: Process) -> None:
        process.node.runtime.spawn(self._start(process))

    async def _start(self, process: Process) -> None:
        ids = await self._ids(process)
        services = process.services
        if ids is None or services is None or process.is_stopping:
            return  # a broker that stops begins no links: it could save nothing of what they say
        self._check.knows(self._host, ids.broker)
        port = process.node.port
        core = CheckedCore(
            ids.broker, self.plan.discovery, RegionIndex, check=self._discovery_check
        )
        discovery = ResourceDiscovery(port, core, _no_offset)
        connector = SimConnector(self._network, process, self._host)
        control = ControlBus(port, ids.broker, ControlOptions(), _entity_of)
        options = self.plan.options
        links = CheckedLinks(port, discovery, control, connector, options, ids, "tocsin/simulated")
        links.check, links.access, links.host = self._check, self._access, self._host
        if self._access is not None:
            port.may_relay = self._access.may_relay
        links.address = f"{self._host}:{PORT}"
        services.discovery, services.links = discovery, links
        await links.start()

    async def _ids(self, process: Process) -> Ids | None:
        """Of this broker and its log, once the disk has room for them."""
        runtime = process.node.runtime
        while not runtime.is_stopping:
            try:
                return await ids_of(process.node.port)
            except ShuttingDown:
                return None
            except TocsinError:
                await runtime.sleep(RETRY_S)
        return None


def links_of_process(process: Process | None) -> LinkService | None:
    """The links of a broker that runs and has some."""
    services = None if process is None else process.services
    return None if services is None else services.links


def _entity_of(session: Session) -> str:
    return session.principal.name


def _no_offset(zone: str) -> int:
    return 0
