"""What a producer says in place of an event, as an event: an archive keeps that, too."""

from __future__ import annotations

from datetime import UTC, datetime

from tocsin.wire.gma.conversation import Subscription
from tocsin.wire.gma.messages import Element, EventMessage, PerformanceEvent
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.write import event_element

# Not in the namespace of our extensions: in a message, those are no events.
NAME = EventName("ProducerError", "urn:tocsin:gma:events:1")


def producer_error(
    subscription: Subscription, message: EventMessage, now_ns: int
) -> tuple[PerformanceEvent, bytes]:
    """The event that there was none, and its element."""
    moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
    told = {"Error": message.error, "ErrorDetail": message.error_detail}
    elements = (
        Element("EventName", str(subscription.parameters.name)),
        *(Element(name, text) for name, text in told.items() if text is not None),
    )
    event = PerformanceEvent(NAME, moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), elements)
    return event, event_element(event).encode()
