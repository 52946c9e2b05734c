"""Performer: does what the router wants and what neighbours sent, one after the other.

What is to be saved is on disk before anything is sent that rests on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, Protocol

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks
from tocsin.errors import (
    NoSuchSubscription,
    NotAllowed,
    NotSignedIn,
    ShuttingDown,
    TocsinError,
)
from tocsin.overlay.routing.effects import (
    Began,
    CloseLink,
    Effect,
    EntryIgnored,
    NeighbourDown,
    NeighbourFilter,
    NeighbourForgotten,
    NeighbourUp,
    PieceSent,
    Save,
    Send,
    SubscriptionMoved,
)
from tocsin.services.control.bus import ControlBus
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.services.link.backlog import Backlog
from tocsin.services.link.connection import Connection
from tocsin.services.link.handovers import Handovers
from tocsin.services.link.items import Item, Received, name_of, parts_of
from tocsin.services.link.neighbour import Neighbour, internal_error
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.rights import check_control, check_discovery, session_of
from tocsin.wire.link.codec import LinkMessage
from tocsin.wire.link.discovery_messages import REASON_CHARS_MAX, Discover, DiscoveryMessage, Done
from tocsin.wire.link.messages import (
    Acknowledge,
    Bye,
    Control,
    Events,
    HandedOver,
    Handover,
    MessageBase,
    NotStored,
    Refuse,
    Resume,
    Serves,
)

TABLES = "route/"  # under which the rows of the routing tables are kept
RETRY_S = 1.0  # doubled each time,
RETRY_S_MAX: Final = 8.0
PATIENCE_S: Final = 5.0  # a disk that takes nothing for so long is no reason for a new link to wait

_SERVICE = internal("link")

TURN_S: Final = 0.005  # at a time: then others have their turn of the loop


class Links(Protocol):
    """Who ends connections."""

    def refuse(self, connection: Connection, error: TocsinError) -> None: ...

    def close_link(self, link: int, error: TocsinError | None) -> None: ...

    def send_piece(self, connection: Connection) -> None:
        """The next piece of the tables, if the connection has taken enough of what was sent."""


class Performer:
    """See the module."""

    def __init__(
        self,
        port: BrokerPort,
        links: Links,
        connections: Mapping[int, Connection],
        neighbours: Neighbours,
        handovers: Handovers,
        discovery: CoreDriver,
        control: ControlBus,
        backlog: Backlog,
    ) -> None:
        self._port = port
        self._runtime = port.runtime
        self._links = links
        self._connections = connections
        self._neighbours = neighbours
        self._handovers = handovers
        self._discovery = discovery
        self._control = control
        self._backlog = backlog
        self._tasks = Tasks(port.runtime)
        self._queue: list[Item] = []
        self._parts: deque[list[Item]] = deque()  # of what was in the queue: the first is performed
        self._is_performing = self._is_closed = False
        self._held_up: TocsinError | None = None  # why nothing can be saved now
        self._held_up_s = 0.0  # since then
        self._began_s = 0.0  # this turn of the loop

    def close(self) -> None:
        self._is_closed = True
        self._tasks.cancel()

    def put(self, items: Iterable[Item]) -> None:
        if self._held_up is not None:
            items = [item for item in items if not self._go_ahead(item)]
        before = len(self._queue)
        self._queue.extend(items)
        self._backlog.items += len(self._queue) - before
        if self._queue and not self._is_performing and not self._is_closed:
            self._is_performing = True
            self._tasks.spawn(self._perform_all())

    async def performed(self) -> None:
        """Returns when everything that was wanted before is done."""
        if self._is_closed:
            return
        signal = self._runtime.signal()
        self.put([signal])
        await signal

    @property
    def obstacle(self) -> TocsinError | None:
        """Why there can be no new links: a disk that has taken nothing for a while."""
        is_long = self._runtime.elapsed_s() - self._held_up_s > PATIENCE_S
        return self._held_up if is_long else None

    async def _perform_all(self) -> None:
        self._began_s = self._runtime.elapsed_s()
        try:
            while self._queue:
                batch, self._queue = self._queue, []
                self._parts.extend(parts_of(batch))
                while self._parts:
                    await self._perform_part(self._parts[0])
                    self._backlog.items -= len(self._parts.popleft())
        finally:
            self._is_performing = False

    async def _perform_part(self, part: list[Item]) -> None:
        """What the log holds for neighbours comes first, so that a crash meanwhile repeats it; then
        what is to be saved; and then what rests on it. A bug in one of these costs that one."""
        self._handovers.hold([item for item in part if isinstance(item, SubscriptionMoved)])
        moved: list[SubscriptionMoved] = []  # one after the other: they go together
        for item in [*part, None]:
            if isinstance(item, SubscriptionMoved):
                moved.append(item)
                continue
            if moved:
                await self._safely(moved[0], partial(self._handovers.move, moved, self._until_done))
                moved = []
            if isinstance(item, NeighbourFilter):
                filter = partial(self._neighbours.filter, item)
                await self._safely(item, partial(self._until_done, filter))
            await self._rest()
        await self._save([item for item in part if isinstance(item, Save)])
        for item in part:
            await self._safely(item, partial(self._do, item))
            await self._rest()

    async def _save(self, saves: list[Save]) -> None:
        if not saves:
            return
        rows = {TABLES + each.key: each.value for each in saves}
        try:
            await self._until_done(lambda: self._port.keep_table(_SERVICE, rows))
        except Exception:  # a bug: it costs the rows that it is about
            for each in saves:
                row = {TABLES + each.key: each.value}
                keep = partial(self._port.keep_table, _SERVICE, row)
                await self._safely(each, partial(self._until_done, keep))

    async def _safely(self, item: Item, work: Callable[[], Awaitable[None]]) -> None:
        """A bug costs this item alone, and nobody waits for it."""
        try:
            await work()
        except Exception as error:
            self._failed(item, error)

    def _failed(self, item: Item, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"
        what = name_of(item)
        self._runtime.note(
            "error", "an internal action of the overlay failed", action=what, error=words
        )
        connection = None
        if isinstance(item, Received):
            connection = item.connection
            item.done()
        elif isinstance(item, NeighbourUp):  # both sides begin anew
            connection = self._connections.get(item.link)
        elif not isinstance(item, Effect):
            item.answer(None)
        if connection is not None:
            self._links.refuse(connection, internal_error(words))

    async def _rest(self) -> None:
        """What neighbours send at once may take seconds to do: nobody else waits for all of it."""
        if self._runtime.elapsed_s() - self._began_s > TURN_S:
            await self._runtime.sleep(0.0)
            self._began_s = self._runtime.elapsed_s()

    async def _do(self, item: Item) -> None:
        neighbours = self._neighbours
        match item:
            case Send(link, message):
                connection = self._connections.get(link)
                if connection is not None:
                    connection.send(message)
            case PieceSent(link):
                connection = self._connections.get(link)
                if connection is not None:
                    connection.wants_piece = True
                    self._links.send_piece(connection)
            case CloseLink(link, error):
                self._links.close_link(link, error)
            case Received():
                self._receive(item)
            case NeighbourUp(broker, link):
                await self._until_done(lambda: neighbours.link_id_of(broker))
                neighbours.up(broker, self._connections.get(link))
            case NeighbourDown(broker):
                neighbours.down(broker)
                while self._discovery.clear():
                    await self._rest()
            case NeighbourForgotten(broker):
                await self._until_done(lambda: neighbours.forget(broker))
            case EntryIgnored(broker, error):
                self._note_ignored(broker, error)
            case Save() | Began() | SubscriptionMoved() | NeighbourFilter():
                pass
            case _:
                item.answer(None)

    def _note_ignored(self, broker: str, error: TocsinError) -> None:
        neighbour = self._neighbours.get(broker)
        neighbour.counts.ignored += 1
        neighbour.entry_error = error
        if neighbour.counts.ignored.bit_count() == 1:  # the first, the second, the fourth, ...
            self._runtime.note(
                "warning",
                "what a neighbour sent is not taken: events may not go where it wants them",
                neighbour=broker,
                code=error.code,
                why=error.problem,
                remedy=error.remedy,
                ignored=neighbour.counts.ignored,
            )

    async def _until_done(self, work: Callable[[], Awaitable[object]]) -> None:
        """Tried until the disk has room. What comes after waits for it, if it rests on it."""
        pause_s = RETRY_S
        try:
            while not self._is_closed:
                try:
                    await work()
                    return
                except NoSuchSubscription:
                    return  # an operator has removed it
                except ShuttingDown:
                    return
                except TocsinError as error:
                    self._hold_up(error)
                    await self._runtime.sleep(pause_s)
                    pause_s = min(2 * pause_s, RETRY_S_MAX)
        finally:
            was_held_up, self._held_up = self._held_up is not None, None
            if was_held_up and not self._is_closed:
                self._runtime.note("info", "routing goes on: what it has to save is saved")

    def _hold_up(self, error: TocsinError) -> None:
        """Nothing can be saved for now. What neighbours say that rests on nothing of it goes on."""
        if self._held_up is None:
            self._held_up_s = self._runtime.elapsed_s()
            self._runtime.note(
                "error",
                "routing is held up: changes of its tables are not saved, and go no further",
                code=error.code,
                why=error.problem,
                remedy=error.remedy,
            )
            self._held_up = error
            for part in self._parts:
                for item in part:
                    if isinstance(item, Received):
                        self._go_ahead(item)
            queue, self._queue = self._queue, []
            self._backlog.items -= len(queue)
            self.put(queue)
        self._held_up = error

    def _go_ahead(self, item: Item) -> bool:
        """Do this now, if it rests on nothing that has to be saved: what neighbours send that are
        up, in their order, and the ends of connections. True if it is done."""
        match item:
            case Received(connection, _, message) if message is not None:
                neighbour = self._neighbours.find(connection.broker)
                if neighbour is None or neighbour.connection is not connection:
                    return False
                try:
                    self._receive(item)
                except Exception as error:
                    self._failed(item, error)
                return True
            case Send(link, Refuse() | Bye() as last) if link in self._connections:
                self._connections[link].send(last)
                return True
            case CloseLink(link, reason):
                self._links.close_link(link, reason)
                return True
            case _:
                return False

    def _receive(self, item: Received) -> None:
        message = item.message
        item.done()  # from now on it counts where it is kept, if it is
        if message is not None:
            self._receive_of_neighbour(item.connection, message, item.size)

    def _receive_of_neighbour(
        self, connection: Connection, message: LinkMessage, size: int
    ) -> None:
        neighbour = self._neighbours.find(connection.broker)
        if neighbour is None or neighbour.connection is not connection:
            return  # its link has ended meanwhile
        try:
            match message:
                case Events():
                    neighbour.take(message, size)
                case Acknowledge(through):
                    neighbour.acknowledged(through)
                case NotStored():
                    neighbour.not_stored(message)
                case Resume():
                    neighbour.resume()
                case Handover():
                    self._handovers.receive(neighbour, message, size)
                case HandedOver():
                    self._handovers.answered(message)
                case Control() | Serves():
                    self._receive_control(neighbour, connection, message)
                case _:
                    assert not isinstance(message, MessageBase)
                    self._receive_discovery(neighbour, connection, message)
        except TocsinError as error:
            self._links.refuse(connection, error)

    def _receive_control(
        self, neighbour: Neighbour, connection: Connection, message: Control | Serves
    ) -> None:
        """What it may not send is left out, and the link stays."""
        try:
            if isinstance(message, Control):
                check_control(self._port, session_of(connection), message)
        except NotSignedIn:
            raise  # it is nobody by now: the link ends
        except NotAllowed as error:
            neighbour.counts.ignored += 1
            neighbour.entry_error = error
        else:
            self._control.receive(connection.broker, message)

    def _receive_discovery(
        self, neighbour: Neighbour, connection: Connection, message: DiscoveryMessage
    ) -> None:
        """What it may not ask for is left out, and the link stays. A request is answered, or its
        broker would wait for it."""
        try:
            check_discovery(self._port, session_of(connection), message)
        except NotSignedIn:
            raise  # nothing is answered to whoever is nobody by now: the link ends
        except NotAllowed as error:
            neighbour.counts.ignored += 1
            neighbour.entry_error = error
            if isinstance(message, Discover):
                why = error.problem[:REASON_CHARS_MAX]
                done = Done(request_id=message.request_id, attempt=message.attempt, incomplete=why)
                connection.send(done)
            return
        self._discovery.receive(connection.broker, message)
