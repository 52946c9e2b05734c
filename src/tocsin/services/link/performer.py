"""Performer: does what the router wants and what neighbours sent, one after the other.

What is to be saved is on disk before anything is sent that rests on it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Signal, Tasks
from tocsin.errors import NoSuchSubscription, NotAllowed, ShuttingDown, TocsinError
from tocsin.overlay.routing.effects import (
    Began,
    CloseLink,
    Effect,
    EntryIgnored,
    Moved,
    NeighbourDown,
    NeighbourFilter,
    NeighbourForgotten,
    NeighbourUp,
    Save,
    Send,
)
from tocsin.services.discovery.core_driver import CoreDriver
from tocsin.services.link.connection import Connection
from tocsin.services.link.handovers import Handovers
from tocsin.services.link.neighbour import Neighbour, internal_error
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.rights import check_discovery, session_of
from tocsin.wire.link.codec import LinkMessage
from tocsin.wire.link.discovery_messages import REASON_CHARS_MAX, Discover, DiscoveryMessage, Done
from tocsin.wire.link.messages import Acknowledge, Events, HandedOver, Handover, MessageBase

TABLES = "route/"  # under which the rows of the routing tables are kept
RETRY_S = 1.0

_SERVICE = internal("link")

PART_ITEMS_MAX: Final = 500  # that are saved together
TURN_S: Final = 0.005  # at a time: then others have their turn of the loop


@dataclass(slots=True, eq=False)
class Handled:
    """All that follows from a message of this connection is done: as a Signal, it is answered."""

    connection: Connection
    is_done: bool = False

    def answer(self, _: object) -> None:
        if not self.is_done:
            self.is_done = True
            self.connection.unhandled -= 1


Item = Effect | tuple[Connection, LinkMessage] | Handled | Signal
"""What is done next: what the router wants, what a neighbour sent, or somebody waits for all that
came before."""


class Links(Protocol):
    """Who ends connections."""

    def refuse(self, connection: Connection, error: TocsinError) -> None: ...

    def close_link(self, link: int, error: TocsinError | None) -> None: ...


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
    ) -> None:
        self._port = port
        self._runtime = port.runtime
        self._links = links
        self._connections = connections
        self._neighbours = neighbours
        self._handovers = handovers
        self._discovery = discovery
        self._tasks = Tasks(port.runtime)
        self._queue: list[Item] = []
        self._is_performing = self._is_closed = False
        self._began_s = 0.0  # this turn of the loop

    def close(self) -> None:
        self._is_closed = True
        self._tasks.cancel()

    def put(self, items: Iterable[Item]) -> None:
        self._queue.extend(items)
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

    async def _perform_all(self) -> None:
        self._began_s = self._runtime.elapsed_s()
        try:
            while self._queue:
                batch, self._queue = self._queue, []
                for part in _parts(batch):
                    await self._perform_safely(part)
        finally:
            self._is_performing = False

    async def _perform_safely(self, part: list[Item]) -> None:
        """A bug costs what was to be done together with what failed, and nobody waits for it."""
        try:
            await self._perform_part(part)
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            self._runtime.note("error", "an internal action of the overlay failed", error=words)
            for item in part:
                if isinstance(item, tuple):
                    self._links.refuse(item[0], internal_error(words))
                elif not isinstance(item, Effect):
                    item.answer(None)

    async def _perform_part(self, part: list[Item]) -> None:
        """What the log holds for neighbours comes first, so that a crash meanwhile repeats it; then
        what is to be saved; and then what rests on it."""
        self._handovers.hold([item for item in part if isinstance(item, Moved)])
        moved: list[Moved] = []  # one after the other: they go together
        for item in [*part, None]:
            if isinstance(item, Moved):
                moved.append(item)
                continue
            if moved:
                await self._handovers.move(moved, self._until_done)
                moved = []
            if isinstance(item, NeighbourFilter):
                await self._until_done(partial(self._neighbours.filter, item))
            await self._rest()
        rows = {TABLES + each.key: each.value for each in part if isinstance(each, Save)}
        if rows:
            await self._until_done(lambda: self._port.keep_table(_SERVICE, rows))
        for item in part:
            await self._do(item)
            await self._rest()

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
            case CloseLink(link, error):
                self._links.close_link(link, error)
            case (Connection() as connection, message):
                self._receive_of_neighbour(connection, message)
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
            case Save() | Began() | Moved() | NeighbourFilter():
                pass
            case _:
                item.answer(None)

    def _note_ignored(self, broker: str, error: TocsinError) -> None:
        neighbour = self._neighbours.get(broker)
        neighbour.counts.ignored += 1
        neighbour.error = error
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
        """Tried until the disk has room. What comes after waits for it."""
        while not self._is_closed:
            try:
                await work()
                return
            except NoSuchSubscription:
                return  # an operator has removed it
            except ShuttingDown:
                return
            except TocsinError as error:
                self._runtime.note("error", "routing is held up", why=error.problem)
                await self._runtime.sleep(RETRY_S)

    def _receive_of_neighbour(self, connection: Connection, message: LinkMessage) -> None:
        neighbour = self._neighbours.find(connection.broker)
        if neighbour is None or neighbour.connection is not connection:
            return  # its link has ended meanwhile
        try:
            match message:
                case Events():
                    neighbour.take(message)
                case Acknowledge(through):
                    neighbour.acknowledged(through)
                case Handover():
                    self._handovers.receive(neighbour, message)
                case HandedOver():
                    self._handovers.answered(message)
                case _:
                    assert not isinstance(message, MessageBase)
                    self._receive_discovery(neighbour, connection, message)
        except TocsinError as error:
            self._links.refuse(connection, error)

    def _receive_discovery(
        self, neighbour: Neighbour, connection: Connection, message: DiscoveryMessage
    ) -> None:
        """What it may not ask for is left out, and the link stays. A request is answered, or its
        broker would wait for it."""
        try:
            check_discovery(self._port, session_of(connection), message)
        except NotAllowed as error:
            neighbour.counts.ignored += 1
            neighbour.error = error
            if isinstance(message, Discover):
                why = error.problem[:REASON_CHARS_MAX]
                done = Done(request_id=message.request_id, attempt=message.attempt, incomplete=why)
                connection.send(done)
            return
        self._discovery.receive(connection.broker, message)


def _parts(batch: list[Item]) -> Iterator[list[Item]]:
    """The batch in parts, each of which ends where a neighbour is forgotten (what it wants if it
    comes again is another matter) or, if it is large, after all that follows from a message."""
    part: list[Item] = []
    for item in batch:
        part.append(item)
        is_large = isinstance(item, Handled) and len(part) >= PART_ITEMS_MAX
        if is_large or isinstance(item, NeighbourForgotten):
            yield part
            part = []
    yield part
