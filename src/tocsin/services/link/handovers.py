"""Handovers: what was kept for a neighbour goes to brokers that are reached in another way now.

While a neighbour is away, this broker keeps for it what the brokers behind it asked for. When one
of them turns up behind another neighbour, it is sent the rest of that, addressed to it alone: the
brokers between may have these events already and would not send on what they take for repeats.
Each handover is a place in the log, so it outlives a crash of either side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import msgspec

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Semaphore, Signal, Tasks
from tocsin.errors import DiskFailed, NoSuchSubscription, ShuttingDown, TocsinError
from tocsin.event.filter import NOTHING
from tocsin.event.filter_text import format_filter, parse_filter
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, Subscription
from tocsin.overlay.routing.effects import SubscriptionMoved
from tocsin.overlay.routing.router import Router
from tocsin.services.link.forwarder import parts_within_frames
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.relayed_events import relayed_event
from tocsin.wire.link.messages import HOPS_MAX, HandedOver, Handover, Relayed

KEY = "handover/"
AT_A_TIME = 16
TAKEN_AT_A_TIME = 64
TAKEN_BYTES_MAX = 64 << 20
ANSWER_S = 10.0  # then it is sent again, and newer events need not wait for it any longer
RETRY_S = 0.2  # while its broker is not connected
EVENTS_MAX = 256

_MOVING = "moving"

UntilDone = Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]
"""Tries it again until the disk has room."""

_SERVICE = internal("link")


class HandoverRow(msgspec.Struct, frozen=True):
    """What is saved of one."""

    to: str
    through: int
    filters: tuple[str, ...]


@dataclass(slots=True)
class _Waiting:
    number: int
    signal: Signal


class Handovers:
    """Those of one broker, and those that it passes on between others."""

    def __init__(
        self,
        port: BrokerPort,
        origin: tuple[str, str],
        router: Router,
        neighbours: Neighbours,
        waiting_bytes_max: int,
    ) -> None:
        """`origin`: the ids of this broker and its log. Nothing is sent to a neighbour for which
        more than `waiting_bytes_max` waits."""
        self._port = port
        self._own = port.own(_SERVICE)
        self._origin = origin
        self._router = router
        self._neighbours = neighbours
        self._waiting_bytes_max = waiting_bytes_max
        self._tasks = Tasks(port.runtime)
        self._turns = Semaphore(port.runtime, AT_A_TIME)
        self._rows: dict[str, HandoverRow] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._holding: dict[str, Neighbour] = {}
        self._unused: list[str] = []  # subscriptions of handovers that could not begin
        self._sent = 0
        self._taking = 0  # handovers of others that are being stored,
        self._taking_bytes = 0  # and what they take

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, link_id: str) -> bool:
        return link_id in self._rows

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Go on with those that were not done when the last process ended."""
        for link_id, value in rows.items():
            self._begin(link_id, msgspec.msgpack.decode(value, type=HandoverRow))

    async def add(self, to: str, after: int, filters: list[str], way: str) -> None:
        """What is in the log past `after` now, and passes any of the filters, goes to a broker.
        Newer events wait for it at the neighbour that is the way there."""
        await self._remove_unused()
        through = self._port.head
        if after >= through or self._router.is_forgotten(to):
            return
        asked = Subscription(id="", kind=Kind.LINK)
        view = await self._port.subscribe(_SERVICE, asked, NOTHING, after)
        link_id = view.subscription.id
        row = HandoverRow(to, through, tuple(sorted(set(filters))))
        try:
            await self._port.keep_table(_SERVICE, {KEY + link_id: msgspec.msgpack.encode(row)})
        except TocsinError:
            self._unused.append(link_id)
            with suppress(TocsinError):  # or each attempt would leave one that holds the log
                await self._remove_unused()
            raise
        self._holding[link_id] = self._neighbours.get(way)
        self._holding[link_id].hold(link_id)
        self._begin(link_id, row)

    async def _remove_unused(self) -> None:
        """A disk that had no room for the row of a handover may have none for the end of its
        subscription: then that is for the next attempt. A restart removes them too."""
        while self._unused:
            with suppress(NoSuchSubscription):
                await self._port.unsubscribe(_SERVICE, self._unused[-1], Kind.LINK)
            self._unused.pop()

    def _let_go(self, link_id: str) -> None:
        """Newer events may go: it is done, or cannot go on for now."""
        held = self._holding.pop(link_id, None)
        if held is not None:
            held.release(link_id)

    def _begin(self, link_id: str, row: HandoverRow) -> None:
        self._rows[link_id] = row
        self._tasks.spawn(self._run(link_id, row))

    async def _run(self, link_id: str, row: HandoverRow) -> None:
        try:
            while link_id in self._rows:
                try:
                    await self._hand_over_all(link_id, row)
                except (ShuttingDown, DiskFailed):
                    return  # after the next start it goes on
                except TocsinError as error:
                    why = error.problem
                    self._port.runtime.note("warning", "a handover is interrupted", why=why)
                    self._let_go(link_id)
                    await self._port.runtime.sleep(RETRY_S)
        finally:
            self._let_go(link_id)

    async def _hand_over_all(self, link_id: str, row: HandoverRow) -> None:
        with suppress(NoSuchSubscription):
            wanted = {text: parse_filter(text) for text in row.filters}
            self._port.want(_SERVICE, link_id, wanted)
            began_s = self._port.runtime.elapsed_s()
            while not self._router.is_forgotten(row.to):
                async with self._turns:
                    if await self._send_next(link_id, row, began_s):
                        break
            await self._port.unsubscribe(_SERVICE, link_id, Kind.LINK)
        await self._port.keep_table(_SERVICE, {KEY + link_id: None})
        del self._rows[link_id]

    async def _send_next(self, link_id: str, row: HandoverRow, began_s: float) -> bool:
        """The next events, until they are on the other's disk. True if that was all."""
        port = self._port
        if port.view(_SERVICE, link_id).cursor >= row.through:
            return True
        pulled, token = await port.take(_SERVICE, link_id, EVENTS_MAX, NS_PER_S, Kind.LINK)
        events = [stored for stored in pulled.events if stored.seq <= row.through]
        if len(events) < len(pulled.events) and not events:
            port.release(token)
            return True
        last = events[-1].seq if events else 0
        chosen = [stored for stored in events if not self._is_from(stored, row.to)]
        arrived = not chosen or await self._hand_over(link_id, row, chosen)
        if arrived:
            port.release(token)
        else:
            port.give_back(token)
            if port.runtime.elapsed_s() - began_s > ANSWER_S:
                self._let_go(link_id)
            await port.runtime.sleep(RETRY_S)
        return arrived and last >= row.through

    def _is_from(self, stored: Stored, broker: str) -> bool:
        return stored.arrival is not None and stored.arrival.origin == broker

    async def _hand_over(self, link_id: str, row: HandoverRow, stored: list[Stored]) -> bool:
        events = [relayed_event(each, *self._origin) for each in stored]
        for part in parts_within_frames(events, _ignore):
            if not await self._send_part(link_id, row.to, part):
                return False
        return True

    async def _send_part(self, link_id: str, to: str, part: tuple[Relayed, ...]) -> bool:
        runtime = self._port.runtime
        self._sent += 1
        waiting = self._waiting[link_id] = _Waiting(self._sent, runtime.signal())
        timer = runtime.call_later(ANSWER_S, lambda: waiting.signal.answer(False))
        try:
            if not self._send(to, Handover(self._origin[0], to, link_id, self._sent, 0, part)):
                return False
            return bool(await waiting.signal)
        finally:
            timer.cancel()
            del self._waiting[link_id]

    def answered(self, message: HandedOver) -> None:
        """The other broker has it on its disk."""
        if message.source != self._origin[0]:
            self.pass_on(message.source, message)
            return
        waiting = self._waiting.get(message.id)
        if waiting is not None and waiting.number == message.number:
            waiting.signal.answer(True)

    def hold(self, moved: list[SubscriptionMoved]) -> None:
        """Until `move` has been called for these, nothing newer goes where they went."""
        for each in moved:
            self._neighbours.get(each.after).hold(_MOVING)

    async def move(self, moved: list[SubscriptionMoved], until_done: UntilDone) -> None:
        """What the log still holds for them as subscribers behind the neighbour before."""
        groups: dict[tuple[str, str, str], list[str]] = {}
        for each in moved:
            group = groups.setdefault((each.before, each.key[0], each.after), [])
            group.append(format_filter(each.filter))
        try:
            for (before, origin, after), filters in groups.items():
                neighbour = self._neighbours.find(before)
                if neighbour is None or not neighbour.link_id:
                    continue
                try:
                    cursor = self._port.view(_SERVICE, neighbour.link_id).cursor
                    await until_done(partial(self.add, origin, cursor, filters, after))
                except Exception as error:  # a bug: the others go on
                    words = f"{type(error).__name__}: {error}"
                    note = self._port.runtime.note
                    note("error", "a handover failed to begin", broker=origin, error=words)
        finally:
            for each in moved:
                self._neighbours.get(each.after).release(_MOVING)

    def _send(self, broker: str, message: Handover | HandedOver) -> bool:
        way = self._router.way_to(broker)
        neighbour = None if way is None else self._neighbours.find(way)
        if neighbour is None or neighbour.connection is None:
            return False
        if neighbour.connection.transport.waiting > self._waiting_bytes_max:
            return False
        if isinstance(message, Handover):
            # They are for a broker behind it, and it is its rights that count, as for all it gets.
            try:
                permitted = tuple(neighbour.permitted(message.events))
            except TocsinError as ended:
                neighbour.connection.refuse(ended)
                return False
            message = msgspec.structs.replace(message, events=permitted)
        neighbour.connection.send(message)
        return True

    def pass_on(self, broker: str, message: Handover | HandedOver) -> None:
        """Between two others. What does not get through is sent again by where it comes from."""
        if message.hops < HOPS_MAX:
            self._send(broker, _one_hop_on(message))

    def receive(self, neighbour: Neighbour, message: Handover, size: int) -> None:
        """What is too much at once is not answered, and sent again."""
        if self._taking < TAKEN_AT_A_TIME and self._taking_bytes < TAKEN_BYTES_MAX:
            self._taking += 1
            self._taking_bytes += size
            self._tasks.spawn(self._take_over(neighbour, message), partial(self._taken, size))

    def _taken(self, size: int) -> None:
        self._taking -= 1
        self._taking_bytes -= size

    async def _take_over(self, neighbour: Neighbour, message: Handover) -> None:
        """Also on the way to another broker: what that one asked for may have stood for narrower
        subscriptions of brokers on the way, and behind those. They get it from here."""
        allowed = neighbour.accepted(message.events)  # before it may be connected no more
        if not await neighbour.store(self._wanted(message.events)):
            return
        if message.to != self._origin[0]:
            self.pass_on(message.to, msgspec.structs.replace(message, events=allowed))
        else:
            answer = HandedOver(message.source, message.id, message.number, 0)
            self._send(message.source, answer)

    def _wanted(self, events: tuple[Relayed, ...]) -> tuple[Relayed, ...]:
        return tuple(each for each in events if self._own.is_wanted(each.event))

    def close(self) -> None:
        self._tasks.cancel()


def _ignore(event: object) -> None:
    """The forwarder has reported it already, if it ever came so far."""


def _one_hop_on(message: Handover | HandedOver) -> Handover | HandedOver:
    if isinstance(message, Handover):
        return Handover(
            message.source, message.to, message.id, message.number, message.hops + 1, message.events
        )
    return HandedOver(message.source, message.id, message.number, message.hops + 1)
