"""Forwarder: what one neighbour wants out of this broker's log, sent to it in the log's order.

The neighbour is a subscriber whose place in the log is on disk. What is sent counts as delivered
when it acknowledges it, which it does when it is on its own disk. If the link ends before, all that
was not acknowledged is sent again by the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tocsin.access.session import Session
from tocsin.broker.effects import Token
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Signal
from tocsin.errors import NotAcknowledged, NotSignedIn, TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind
from tocsin.services.link.connection import Connection
from tocsin.services.link.relayed_events import relayed_event
from tocsin.wire.link.codec import FRAME_BYTES_MAX, encode
from tocsin.wire.link.messages import (
    BATCHES_MAX,
    UNACKNOWLEDGED_BYTES_MAX,
    Events,
    Relayed,
    Resume,
)

WAIT_NS = 30 * NS_PER_S  # of one question for more events
RETRY_S = 1.0
PAUSE_S = 1.0  # before what the neighbour could not store is sent again; doubled each time,
PAUSE_S_MAX = 30.0  # and no longer than its disk may have had room for


@dataclass(slots=True)
class Counts:
    """What has happened with one neighbour since the start."""

    sent: int = 0
    received: int = 0
    repeats: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class _Batch:
    token: Token
    through: int
    count: int
    bytes: int
    sent_s: float


class Forwarder:
    """For one connection to one neighbour. `run` goes on until it is cancelled."""

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        link_id: str,
        connection: Connection,
        origin: tuple[str, str],
        is_for_neighbour: Callable[[Stored], bool],
        counts: Counts,
        events_max: int,
        until_free: Callable[[], Awaitable[None]],
        permitted: Callable[[Sequence[Relayed]], list[Relayed]],
    ) -> None:
        """`origin`: the ids of this broker and its log. `is_for_neighbour`: not what came from
        there. `until_free` returns when no older events are on their way to brokers behind it.
        `permitted`: those that the neighbour may have now; raises if it may not be linked."""
        self._port = port
        self._session = session
        self._link_id = link_id
        self._connection = connection
        self._origin = origin
        self._is_for_neighbour = is_for_neighbour
        self._counts = counts
        self._events_max = events_max
        self._until_free = until_free
        self._permitted = permitted
        self._sent: deque[_Batch] = deque()
        self._taken: Token | None = None  # and not yet sent
        self._progress_s = 0.0  # when it last acknowledged something, or said why it cannot
        self._bytes = 0  # about as much as those that were sent take
        self._refusals = 0  # in a row: the neighbour could not store what it was sent
        self._pause_s = 0.0  # before it is sent again
        self._not_read = ""  # why, when that was last noted
        self._room: Signal | None = None  # awaited while too many batches are not acknowledged

    @property
    def in_flight(self) -> int:
        """Events that were sent and are not yet acknowledged."""
        return sum(batch.count for batch in self._sent)

    def overdue(self, now_s: float, allowed_s: float) -> NotAcknowledged | None:
        """If the oldest of them has not been acknowledged for so long."""
        if not self._sent or now_s - max(self._sent[0].sent_s, self._progress_s) <= allowed_s:
            return None
        count = self.in_flight
        events = "1 event" if count == 1 else f"{count} events"
        return NotAcknowledged(
            f"{self._connection.broker} has not acknowledged {events} for {allowed_s:g} s",
            remedy="They are sent again. Look at that broker and its disk, or raise "
            "overlay.acknowledge_s.",
        )

    def excuse(self, late_s: float) -> None:
        """For so long this broker could not read what may have come."""
        oldest_s = self._sent[0].sent_s if self._sent else 0.0
        self._progress_s = max(self._progress_s, oldest_s) + late_s

    async def run(self) -> None:
        try:
            while await self._forward():
                pass
        finally:
            if self._taken is not None:
                self._port.give_back(self._taken)
            self._give_back_sent()

    def _give_back_sent(self) -> None:
        for batch in self._sent:
            self._port.give_back(batch.token)
        self._sent.clear()
        self._bytes = 0

    @property
    def _is_full(self) -> bool:
        return len(self._sent) >= BATCHES_MAX or self._bytes >= UNACKNOWLEDGED_BYTES_MAX

    async def _forward(self) -> bool:
        """False if the link ends, for the neighbour has no right to it any more."""
        while self._is_full:
            self._room = self._port.runtime.signal()
            await self._room
        if self._pause_s:
            pause_s, self._pause_s = self._pause_s, 0.0
            await self._port.runtime.sleep(pause_s)
            self._connection.send(Resume())
        try:
            pulled, token = await self._port.take(
                self._session, self._link_id, self._events_max, WAIT_NS, Kind.LINK
            )
        except NotSignedIn as ended:
            self._connection.refuse(ended)
            return False
        except TocsinError as error:
            self._note_not_read(error.problem)
            await self._port.runtime.sleep(RETRY_S)
            return True
        self._taken = token
        await self._until_free()
        self._taken = None
        if self._pause_s:  # meanwhile the neighbour has refused older ones
            self._port.give_back(token)
            return True
        chosen = [
            relayed_event(stored, *self._origin)
            for stored in pulled.events
            if self._is_for_neighbour(stored)
        ]
        try:  # it may have waited long, and rights end
            chosen = self._permitted(chosen)
        except TocsinError as ended:
            self._port.give_back(token)
            self._connection.refuse(ended)
            return False
        if chosen:
            self._send(chosen, token, pulled.events[-1].seq)
        elif pulled.events and self._sent:
            # Behind what is under way: an acknowledgement of that must not stand for these.
            self._sent.append(_Batch(token, pulled.events[-1].seq, 0, 0, self._now_s()))
            self._connection.send(Events(pulled.events[-1].seq))
        else:
            self._port.release(token)
        return True

    def _note_not_read(self, why: str) -> None:
        """Once for each reason: it may be that the neighbour has no right to any event."""
        if why != self._not_read:
            self._not_read = why
            self._port.runtime.note("warning", "events for a neighbour are not read", why=why)

    def _send(self, chosen: list[Relayed], token: Token, through: int) -> None:
        size = sum(_size(event) for event in chosen)
        self._bytes += size
        self._sent.append(_Batch(token, through, len(chosen), size, self._now_s()))
        for part in parts_within_frames(chosen, self._too_large):
            self._counts.sent += len(part)
            self._connection.send(Events(0, part))
        self._connection.send(Events(through))

    def _too_large(self, event: Relayed) -> None:
        self._counts.ignored += 1
        self._port.runtime.note(
            "error",
            "an event is too large for a link, and is not sent to the neighbour",
            neighbour=self._connection.broker,
            source=event.event.source,
            id=event.event.id,
        )

    def _now_s(self) -> float:
        return self._port.runtime.elapsed_s()

    def acknowledged(self, through: int) -> bool:
        """All that was sent as far as this is on the neighbour's disk. True if that is news."""
        sent = len(self._sent)
        while self._sent and self._sent[0].through <= through:
            batch = self._sent.popleft()
            self._bytes -= batch.bytes
            self._port.release(batch.token)
            self._progress_s, self._refusals = self._now_s(), 0
        self._go_on()
        return len(self._sent) < sent

    def not_stored(self) -> float:
        """The neighbour keeps nothing of what it has not acknowledged: it is sent again. Returns
        after how long."""
        self._refusals += 1
        self._pause_s = min(PAUSE_S * 2 ** (self._refusals - 1), PAUSE_S_MAX)
        self._give_back_sent()
        self._go_on()
        return self._pause_s

    def _go_on(self) -> None:
        if self._room is not None and not self._is_full:
            room, self._room = self._room, None
            room.answer(None)


def parts_within_frames(
    events: list[Relayed], too_large: Callable[[Relayed], None]
) -> list[tuple[Relayed, ...]]:
    """The events in their order, cut so that each part fits into a message with room to spare."""
    parts: list[tuple[Relayed, ...]] = []
    waiting = [events]
    while waiting:
        part = waiting.pop()
        if sum(_size(event) for event in part) <= FRAME_BYTES_MAX // 4:
            parts.append(tuple(part))  # most are, and then nothing is made to be measured
        elif len(encode(Events(0, tuple(part)))) <= FRAME_BYTES_MAX // 2:
            parts.append(tuple(part))
        elif len(part) == 1:
            if len(encode(Events(0, tuple(part)))) <= FRAME_BYTES_MAX:
                parts.append(tuple(part))
            else:
                too_large(part[0])
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
    return parts


def _size(event: Relayed) -> int:
    """About how many bytes; what can be large is counted."""
    carried = event.event
    texts = sum(len(str(value)) for value in (*carried.extensions.values(),))
    texts += sum(len(str(value)) for value in (*carried.attributes.values(),))
    return 512 + len(carried.data or b"") + 4 * texts
