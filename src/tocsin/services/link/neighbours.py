"""Neighbours: those of one broker, by their ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from tocsin.access.session import Session, anonymous, internal
from tocsin.broker.port import BrokerPort
from tocsin.errors import NoSuchSubscription, NotAllowed, TocsinError
from tocsin.event.filter import NOTHING
from tocsin.event.stored import Stored
from tocsin.event.subscription import Change, Kind, Owner, Subscription
from tocsin.overlay.routing.effects import Effect, NeighbourFilter
from tocsin.overlay.routing.router import Router
from tocsin.services.control.bus import ControlBus
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.services.link.backlog import Backlog
from tocsin.services.link.connection import Connection
from tocsin.services.link.identity import Ids
from tocsin.services.link.log_lines import LinkChanges
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.link.options import LinkOptions
from tocsin.services.link.rights import check_again, session_of
from tocsin.wire.link.codec import LinkMessage

AT_A_TIME = 200  # filters are indexed in one turn of the loop

_SERVICE = internal("link")
ANONYMOUS_OWNER = anonymous("link").owner


class Neighbours:
    """Each has a place in the log, whether it is connected or not, until it is forgotten."""

    def __init__(
        self,
        port: BrokerPort,
        router: Router,
        discovery: CoreDriver,
        control: ControlBus,
        ids: Ids,
        options: LinkOptions,
        linked: Callable[[Connection], None],
        connections: Mapping[int, Connection],
        backlog: Backlog,
        changes: LinkChanges,
    ) -> None:
        """`linked` is called when a connection has become a link. `connections`: those that are
        open, by their numbers. `backlog`: what came over all of them, and is not handled yet."""
        self._port = port
        self._runtime = port.runtime
        self._router = router
        self._discovery = discovery
        self._control = control
        self._ids = ids
        self._options = options
        self._linked = linked
        self._connections = connections
        self._backlog = backlog
        self._changes = changes
        self._known: dict[str, Neighbour] = {}
        self._latest_ns = 0

    async def restore(self, handovers: Collection[str]) -> None:
        """Take up what was saved: all that is subscribed for links, but these handovers."""
        for view in self._port.views(_SERVICE):
            subscription = view.subscription
            if subscription.kind is not Kind.LINK or subscription.id in handovers:
                continue
            if subscription.neighbour is not None:
                self.get(subscription.neighbour).link_id = subscription.id
            else:  # a handover that had just begun: it begins anew
                await self._port.unsubscribe(_SERVICE, subscription.id, Kind.LINK)

    def want(self) -> None:
        """From now on the log is read for them."""
        for neighbour in self:
            if neighbour.link_id:
                self._port.want(_SERVICE, neighbour.link_id, {})

    def overdue(self, now_s: float, excused_s: float) -> list[tuple[Connection, TocsinError]]:
        """Who has not acknowledged events in time, and what to say to them."""
        found: list[tuple[Connection, TocsinError]] = []
        for each in self:
            error = each.overdue(now_s, excused_s, self._options.acknowledge_s)
            if error is not None and each.connection is not None:
                found.append((each.connection, error))
        return found

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Neighbour]:
        return iter(list(self._known.values()))

    def find(self, broker: str) -> Neighbour | None:
        return self._known.get(broker)

    def now_ns(self) -> int:
        """The time of day; it never goes back."""
        self._latest_ns = max(self._latest_ns, self._port.lower_bound_ns)
        return self._latest_ns

    def get(self, broker: str) -> Neighbour:
        neighbour = self._known.get(broker)
        if neighbour is None:
            neighbour = self._known[broker] = Neighbour(broker, self._port)
        return neighbour

    async def link_id_of(self, broker: str) -> str:
        """The id of the subscription by which the broker has a place in the log. It is the
        broker's own, as it shows itself now: what it may not have is not sent there."""
        neighbour = self.get(broker)
        session = self._session_of(broker)
        owner = None if session is None else session.owner
        if neighbour.link_id:
            if owner is not None and owner != self._owner_of(neighbour):
                change = Change(owner=owner)
                await self._port.change(_SERVICE, neighbour.link_id, change, Kind.LINK)
        else:
            owner = owner or ANONYMOUS_OWNER
            asked = Subscription(id="", kind=Kind.LINK, neighbour=broker, owner=owner)
            view = await self._port.subscribe(_SERVICE, asked, NOTHING, None)
            neighbour.link_id = view.subscription.id
            self._port.want(_SERVICE, neighbour.link_id, {})
        return neighbour.link_id

    def check_owner(self, broker: str, session: Session) -> None:
        """Raise NotAllowed for who says that it is a broker whose place in the log somebody else
        has, with a credential: its events would be taken from it."""
        neighbour = self._known.get(broker)
        owner = None if neighbour is None else self._owner_of(neighbour)
        if owner is None or not owner.credential or owner.name == session.principal.name:
            return
        raise NotAllowed(
            f"the broker {broker} is that of another principal",
            remedy=f"If it has another name now: tocsin overlay forget {broker}",
        )

    def look_at_rights(self, connection: Connection) -> list[Effect]:
        """Raise NotAllowed for who may not be linked any more; what was refused for want of a right
        that there is by now is taken."""
        number = connection.number
        if not check_again(self._port, connection):
            return []
        self._control.rights_changed(connection.broker)
        if not self._router.has_refused(number):
            return []
        effects = self._router.rights_changed(number, self.now_ns())
        neighbour = self.get(connection.broker)
        is_all_taken = not self._router.has_refused(number)
        if is_all_taken and isinstance(neighbour.entry_error, NotAllowed):
            neighbour.entry_error = None
        return effects

    def _session_of(self, broker: str) -> Session | None:
        """Of one that is a neighbour now."""
        for each in self._connections.values():
            if self._router.neighbour(each.number) == broker:
                return session_of(each)
        return None

    def _owner_of(self, neighbour: Neighbour) -> Owner | None:
        if not neighbour.link_id:
            return None
        try:
            view = self._port.view(_SERVICE, neighbour.link_id)
        except NoSuchSubscription:
            return None
        return view.subscription.owner

    def up(self, broker: str, connection: Connection | None) -> None:
        """It is connected, and has a place in the log."""
        if connection is None or connection.is_ended:
            return
        neighbour = self.get(broker)
        session = session_of(connection)
        neighbour.connect(
            connection,
            session,
            self._ids,
            self._is_for,
            self._options.batch_events_max,
            self._backlog,
        )
        neighbour.since_ns, neighbour.link_error = self.now_ns(), None
        connection.is_synced = True
        self._changes.note("a link is up", broker, peer=connection.transport.peer)
        self._linked(connection)
        self._discovery.link_up(broker)
        self._control.link_up(broker)

    def _is_for(self, broker: str, stored: Stored) -> bool:
        """Not what came from there. What came from a broker that is behind it by now may be: where
        it was before, nothing came from it by there."""
        return stored.arrival is None or stored.arrival.neighbour != broker

    def ended(self, connection: Connection) -> None:
        """Why, is shown at once, also if it was not up yet; the rest follows when it is saved that
        the link is down."""
        if self._router.neighbour(connection.number) is None:
            return
        neighbour = self.get(connection.broker)
        if neighbour.connection in (connection, None):
            neighbour.link_error = connection.error or neighbour.link_error
            neighbour.entry_error = neighbour.events_error = None

    def down(self, broker: str) -> None:
        neighbour = self._known.get(broker)
        if neighbour is None or neighbour.connection is None:
            return
        error = neighbour.connection.error
        neighbour.link_error = error or neighbour.link_error
        neighbour.entry_error = neighbour.events_error = None
        neighbour.disconnect()
        neighbour.since_ns = self.now_ns()
        why = "" if error is None else error.problem
        self._changes.note("a link is down", broker, why=why)
        self._discovery.link_down(broker)
        self._control.link_down(broker)

    async def forget(self, broker: str) -> None:
        neighbour = self._known.pop(broker, None)
        if neighbour is None:
            return
        neighbour.close()
        if neighbour.link_id:
            await self._port.unsubscribe(_SERVICE, neighbour.link_id, Kind.LINK, quietly=True)

    async def filter(self, change: NeighbourFilter) -> None:
        if not change.added and change.neighbour not in self._known:
            return  # it was forgotten in the same turn
        # The broker itself does this: what it was allowed to ask for, was decided as it came.
        link_id = await self.link_id_of(change.neighbour)
        added, removed = list(change.added.items()), change.removed
        for start in range(0, max(len(added), len(removed)), AT_A_TIME):
            if start:
                await self._runtime.sleep(0.0)
            now = slice(start, start + AT_A_TIME)
            self._port.want(_SERVICE, link_id, dict(added[now]), removed[now])

    def send(self, neighbour: str, message: LinkMessage) -> bool:
        """False if it is not connected."""
        known = self._known.get(neighbour)
        if known is None or known.connection is None:
            return False
        known.connection.send(message)
        return True

    def close(self) -> None:
        for neighbour in self._known.values():
            neighbour.close()
