"""The mediator: notifications of every format, through the one Event (paper 000, section IV.B).

Namespaces, addressing versions and message formats differ by specification; what a notification
contains does not. Each format's package reads a `Notification` and writes an event back out; what
is the same for all of them is here.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from tocsin import safexml
from tocsin.event.event import Event
from tocsin.event.xml_form import CLOUDEVENTS, event_from_xml, payload_xml
from tocsin.event.xml_name import name_uri
from tocsin.wire.soap.topics import TopicName, topic_context

XML_TYPE = "application/xml"
UNNAMED_SOURCE = "/soap"
NOTIFICATIONS_MAX = 1_000  # in one message
_URI_KEPT = ":/?#[]@!$&'()*+,;=%~"


class Notification(msgspec.Struct, frozen=True):
    """The content of one notification message. `payload` is one element, as it was sent."""

    payload: bytes
    name: tuple[str, str]  # the payload's namespace and local name
    topic: TopicName | None = None
    producer: str | None = None
    action: str | None = None  # of a message that is the payload itself; a wrapped one has none
    message_id: str | None = None


def to_event(notification: Notification, *, fallback_id: str, default_topic: str = "") -> Event:
    """The event that a notification is about; BadTopic if its topic cannot be one."""
    path, extensions = default_topic, dict[str, str]()
    if notification.topic is not None:
        path, extensions = topic_context(notification.topic)
    if notification.name == (CLOUDEVENTS, "event"):
        return _unwrapped(notification.payload, path, default_topic, extensions)
    return Event(
        id=notification.message_id or fallback_id,
        source=notification.producer or UNNAMED_SOURCE,
        type=notification.action or name_uri(notification.name),
        topic=path,
        datacontenttype=XML_TYPE,
        extensions={**extensions},
        data=notification.payload,
    )


def _unwrapped(payload: bytes, path: str, default: str, extensions: dict[str, str]) -> Event:
    """An event that left us for a Web-services broker and comes back, or was sent in that form."""
    event = event_from_xml(safexml.parse(payload, what="the CloudEvent"))
    if path == default and event.topic:
        return event
    kept = {**event.extensions, **extensions}
    return msgspec.structs.replace(event, topic=path or event.topic, extensions=kept)


def action_of(event: Event) -> str:
    """The wsa:Action of a message that is the event's payload itself."""
    return quote(event.type, safe=_URI_KEPT)


def message_id_of(event: Event) -> str:
    """The wsa:MessageID: the publisher's own id, so that a repetition can be known."""
    if ":" in event.id and event.id.isascii() and event.id.isprintable() and " " not in event.id:
        return event.id
    return f"urn:tocsin:event:{quote(event.id, safe='')}"


def payload_of(event: Event) -> bytes:
    """The one element that a Web-services consumer gets."""
    return payload_xml(event)
