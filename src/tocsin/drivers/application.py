"""Application: one running broker process, put together here; listeners are opened around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.access.decision import EVERYBODY, Access, BoxAccess
from tocsin.access.policy.policy import Policy
from tocsin.access.session import internal
from tocsin.broker.log import EventStore
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.latest import Latest
from tocsin.broker.recent.topics import SeenTopics
from tocsin.broker.recent.types import SeenTypes
from tocsin.config import Settings
from tocsin.drivers.access.access_control import AccessControl, open_access_control, quotas_of
from tocsin.drivers.archive.archiver import Archiver
from tocsin.drivers.clock import ClockWatch
from tocsin.drivers.health import Health, health_of
from tocsin.drivers.http.rest.context import RestContext
from tocsin.drivers.link.links import Links
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.drivers.logger import Logger
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.node import Node
from tocsin.drivers.storage.disk_space import DiskSpace
from tocsin.services.blackboard.board import Board
from tocsin.services.control.bus import ControlBus
from tocsin.services.directory.directory import Directory
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.performance.service import PerformanceOptions, PerformanceService
from tocsin.services.reliable_messaging.sender import ReliableSender
from tocsin.services.subscriptions.subscriptions import Subscriptions

if TYPE_CHECKING:
    from tocsin.access.sign_in.certificates import Authorities
    from tocsin.drivers.access.entities import Entities
    from tocsin.drivers.tls.certificates import PeerCertificates


class Application:
    """A node, and what observes it. Only what starts a process is given all of it."""

    def __init__(
        self,
        settings: Settings,
        store: EventStore,
        logger: Logger,
        beside: Application | None = None,
        access: Access | None = None,
        *,
        are_boxes: bool = False,
        peers: PeerCertificates | None = None,
    ) -> None:
        """`beside`: the broker of the same process whose message boxes this one holds. Without
        `access`, the settings say who may do what. `are_boxes`: what is in this log was sent to the
        box that it is in, and its owner may have it. `peers`: what certificates sign clients in."""
        self.settings = settings
        self.logger = logger
        self.started_ns = time.time_ns()
        self.addresses = OwnAddresses(settings)
        least_ns = 0 if beside is None else beside.port.lower_bound_ns
        # Until there is a broker, which knows better: subscriptions are looked at when it starts.
        self._now_ns: Callable[[], int] = time.time_ns
        policy = self._new_policy() if access is None and settings.sign_in_required else None
        decides = access or policy or EVERYBODY
        # What is in a box counts as everything else that its owner has.
        quotas = quotas_of(settings, policy) if beside is None else beside.access_control.quotas
        self.node: Node = Node(
            settings,
            store,
            logger,
            self.addresses,
            lower_bound_ns=least_ns,
            access=BoxAccess(decides) if are_boxes else decides,
            quotas=quotas,
        )
        node = self.node
        self._now_ns = node.now_ns
        self.access_control: AccessControl = open_access_control(node, policy, quotas, settings)
        if beside is None:  # else what the two share would be read twice
            self.access_control.reload(settings.access)
        port = node.port
        self.port: BrokerPort = port
        self.clock: ClockWatch = ClockWatch(port) if beside is None else beside.clock
        if beside is not None:
            self.clock.add(port)
        self.latest = Latest(port.runtime, node.recent)
        self.topics = SeenTopics(port.runtime, node.recent)
        self.types = SeenTypes(port.runtime, port.head, node.recent)
        self.board = Board(port)
        self._observe(node, ReliableSender(port))
        self.disk_space = DiskSpace(port, settings)
        # Of what else is looked after.
        self.complaints: list[Callable[[], list[str]]] = [self.access_control.complaints]
        self.entities: Entities | None = None  # who signs in with a key, where clients sign in
        self.peers = peers
        self.monitor: Monitor | None = None  # set before listeners open, if there shall be one
        self.archiver: Archiver | None = None  # the same
        self.discovery: ResourceDiscovery | None = None  # the same
        self.control: ControlBus | None = None  # the same
        self.links: Links | None = None  # the same

    def _observe(self, node: Node, reliable: ReliableSender) -> None:
        """Have everything that keeps step with the node called by it."""
        node.pusher.soap.reliably = reliable.send
        observers = node.observers
        observers.committed.extend([self.types.add, self.topics.counts.add])
        observers.interest_changed.append(self.board.interest_changed)
        observers.stopped.extend([self.clock.close, self.board.close])
        observers.stopped.append(self.access_control.service.close)
        observers.sent.append(reliable.close)

    def _new_policy(self) -> Policy:
        contact = self.settings.auth.contact
        return Policy(lambda: self._now_ns(), contact=contact, steady_ns=time.monotonic_ns)

    def authorities(self) -> Authorities:
        """Those that certify clients, as the files say now."""
        from tocsin.access.sign_in.certificates import Authorities

        return Authorities() if self.peers is None else self.peers.authorities

    def open_entities(self, broker: str) -> None:
        """Before there is a RestContext. `broker`: its id, which proofs of keys are for."""
        if self.access_control.entity_tokens is not None:
            from tocsin.drivers.access.entities import open_entities

            control, settings = self.access_control, self.settings
            self.entities = open_entities(self.port, control, settings, broker, self.authorities)

    def health(self) -> Health:
        node, clock = self.node, self.clock.complaints()
        beside = clock + ([] if self.archiver is None else self.archiver.complaints())
        beside += [complaint for of in self.complaints for complaint in of()]
        jump_ns = self.port.clock_status(internal("health")).jump_ns
        full, jump_s = self.disk_space.reason, 0.0 if clock else jump_ns / 1e9
        return health_of(node.failure, full, jump_s, beside, stopping=node.stopping)

    def performance_service(self) -> PerformanceService:
        frames = self.settings.frames
        options = PerformanceOptions(
            event_limits=self.settings.event_limits(),
            subscriptions_max=frames.subscriptions_max,
            lease_s=frames.datagram_lease_s,
            leased_peers_max=frames.datagram_subscriptions_max,
        )
        return PerformanceService(self.port, options, self.types, self.latest.of_type)

    def rest_context(self, directory: Directory, performance: PerformanceService) -> RestContext:
        """To be asked for when there is a monitor, an archiver and discovery, if there shall be."""
        node, not_own = self.node, self.addresses.check_not_own
        seal = node.secrets.seal
        return RestContext(
            port=self.port,
            access=self.access_control,
            settings=self.settings,
            addresses=self.addresses,
            subscriptions=Subscriptions(self.port, node.sinks, node.rules, not_own, seal),
            board=self.board,
            directory=directory,
            discovery=self.discovery,
            control=self.control,
            links=None if self.links is None else self.links.service,
            performance=performance,
            topics=self.topics,
            monitor=self.monitor,
            archiver=self.archiver,
            clock=self.clock,
            disk_space=self.disk_space,
            health=self.health,
            entities=self.entities,
            authorities=self.authorities,
            started_ns=self.started_ns,
        )

    async def close(self) -> None:
        """After the listeners."""
        await self.access_control.close()
        if self.archiver is not None:
            await self.archiver.close()
        if self.monitor is not None:
            await self.monitor.close()
        await self.node.close()
        if self.access_control.audit is not None:
            await self.access_control.audit.close()  # last: until then something may be decided
