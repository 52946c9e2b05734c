"""Site: one machine of a world with the clients and sinks of its broker."""

from __future__ import annotations

from tocsin.broker.runtime import HttpAnswer
from tocsin.sim.clients.administrators import Administrators
from tocsin.sim.clients.blackboard import BoardClient
from tocsin.sim.clients.event_streams import EventStreamReader
from tocsin.sim.clients.performance import PerformanceConsumer, PerformanceProducer
from tocsin.sim.clients.publishers import Publisher
from tocsin.sim.clients.readers import Reader
from tocsin.sim.clients.soap import FORMS, BoxOwner, SoapPublisher, SoapSubscriber
from tocsin.sim.clients.sockets import EventSocketClient, SocketClient
from tocsin.sim.clients.state_writers import StateWriters
from tocsin.sim.clients.subscribers import Subscribers, soap_url, webhook_url
from tocsin.sim.faults.crashes import CrashKind
from tocsin.sim.machine import Machine
from tocsin.sim.network import Network, Request, Response
from tocsin.sim.plan import BrokerPlan
from tocsin.sim.shared_log import SharedLog
from tocsin.sim.sinks import Sink
from tocsin.sim.site_access import SiteAccess
from tocsin.sim.world import World

DISK_FULL_MS = (50, 400)
ROOM_BYTES_MAX = 30_000


