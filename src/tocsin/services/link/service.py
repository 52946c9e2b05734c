"""LinkService: the links of one broker, and what goes over them.

The router decides about links and routing tables, the core of discovery about resources; this hands
them what comes, and what they want done to the performer.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.access.decision import Action
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks, Timer
from tocsin.errors import LinkRefused, TocsinError
from tocsin.event.filter import Filter
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.routing.effects import Effect, NeighbourForgotten
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.router import Router
from tocsin.services.control.bus import ControlBus
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.link import handovers
from tocsin.services.link.backlog import Backlog
from tocsin.services.link.connection import (
    Connection,
    check_only_one,
    invalid,
    no_room,
    slowest_of,
)
from tocsin.services.link.control_links import ControlLinks
from tocsin.services.link.dialler import Dialler
from tocsin.services.link.direct import DirectResults
from tocsin.services.link.discovery_links import DiscoveryLinks
from tocsin.services.link.handovers import Handovers
from tocsin.services.link.identity import Ids
from tocsin.services.link.info import overlay_info, reached_by
from tocsin.services.link.items import Received, is_of_neighbour
from tocsin.services.link.local_filters import LocalSubscriptions
from tocsin.services.link.log_lines import LinkChanges, RefusedLinks, note_ignored
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.options import LinkOptions
from tocsin.services.link.performer import TABLES, Performer
from tocsin.services.link.rights import check_entry, check_link, session_of
from tocsin.services.link.transport import Connector, Receiver, Transport
from tocsin.services.link.views import OverlayInfo
from tocsin.services.repeated_log import RepeatedLog
from tocsin.wire.link.codec import LinkMessage
from tocsin.wire.link.messages import (
    DATA_FORMAT,
    Bye,
    Direct,
    Hello,
    Ignored,
    MessageBase,
    Refuse,
    Welcome,
)

TICK_S = 1.0
SENT_AHEAD_BYTES_MAX = 1 << 20  # of the tables, before the connection has taken them

_SERVICE = internal("link")


class LinkService:
    """One broker's part in the overlay. Begins with `start`; the listener calls `accept`."""

    def __init__(
        self,
        port: BrokerPort,
        discovery: ResourceDiscovery,
        control: ControlBus,
        connector: Connector,
        options: LinkOptions,
        ids: Ids,
        agent: str,
    ) -> None:
        self.address: str | None = None  # that others may connect to, once there is a listener
        self._log = RepeatedLog(port.runtime)
        self._changes = LinkChanges(port.runtime)
        self.refused = RefusedLinks(self._log)
        self._options = options
        self._ids = ids
        self._discovery = discovery
        self._control = control
        self._port = port
        self._connections: dict[int, Connection] = {}
        self._runtime = runtime = port.runtime
        own = Identity(ids.broker, ids.log, DATA_FORMAT, agent, runtime.new_id())
        self.router = router = Router(own, options.routing)
        router.check_entry = self._check_entry
        self._backlog = Backlog(options.received_bytes_max, options.received_bytes_total_max)
        self._dialler = Dialler(
            runtime, connector, options.peers, options.reconnect, self._open, self._has_another
        )
        self.neighbours = Neighbours(
            port,
            router,
            discovery.driver,
            control,
            ids,
            options,
            self._dialler.linked,
            self._connections,
            self._backlog,
            self._changes,
        )
        origin, room = (ids.broker, ids.log), options.waiting_bytes_max // 2
        self.handovers = Handovers(port, origin, router, self.neighbours, room)
        self._direct = DirectResults(port, connector, ids.broker, discovery.driver, options)
        self._numbers = 0
        self._performer = Performer(
            port,
            self,
            self._connections,
            self.neighbours,
            self.handovers,
            discovery.driver,
            control,
            self._backlog,
        )
        self._local = LocalSubscriptions(port, self._route_local)
        self._tasks = Tasks(runtime)
        self._timer: Timer | None = None
        self._tick_due_s = 0.0
        self._is_started = self._is_closed = self._is_going_on = False

    # Start and end

    async def start(self) -> None:
        """Take up what was saved, and connect to the peers."""
        own = self._port.own(_SERVICE)
        saved = own.kept(handovers.KEY)
        rows = {key.removeprefix(handovers.KEY): value for key, value in saved.items()}
        await self.neighbours.restore(rows)
        tables = own.kept(TABLES)
        known = {key.removeprefix(TABLES): value for key, value in tables.items()}
        self._perform(self.router.restore(known, self.neighbours.now_ns()))
        gone = {each.broker for each in self.neighbours} - set(self.router.neighbours())
        self._perform(NeighbourForgotten(broker) for broker in sorted(gone))
        self.handovers.restore(rows)
        self._tasks.spawn(self._begin())

    async def _begin(self) -> None:
        """Once what was saved is in order again, which a full disk may hold up."""
        if self.neighbours or len(self._dialler):
            await self._local.load()
        await self._performer.performed()
        self.neighbours.want()
        links = DiscoveryLinks(self.router, self.neighbours, self._direct, self._perform)
        core = self._discovery.driver.core
        core.is_behind, core.may_connect_to = self.router.is_behind, self._direct.may_connect_to
        self._discovery.driver.links = links
        self._control.use(ControlLinks(self._port, self.router, self.neighbours, self._perform))
        self._discovery.round_trip_of = links.round_trip_s
        if self.address is not None:
            self._discovery.set_reply_to(self.address)
        self._is_started = True
        self._dialler.start()
        self._set_timer()

    async def close(self) -> None:
        """Say goodbye to the neighbours; nothing is sent or taken any more."""
        self._is_closed = True
        for part in (self._dialler, self.handovers, self._control, self._direct, self._local):
            part.close()
        for connection in list(self._connections.values()):
            connection.send(Bye("the broker is stopping"))
            connection.close(None)
        self.neighbours.close()
        self._performer.close()
        self._tasks.cancel()
        if self._timer is not None:
            self._timer.cancel()

    # Connections

    def accept(self, transport: Transport) -> Receiver:
        """Somebody has connected."""
        connection = self._open(transport)
        if not self._is_started or len(self._connections) > self._options.links_max:
            connection.abort(no_room(self._options.links_max))
        return connection

    def _open(self, transport: Transport, address: str = "", leaving: str = "") -> Connection:
        self._numbers += 1
        number = self._numbers
        connection = Connection(
            number,
            transport,
            self._runtime,
            self._options,
            self,
            self._backlog.share(),
            peer_address=address,
        )
        self._connections[number] = connection
        self._set_timer()
        obstacle = self._performer.obstacle
        if obstacle is not None:
            self.refuse(connection, obstacle)
        elif address:  # whoever connects speaks first: it may only want to leave results
            self._greet(connection, leaving)
        return connection

    def _greet(self, connection: Connection, leaving: str = "") -> None:
        connection.is_routed = True
        if not self._local.is_loaded:
            self._tasks.spawn(self._local.load())
        is_outgoing = connection.is_outgoing
        self._perform(
            self.router.link_opened(
                connection.number,
                self.neighbours.now_ns(),
                is_outgoing=is_outgoing,
                replacing=leaving,
                nonce=self._runtime.new_id(),
                token=self._runtime.new_id(),
            )
        )

    def received(self, connection: Connection, message: LinkMessage, size: int) -> None:
        """A message that is not about the connection itself."""
        try:
            named = message.broker if isinstance(message, Hello | Direct) else connection.broker
            check_link(self._port, connection, named)
            self._receive(connection, message, size)
        except TocsinError as error:
            self.refuse(connection, error)

    def _receive(self, connection: Connection, message: LinkMessage, size: int) -> None:
        if not connection.is_routed:  # the first message says what an accepted one is for
            if self._direct.take(connection, message):
                return
            if not isinstance(message, Hello):
                raise invalid(f"{type(message).__name__} cannot be the first message")
            self._greet(connection)
        if isinstance(message, Hello) and not connection.broker:
            self.neighbours.check_owner(message.broker, session_of(connection))
            connection.broker, connection.agent = message.broker, message.agent
            connection.instance = message.instance
        if isinstance(message, Hello | Welcome):
            self._check_only_one(connection)
        elif isinstance(message, Ignored) and self.router.neighbour(connection.number):
            neighbour = self.neighbours.get(connection.broker)
            note_ignored(self._log, neighbour, connection, message)
        elif isinstance(message, Refuse):  # said at once: the end of the connection may come first
            connection.error = LinkRefused.by(message.code, message.reason)
        if isinstance(message, MessageBase):
            self._perform(self.router.receive(connection.number, message, self.neighbours.now_ns()))
        elif self.router.neighbour(connection.number) is None:
            raise invalid("a message of discovery before the handshake")
        connection.backlog.add(size)
        for_later = message if is_of_neighbour(message) else None
        self._performer.put([Received(connection, size, for_later)])

    def _check_entry(self, link: int, table: str, filter: Filter) -> None:
        """Raise NotAllowed for an entry that whoever is at this link may not make."""
        connection = self._connections.get(link)
        if connection is not None:
            check_entry(self._port, session_of(connection), table, filter)

    def _check_only_one(self, connection: Connection) -> None:
        # Only one that has proved whose it is counts: anybody may say that it is somebody.
        neighbour, known = self.router.neighbour, self._connections.values()
        others = [each for each in known if neighbour(each.number) == connection.broker]
        alive_since_s = self._runtime.elapsed_s() - 1.5 * self._options.heartbeat_s
        check_only_one(connection, others, alive_since_s)

    def _has_another(self, connection: Connection) -> bool:
        others = (each for each in self._connections.values() if each is not connection)
        return any(each.broker == connection.broker for each in others)

    def refuse(self, connection: Connection, error: TocsinError) -> None:
        if connection.is_routed:  # it is counted when the router has closed it
            self._perform(self.router.refuse(connection.number, error, self.neighbours.now_ns()))
        else:
            self.refused.add(connection, error)
            connection.send(Refuse(error.code, error.problem[:1024]))
            connection.close(error)

    def ended(self, connection: Connection) -> None:
        if self._connections.pop(connection.number, None) is None:
            return
        if connection.is_routed:
            self.neighbours.ended(connection)
            self._perform(self.router.link_closed(connection.number, self.neighbours.now_ns()))
        self._dialler.ended(connection)

    # Time

    def _set_timer(self) -> None:
        """Nothing is done every second where there is nobody."""
        is_idle = not (self._connections or self.neighbours)
        if self._timer is None and not is_idle and not self._is_closed:
            self._timer = self._runtime.call_later(TICK_S, self._tick)
            self._tick_due_s = self._runtime.elapsed_s() + TICK_S

    def _tick(self) -> None:
        self._timer = None
        now_s = self._runtime.elapsed_s()
        late_s = now_s - self._tick_due_s
        for connection in list(self._connections.values()):
            if late_s > TICK_S:  # what came meanwhile is read before it is judged
                connection.excuse(late_s)
            try:
                self._perform(self.neighbours.look_at_rights(connection))
            except TocsinError as ended:
                self.refuse(connection, ended)
            is_greeted = self.router.neighbour(connection.number) is not None
            connection.tick(now_s, is_greeted=is_greeted or connection.is_direct)
        excused_s = late_s if late_s > TICK_S else 0.0
        for connection, error in self.neighbours.overdue(now_s, excused_s):
            self.refuse(connection, error)
        slowest = slowest_of(self._connections.values(), self._options.waiting_bytes_total_max)
        if slowest is not None:
            slowest.abort_slow()
        self._changes.tick(now_s)
        self._perform(self.router.tick(self.neighbours.now_ns(), int(now_s * NS_PER_S)))
        self._set_timer()

    def _route_local(self, entry: str, wanted: Filter | None) -> None:
        now_ns = self.neighbours.now_ns()
        if wanted is None:
            self._perform(self.router.local_unsubscribe(entry, now_ns))
        else:
            self._perform(self.router.local_subscribe(entry, wanted, now_ns))

    def _perform(self, effects: Iterable[Effect]) -> None:
        self._performer.put(effects)
        self._control.share()
        if self.router.has_more and not self._is_going_on and not self._is_closed:
            self._is_going_on = True
            self._runtime.call_later(0.0, self._go_on)

    def _go_on(self) -> None:
        self._is_going_on = False
        self._perform(self.router.go_on(self.neighbours.now_ns()))

    def send_piece(self, connection: Connection) -> None:
        if connection.transport.waiting < SENT_AHEAD_BYTES_MAX:
            connection.wants_piece = False
            now_ns = self.neighbours.now_ns()
            self._perform(self.router.send_next_piece(connection.number, now_ns))

    def close_link(self, link: int, error: TocsinError | None) -> None:
        connection = self._connections.get(link)
        if connection is not None:
            if error is not None:
                self.refused.add(connection, error)
                neighbour = self.neighbours.find(connection.broker)
                if neighbour is not None:
                    neighbour.link_error = error
            connection.close(error)

    # What people ask

    def info(self, session: Session, rows_max: int) -> OverlayInfo:
        """How the overlay looks from here, with at most so many rows of each table."""
        self._port.check(session, Action.READ, "overlay")
        return overlay_info(
            self.router.tables(rows_max),
            self.neighbours,
            self._port,
            log=self._ids.log,
            link=self.address,
            peers=self._dialler.info(),
            handovers=len(self.handovers),
            refused=self.refused.count,
            discovery=self._discovery.tables(),
            control=self._control.info(),
        )

    def reached(self, session: Session, subscription_id: str) -> dict[str, int] | None:
        """At which other brokers it holds, and since when as known here; None: it is not routed."""
        return reached_by(self._port.view(session, subscription_id), self.router)

    async def forget(self, session: Session, broker: str) -> None:
        """A broker is gone for good; returns once that is on disk."""
        self._port.check(session, Action.MANAGE, f"overlay/{broker}")
        self._perform(self.router.forget(broker, self.neighbours.now_ns()))
        await self._performer.performed()
