"""EventIntake: events that a neighbour sends are stored, in their order, and acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import (
    BadLinkMessage,
    DiskFailed,
    ShuttingDown,
    TocsinError,
)
from tocsin.services.link.connection import Connection
from tocsin.services.link.forwarder import Counts
from tocsin.services.link.relayed import arrival
from tocsin.wire.link.codec import check_relayed
from tocsin.wire.link.messages import BATCHES_MAX, Acknowledge, Events, Relayed

RETRY_S = 1.0
# A neighbour waits for acknowledgements, so no more than this can be on its way. A batch comes as
# one message or, if its events are large, as some more.
MESSAGES_MAX = 64 * BATCHES_MAX


class EventIntake:
    """Of one connection with one neighbour."""

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        connection: Connection,
        log: str,
        counts: Counts,
    ) -> None:
        """`log`: the id of this broker's own log."""
        self._port = port
        self._session = session
        self._connection = connection
        self._log = log
        self._counts = counts
        self._waiting: deque[Events] = deque()
        self._is_storing = False

    def take(self, message: Events) -> bool:
        """Store these next. True if `run` has to be started; it ends when nothing waits."""
        if len(self._waiting) >= MESSAGES_MAX:
            raise BadLinkMessage(
                "it sends events without waiting for acknowledgements",
                remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
            )
        self._waiting.append(message)
        was_storing, self._is_storing = self._is_storing, True
        return not was_storing

    async def run(self) -> None:
        while self._waiting:
            message = self._waiting[0]
            if not await self.store(message.events, lambda: self._connection.is_ended):
                return
            self._waiting.popleft()
            if message.through:
                self._connection.send(Acknowledge(message.through))
        self._is_storing = False

    async def store(self, events: tuple[Relayed, ...], is_over: Callable[[], bool]) -> bool:
        """Returns once all are on disk that may be there; False if it cannot be, for now."""
        taken = [event for event in events if self._is_taken(event)]
        if not taken:
            return True
        arrivals = [arrival(event, self._connection.broker) for event in taken]
        while not is_over():
            try:
                accepted = await self._port.relay(
                    self._session, [event.event for event in taken], arrivals
                )
            except (ShuttingDown, DiskFailed):
                return False
            except TocsinError:  # it is busy, or its disk is full
                await self._port.runtime.sleep(RETRY_S)
                continue
            self._counts.received += accepted.accepted - accepted.duplicates
            self._counts.repeats += accepted.duplicates
            return True
        return False

    def _is_taken(self, event: Relayed) -> bool:
        """Not what this log has, nor what it cannot keep or the neighbour may not send: that is
        counted, and acknowledged, or the neighbour would send it for ever."""
        if event.origin_log == self._log:
            self._counts.repeats += 1
            return False
        try:
            check_relayed(event)
            self._port.check(self._session, Action.PUBLISH, event.event.topic)
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
