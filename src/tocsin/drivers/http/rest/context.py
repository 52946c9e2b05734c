"""RestContext: what the REST endpoints are given of the process that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.topics import SeenTopics
from tocsin.config import Settings
from tocsin.drivers.access.access_control import AccessControl
from tocsin.drivers.archive.archiver import Archiver
from tocsin.drivers.clock import ClockWatch
from tocsin.drivers.health import Health
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.storage.disk_space import DiskSpace
from tocsin.services.blackboard.board import Board
from tocsin.services.control.bus import ControlBus
from tocsin.services.directory.directory import Directory
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.link.service import LinkService
from tocsin.services.performance.service import PerformanceService
from tocsin.services.subscriptions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from tocsin.access.sign_in.certificates import Authorities
    from tocsin.drivers.access.entities import Entities


@dataclass(frozen=True, slots=True)
class RestContext:
    """The port, the services above it, and what an operator asks about."""

    port: BrokerPort
    access: AccessControl
    settings: Settings
    addresses: OwnAddresses
    subscriptions: Subscriptions
    board: Board
    directory: Directory
    discovery: ResourceDiscovery | None
    control: ControlBus | None
    links: LinkService | None
    performance: PerformanceService
    topics: SeenTopics
    monitor: Monitor | None
    archiver: Archiver | None
    clock: ClockWatch
    disk_space: DiskSpace
    health: Callable[[], Health]
    entities: Entities | None  # who signs in with a key; None where nobody signs in
    authorities: Callable[[], Authorities]  # that certify clients
    started_ns: int
