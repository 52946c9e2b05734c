"""Performance events as they arrive, and events as they are sent."""

from __future__ import annotations

from tocsin.event.event import Event
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import PerformanceEvent
from tocsin.wire.gma.normal import (
    content_of,
)
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import event_message

RECEIVED_NS = 1_700_000_000_123_456_789


def sent(event: Event) -> PerformanceEvent:
    """The event as a consumer reads it from the wire."""
    message = read(event_message("1", content_of(event, RECEIVED_NS)))
    assert isinstance(message, m.EventMessage)
    assert message.error is None
    assert message.context is None
    assert message.event is not None
    return message.event
