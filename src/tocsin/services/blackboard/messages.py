"""Messages that somebody publishes on the blackboard, as events."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.event.event import Event
from tocsin.ontology import in_use
from tocsin.wire.blackboard.normal import to_event
from tocsin.wire.blackboard.read import read_messages
from tocsin.wire.cloudevents.attributes import check_sent
from tocsin.wire.cloudevents.limits import Limits

SOURCE = "/blackboard"  # of a message that names no other


def message_events(body: bytes, limits: Limits, new_id: Callable[[], str]) -> list[Event]:
    """One event a message, each within the limits of every event."""
    vocabulary = in_use()
    events: list[Event] = []
    for message in read_messages(body, vocabulary, limits.batch_events_max):
        event = to_event(message, id=message.id or new_id(), source=SOURCE, vocabulary=vocabulary)
        check_sent(event, limits)
        events.append(event)
    return events
