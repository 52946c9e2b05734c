"""EventIntake: events that a neighbour sends are stored, in their order, and acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import (
    BadLinkMessage,
    Busy,
    DiskFailed,
    PeerFailed,
    ShuttingDown,
    TocsinError,
)
from tocsin.services.link.backlog import Backlog
from tocsin.services.link.connection import Connection
from tocsin.services.link.forwarder import Counts
from tocsin.services.link.relayed_events import arrival_of
from tocsin.wire.link.codec import check_relayed
from tocsin.wire.link.messages import (
    BATCHES_MAX,
    REASON_CHARS_MAX,
    UNACKNOWLEDGED_BYTES_MAX,
    Acknowledge,
    Events,
    NotStored,
    Relayed,
)

RETRY_S = 1.0
ATTEMPTS_MAX = 5  # of a busy broker, before the neighbour has to come again
# A neighbour waits for acknowledgements, so no more than this can be on its way. A batch comes as
# one message or, if its events are large, as some more.
MESSAGES_MAX = 64 * BATCHES_MAX
# What one batch may have more than the limit of the sender is as large as a window of the log.
BYTES_MAX = 4 * UNACKNOWLEDGED_BYTES_MAX


class EventIntake:
    """Of one connection with one neighbour."""

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        connection: Connection,
        log: str,
        counts: Counts,
        backlog: Backlog,
        note_not_stored: Callable[[TocsinError], None],
    ) -> None:
        """`log`: the id of this broker's own log. `backlog`: what waits of all neighbours."""
        self._port = port
        self._session = session
        self._connection = connection
        self._log = log
        self._counts = counts
        self._backlog = backlog
        self._note_not_stored = note_not_stored
        self._waiting: deque[tuple[Events, int]] = deque()
        self._bytes = 0
        self._is_storing = False
        self._is_refusing = False  # until the neighbour resumes

    def close(self) -> None:
        self._drop_waiting()

    def take(self, message: Events, size: int) -> bool:
        """Store these next. True if `run` has to be started; it ends when nothing waits."""
        if self._is_refusing:
            return False
        if len(self._waiting) >= MESSAGES_MAX or self._bytes >= BYTES_MAX:
            raise BadLinkMessage(
                "it sends events without waiting for acknowledgements",
                remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
            )
        if message.events and not self._backlog.has_room(size):
            self._refuse(self._too_many())
            return False
        self._waiting.append((message, size))
        self._bytes += size
        self._backlog.bytes += size
        was_storing, self._is_storing = self._is_storing, True
        return not was_storing

    def resume(self) -> None:
        """The neighbour sends again what was not acknowledged."""
        self._is_refusing = False

    async def run(self) -> None:
        while self._waiting:
            message, _ = self._waiting[0]
            error = await self._store(message.events, lambda: self._connection.is_ended)
            if error is not None:
                self._refuse(error)
            elif self._waiting and self._waiting[0][0] is message:  # not refused meanwhile
                self._drop_first()
                if message.through:
                    self._connection.send(Acknowledge(message.through))
        self._is_storing = False

    def _refuse(self, error: TocsinError) -> None:
        """Nothing that waits is kept, so that it takes no memory for as long as it cannot be
        stored. The neighbour has it in its log."""
        self._drop_waiting()
        was_refusing, self._is_refusing = self._is_refusing, True
        if not was_refusing and not isinstance(error, ShuttingDown | DiskFailed | PeerFailed):
            self._connection.send(NotStored(error.code, error.problem[:REASON_CHARS_MAX]))
            self._note_not_stored(error)

    def _drop_first(self) -> None:
        _, size = self._waiting.popleft()
        self._bytes -= size
        self._backlog.bytes -= size

    def _drop_waiting(self) -> None:
        while self._waiting:
            self._drop_first()

    def _too_many(self) -> Busy:
        return Busy(
            f"events of other brokers that wait to be stored take {self._backlog.bytes} bytes",
            remedy="They are sent again. If it goes on, raise overlay.received_bytes_total_max.",
        )

    async def store(self, events: tuple[Relayed, ...], is_over: Callable[[], bool]) -> bool:
        """Returns once all are on disk that may be there; False if it cannot be, for now."""
        return await self._store(events, is_over) is None

    async def _store(
        self, events: tuple[Relayed, ...], is_over: Callable[[], bool]
    ) -> TocsinError | None:
        """None once all are on disk that may be there, else why not."""
        taken = [event for event in events if self._is_taken(event)]
        if not taken:
            return None
        arrivals = [arrival_of(event, self._connection.broker) for event in taken]
        attempts = 0
        while not is_over():
            try:
                accepted = await self._port.relay(
                    self._session, [event.event for event in taken], arrivals
                )
            except TocsinError as error:
                attempts += 1
                if not isinstance(error, Busy) or attempts >= ATTEMPTS_MAX:
                    return error
                await self._port.runtime.sleep(RETRY_S)
                continue
            self._counts.received += accepted.accepted - accepted.duplicates
            self._counts.repeats += accepted.duplicates
            return None
        return PeerFailed("its link has ended", remedy="It sends the events again.")

    def _is_taken(self, event: Relayed) -> bool:
        """Not what this log has, nor what it cannot keep or the neighbour may not send: that is
        counted, and acknowledged, or the neighbour would send it for ever."""
        if event.origin_log == self._log:
            self._counts.repeats += 1
            return False
        try:
            check_relayed(event)
            self._port.check_events(self._session, [event.event])
        except TocsinError as error:
            self._counts.ignored += 1
            if self._counts.ignored.bit_count() == 1:  # the first, the second, the fourth, ...
                self._port.runtime.note(
                    "warning",
                    "an event of a neighbour is not taken",
                    neighbour=self._connection.broker,
                    why=error.problem,
                    ignored=self._counts.ignored,
                )
            return False
        return True
