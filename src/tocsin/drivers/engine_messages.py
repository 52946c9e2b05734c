"""Messages of workflow engines as events, with the time at which they came in."""

from __future__ import annotations

from tocsin.broker.runtime import Runtime
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_MS
from tocsin.ontology import in_use
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.engines.checked_values import moment_ms


def received(runtime: Runtime) -> str:
    """Now, as messages have it."""
    moment = moment_ms(runtime.now_ns() // NS_PER_MS)
    assert moment is not None
    return moment


def events_from(messages: list[Message], limits: Limits) -> list[Event]:
    """The messages of a receiver, each of which has its own id and source, as events."""
    vocabulary = in_use()
    events: list[Event] = []
    for message in messages:
        assert message.id
        assert message.source
        event = to_event(message, id="", source="", vocabulary=vocabulary)
        check_event(event, limits)
        events.append(event)
    return events
