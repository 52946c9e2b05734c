"""GmaSender: the way to a consumer at a gma or gmas address."""

from __future__ import annotations

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.effects import Push
from tocsin.drivers.push.gma_connection import GmaConnection
from tocsin.drivers.push.gma_offers import EventBatch, Outgoing
from tocsin.drivers.push.sender import NOTHING, ConnectionSender, Done, PushContext
from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.wire.gma.normal import name_of_event, performance_element

EMPTY = EventBatch("", ())
ENDED = Failed("its subscription ended meanwhile", reachable=True)


class GmaSender(ConnectionSender):
    """Sends events as their producer, each batch answered by one call of its `done`."""

    __slots__ = ("batch",)

    def __init__(self, context: PushContext, number: int, address: str, sink: SinkAddress) -> None:
        super().__init__(context, number, address, sink)
        self.batch = EMPTY

    def push(self, push: Push, done: Done) -> None:
        """Send the events of a push. Only when the one before is done."""
        try:
            # The same name and numbers at every attempt: a broker at the other end knows by them
            # what it has already.
            self.batch = EventBatch(push.subscription.id, tuple(map(_outgoing, push.events)))
        except TocsinError as error:
            self._context.loop.call_soon(done, self.number, Failed(error.problem, reachable=True))
            return
        self.ask(NOTHING, done, self._context.loop.time() + push.timeout_s)

    def close_subscription(self, feed: str) -> None:
        """Nothing more of this subscription comes."""
        if self.is_busy and self.batch.feed == feed:
            self._stop_opening()
            # Whoever sends is called later, never while it does something else.
            self._context.loop.call_soon(self._finish, ENDED)
        connection = self._connection
        if isinstance(connection, GmaConnection):
            connection.leave(feed)
            if not connection.is_used:
                connection.part(self._context.closing)

    def close(self) -> None:
        """Say goodbye. A batch under way is not reported."""
        self._done = None
        self._stop_opening()
        if isinstance(self._connection, GmaConnection):
            self._connection.part(self._context.closing)

    def drain(self) -> None:
        self.close()

    def refused(self, reason: str) -> None:
        self._finish(Failed(reason, reachable=True))
        self._make_room()

    def closed_idle(self, reason: str) -> None:
        self._context.note(
            "warning", "the connection to a consumer was closed", sink=self.address, reason=reason
        )

    def _finish(self, outcome: Outcome) -> None:
        self.batch = EMPTY
        super()._finish(outcome)

    def _new_connection(self) -> GmaConnection:
        return GmaConnection(self._context.loop, self)


def _outgoing(stored: Stored) -> Outgoing:
    return Outgoing(name_of_event(stored.event), f"e{stored.seq}", performance_element(stored))
