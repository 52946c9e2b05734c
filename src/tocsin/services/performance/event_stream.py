"""EventStream: the events of one subscription on their way from the log to a consumer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.wire.gma.messages import Context, EventMessage
from tocsin.wire.gma.normal import performance_element
from tocsin.wire.gma.period_filter import PeriodFilter
from tocsin.wire.gma.write import event_message, write

DROPPED = "EventsDropped"
UNWRITABLE = "EventUnwritable"


class MessageTransport(Protocol):
    """Where messages to a peer go: a connection, a datagram socket, the answer to a request."""

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        """Send these; False if no more should come until `PerformanceSession.writable` is called.

        `paced` are those whose sender then waits: a page of large events may be any size.
        """
        ...

    def wait_writable(self) -> Awaitable[None]:
        """Wait until the peer has read what it was sent. Raises if it never will."""
        ...


class EventStream:
    """A `StreamSink` of the broker's port."""

    def __init__(
        self,
        transport: MessageTransport,
        consumer_id: str,
        *,
        with_context: bool,
        period_filter: PeriodFilter | None,
        on_end: Callable[[EventStream], None],
    ) -> None:
        self._transport = transport
        self._consumer_id = consumer_id
        self._with_context = with_context
        self._period_filter = period_filter
        self._on_end = on_end

    def write(self, events: list[Stored]) -> bool:
        if self._period_filter is not None:
            passes = self._period_filter.passes
            events = [each for each in events if passes(each.event, each.received_ns)]
        return self._transport.send(list(map(self._message, events)), paced=True)

    def dropped(self, count: int) -> None:
        detail = f"{count} events were removed before they could be sent"
        self._transport.send([self._error(DROPPED, detail)])

    def withheld(self, count: int) -> None:
        """The protocol has no words for it that a consumer would not take for a loss."""

    def end(self, reason: str) -> None:
        self._on_end(self)

    def _message(self, stored: Stored) -> bytes:
        event = stored.event
        try:
            content = performance_element(stored)
            if not self._with_context:
                return event_message(self._consumer_id, content)
            context = Context(stored.seq, event.id, event.source, event.topic)
            return event_message(self._consumer_id, content, context)
        except TocsinError as error:
            return self._error(UNWRITABLE, f"event {stored.seq}: {error}")

    def _error(self, error: str, detail: str) -> bytes:
        return write(EventMessage(self._consumer_id, error=error, error_detail=detail))