class Site:
    """One broker and everybody who talks to it."""

    def __init__(
        self,
        world: World,
        plan: BrokerPlan,
        network: Network,
        number: int,
        later: list[Machine],
        shared: SharedLog | None = None,
    ) -> None:
        """`later`: the brokers that this one may push into. `shared`: the log that it has in common
        with others."""
        self.machine = machine = Machine(world, plan, network, number, shared)
        self._world = world
        self._plan = plan
        self._disk = machine.disk
        network.hosts.setdefault("owner.example", _Owner())
        for each, sink_plan in enumerate(plan.sinks):
            sink = Sink(world, network, machine.checks, f"sink-{number}-{each}", sink_plan)
            machine.delivery.sinks[sink.url] = sink
        machine.delivery.brokers = {each.host: each.checks.log for each in later}
        machine.delivery.sign_in = {each.host: each.headers for each in later}
        self._brokers = list(machine.delivery.brokers)
        machine.checks.trusted.update(map(webhook_url, self._brokers))
        self._subscribers = Subscribers(machine, self._brokers)
        self._state_writers = StateWriters(machine, plan.state_changes)
        self._publishers = [
            Publisher(machine, each, publisher) for each, publisher in enumerate(plan.publishers)
        ]
        access = machine.access
        self._administrators = None if access is None else Administrators(machine, access)
        self._soap = self._soap_clients(network, number)
        self._sockets: list[SocketClient | PerformanceProducer | PerformanceConsumer] = [
            EventSocketClient(machine, each, messages) for each, messages in enumerate(plan.sockets)
        ]
        for each, messages in enumerate(plan.boards):
            self._sockets.append(BoardClient(machine, each, messages))
        for each, events in enumerate(plan.performance):
            self._sockets.append(PerformanceProducer(machine, each, events))
            self._sockets.append(PerformanceConsumer(machine, each))
        self._readers = [] if access is None else self._readers_of(access)
        self._streams = [EventStreamReader(machine, each) for each in range(plan.streams)]

    def _soap_clients(
        self, network: Network, number: int
    ) -> list[SoapPublisher | SoapSubscriber | BoxOwner]:
        machine, plan, random = self.machine, self._plan, self._world.random
        clients: list[SoapPublisher | SoapSubscriber | BoxOwner] = []
        for each, messages in enumerate(plan.soap_publishers):
            clients.append(SoapPublisher(machine, each, random.choice(FORMS), messages))
        for each, sink_plan in enumerate(plan.soap_subscribers):
            name = f"consumer-{number}-{each}"
            sink = Sink(self._world, network, machine.checks, name, sink_plan)
            machine.delivery.sinks[sink.url] = sink
            is_eventing = random.random() < 0.5
            clients.append(SoapSubscriber(machine, name, sink.url, eventing=is_eventing))
        for _ in range(plan.soap_brokers if self._brokers else 0):
            host = random.choice(self._brokers)  # subscribes itself, so that it need not be trusted
            name, is_eventing = host.removesuffix(".example"), random.random() < 0.5
            clients.append(SoapSubscriber(machine, name, soap_url(host), eventing=is_eventing))
        clients += [BoxOwner(machine, each, messages=3) for each in range(plan.soap_boxes)]
        return clients

    def _readers_of(self, access: SiteAccess) -> list[Reader]:
        reads = enumerate(access.plan.readers)
        return [Reader(self.machine, access, number, each) for number, each in reads]

    def may_publish_at(self, others: list[Machine]) -> None:
        """These take the same events: publishers send to any of them, again and again."""
        for publisher in self._publishers:
            publisher.machines += others

    def start(self, publish_after_s: float = 0.0) -> None:
        world, plan = self._world, self._plan
        self.machine.start()
        self._subscribers.start()
        self._state_writers.start()
        if self._administrators is not None:
            self._administrators.start()
        for publisher in self._publishers:
            if publish_after_s:
                world.after_ms(publish_after_s * 1e3, publisher.start)
            else:
                publisher.start()
        for client in [*self._soap, *self._sockets]:
            world.soon(0, 60, client.start)
        for stream in self._streams:
            world.soon(0, 60, stream.start)
        for reader in self._readers:
            reader.start()
        if plan.disk_full_at_ms is not None:
            world.after_ms(plan.disk_full_at_ms, self._fill_disk)
        if plan.sync_fails_at_ms is not None:
            world.after_ms(plan.sync_fails_at_ms, self._break_sync)

    @property
    def is_done(self) -> bool:
        """True if its clients have done what they wanted to."""
        others_are = self._subscribers.is_done and self._state_writers.is_done
        if self._administrators is not None and not self._administrators.is_done:
            return False
        clients = [*self._publishers, *self._soap, *self._sockets, *self._readers]
        return others_are and all(client.is_done for client in clients)

    @property
    def acknowledged(self) -> int:
        return self.machine.checks.log.acknowledged

    @property
    def delivered(self) -> int:
        return self.machine.checks.taken + self.machine.box_checks.taken

    def _fill_disk(self) -> None:
        if not self._world.calm:
            room = self._world.random.choice((0, ROOM_BYTES_MAX // 3, ROOM_BYTES_MAX))
            if self._world.fault(0.4):
                self._world.soon(1, DISK_FULL_MS[0], self._kill)
            self._disk.bytes_max = self._disk.size_bytes() + room
            self._world.soon(*DISK_FULL_MS, self._mend_disk)

    def _kill(self) -> None:
        if self.machine.process is not None and not self._world.calm:
            self.machine.process.crash(CrashKind.KILL, "the disk is full")

    def _break_sync(self) -> None:
        self._disk.sync_fails = not self._world.calm

    def _mend_disk(self) -> None:
        self._disk.bytes_max = None
        if self._world.calm:
            self._disk.sync_fails = False

    def wind_up(self) -> None:
        """There are no more faults."""
        self._mend_disk()
        if self._administrators is not None:
            self._administrators.wind_up()
        self._subscribers.wind_up()

    def what_is_owed(self) -> str | None:
        """Why this is not the end yet."""
        process = self.machine.process
        if process is None:
            return "the broker does not run"
        if self._administrators is not None:
            owed = self._administrators.what_is_owed()
            if owed is not None:
                return owed
        if not self.is_done:
            return "a client is not done: an event or a subscription is not acknowledged"
        if not all(node.broker.is_idle() for node in process.nodes):
            return "something waits for the disk"
        if self.machine.dead_letters():
            return "there are dead letters"
        if dead := process.node.broker.counters.dead_letters:
            return f"the broker counts {dead} dead letters"
        if (owed := self._state_writers.what_is_owed()) is not None:
            return owed
        for stream in self._streams:
            if (owed := stream.what_is_owed()) is not None:
                return owed
        for socket in self._sockets:
            if (owed := socket.what_is_owed()) is not None:
                return owed
        for node in process.nodes:
            if (owed := node.checks.what_is_owed(node.broker, node.reader.cursors())) is not None:
                return owed
        return None

    def compare_logs(self) -> None:
        process = self.machine.process
        for node in process.nodes if process is not None else ():
            node.compare_log()

    def close(self) -> None:
        if self.machine.process is not None:
            self.machine.process.abandon()
        self._disk.unregister()


class _Owner:
    """Where owners of subscriptions are notified of their end."""

    def handle(self, request: Request, respond: object) -> None:
        assert callable(respond)
        respond(Response(HttpAnswer(204, {}, b"")))
