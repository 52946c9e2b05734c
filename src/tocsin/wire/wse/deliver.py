"""Events as WS-Eventing sends them: bare, wrapped, to be acknowledged, or in batches.

What is made here is shared by all consumers of one form, so only the form may decide about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import anonymous, write_headers
from tocsin.wire.soap.delivery import EventParts
from tocsin.wire.soap.mediation import action_of, message_id_of, payload_of
from tocsin.wire.soap.names import WSE_TOPIC, WSMAN, WSN10, WSN13
from tocsin.wire.soap.topics import write_topic
from tocsin.wire.wse.messages import (
    EVENTS_ACTION,
    HEARTBEAT_ACTION,
    WRAPPED_ACTION,
    Events,
    Notify,
)
from tocsin.wire.wse.write import write

ACK_REQUESTED: Final = f'<wsman:AckRequested xmlns:wsman="{WSMAN}"/>'.encode()
_ACKNOWLEDGED: Final = ("acked", "events")


def pieces(events: Sequence[Event], terms: SoapTerms) -> EventParts:
    """One message: of several events only in the form that is a batch."""
    if terms.form == "events":
        return _batch(events, terms)
    [event] = events
    action, body = action_of(event), payload_of(event)
    if terms.form == "wrapped":
        action, body = WRAPPED_ACTION, write(Notify(body, action))
    header = _headers(terms, action, message_id_of(event)) + topic_header(event, terms.spec)
    return EventParts(action, header, body)


def _batch(events: Sequence[Event], terms: SoapTerms) -> EventParts:
    body = write(Events(tuple(Notify(payload_of(event), action_of(event)) for event in events)))
    return EventParts(EVENTS_ACTION, _headers(terms, EVENTS_ACTION, _batch_id(events)), body)


def _batch_id(events: Sequence[Event]) -> str:
    """The same for the same events, so that a repetition can be known."""
    if len(events) == 1:
        return message_id_of(events[0])
    ends = (quote(event.id, safe="") for event in (events[0], events[-1]))
    return f"urn:tocsin:events:{len(events)}:{':'.join(ends)}"


def _headers(terms: SoapTerms, action: str, message_id: str) -> bytes:
    if terms.form not in _ACKNOWLEDGED:
        return write_headers(terms.wsa, action=action, message_id=message_id)
    back = anonymous(terms.wsa) if terms.wsa else None
    blocks = write_headers(terms.wsa, action=action, message_id=message_id, reply_to=back)
    return blocks + ACK_REQUESTED


def topic_header(event: Event, spec: str) -> bytes:
    """The topic as a header block, as the original sends it; nothing without a topic."""
    if event.topic in ("", WSE_TOPIC):
        return b""
    if spec == "wse11":
        return write_topic(WSN13, event, "wsn13")
    return write_topic(WSN10, event, spec)


def heartbeat(terms: SoapTerms, message_id: str) -> EventParts:
    """A heartbeat of WS-Management: nothing happened."""
    beat = Events((Notify(b"", HEARTBEAT_ACTION),))
    body = write(beat) if terms.form == "events" else b""
    return EventParts(HEARTBEAT_ACTION, _headers(terms, HEARTBEAT_ACTION, message_id), body)
