"""Flow: the events of one subscription on their way from the log to a consumer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.wire.gma.messages import Context, EventMessage
from tocsin.wire.gma.normal import performance_element
from tocsin.wire.gma.thinning import Thinning
from tocsin.wire.gma.write import event_message, write

DROPPED = "EventsDropped"
UNWRITABLE = "EventUnwritable"


class Outlet(Protocol):
    """Where messages go; what carries them is its own affair."""

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        """Send these; False if no more should come until `node.stream_ready` is called.

        `paced` are those whose sender then waits: a page of large events may be any size.
        """
        ...


class Flow:
    """The far end of a stream of the broker, as `StreamSink` wants it."""

    def __init__(
        self,
        outlet: Outlet,
        consumer_id: str,
        *,
        tells_context: bool,
        thinning: Thinning | None,
        ended: Callable[[Flow, str], None],
    ) -> None:
        self._outlet = outlet
        self._consumer_id = consumer_id
        self._tells_context = tells_context
        self._thinning = thinning
        self._ended = ended

    def write(self, events: list[Stored]) -> bool:
        if self._thinning is not None:
            passes = self._thinning.passes
            events = [each for each in events if passes(each.event, each.received_ns)]
        return self._outlet.send(list(map(self._message, events)), paced=True)

    def dropped(self, count: int) -> None:
        detail = f"{count} events were removed before they could be sent"
        self._outlet.send([self._error(DROPPED, detail)])

    def end(self, reason: str) -> None:
        self._ended(self, reason)

    def _message(self, stored: Stored) -> bytes:
        event = stored.event
        try:
            content = performance_element(stored)
            if not self._tells_context:
                return event_message(self._consumer_id, content)
            context = Context(stored.seq, event.id, event.source, event.topic)
            return event_message(self._consumer_id, content, context)
        except TocsinError as error:
            return self._error(UNWRITABLE, f"event {stored.seq}: {error}")

    def _error(self, error: str, detail: str) -> bytes:
        return write(EventMessage(self._consumer_id, error=error, error_detail=detail))
