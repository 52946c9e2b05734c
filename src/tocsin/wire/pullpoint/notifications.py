"""What a pull point hands out: notification messages of version 1.3, whatever was sent to it.

Those inside a Notify of 1.3 are passed on as they were. Older ones are written in 1.3, and a
message that is no Notify is the content of a notification of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lxml import etree

from tocsin import safexml
from tocsin.event.event import Event
from tocsin.wire.msgbox.content import BoxMessage
from tocsin.wire.soap.addressing import EndpointReference, epr_content
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, elements, split
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSA2005, WSE11, WSMAN, WSN10, WSN12, WSN13
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topics import TopicName, dialect_uri
from tocsin.wire.wsn.deliver import notification_content
from tocsin.wire.wsn.messages import Expression
from tocsin.wire.wsn.read import read_notify
from tocsin.wire.wsn.write import write_expression

Element = etree._Element

_OLDER: Final = frozenset({(WSN12, "Notify"), (WSN10, "Notify")})


def notification_messages(message: BoxMessage) -> list[bytes]:
    """The notifications that one message to a pull point brought, each an element of 1.3."""
    root = safexml.parse(message.body, what="the message in the box")
    whole = Envelope("1.1", None, root, root, message.body)
    name = split(root.tag)
    if name == (WSN13, "Notify"):
        found = root.findall(f"{{{WSN13}}}NotificationMessage")
        return cut_out(whole, found)
    if name in _OLDER:
        try:
            messages = read_notify(whole).messages
        except SoapFault:  # a Notify that is none is handed on as whatever it is
            return [_notification(message.body, message)]
        return [notification_message(each.payload, each.topic, each.producer) for each in messages]
    return [_notification(payload, message) for payload in _payloads(whole, root, name)]


def _payloads(whole: Envelope, root: Element, name: tuple[str, str]) -> Iterable[bytes]:
    """What a message brought that is no Notify: itself, or what it is a wrapper of."""
    if name == (WSE11, "Notify") and len(elements(root)) == 1:
        return cut_out(whole, elements(root))
    if name == (WSMAN, "Events"):
        inner = [content for event in elements(root) for content in elements(event)]
        return cut_out(whole, inner)
    return [whole.raw]


def _notification(payload: bytes, message: BoxMessage) -> bytes:
    producer = EndpointReference(message.sender) if message.sender else None
    return notification_message(payload, message.topic, producer)


def event_message(event: Event) -> bytes:
    """A notification message about an event of the broker's."""
    return element("n", WSN13, "NotificationMessage", notification_content(event, "wsn13", WSA2005))


def notification_message(
    payload: bytes, topic: TopicName | None, producer: EndpointReference | None
) -> bytes:
    """One NotificationMessage element of version 1.3."""
    content = b""
    if topic is not None:
        dialect = dialect_uri("wsn13", is_root="/" not in topic.path)
        content += write_expression(
            "Topic", Expression(topic.text, dialect, topic.namespaces), WSN13
        )
    if producer is not None:
        inside = epr_content(producer, WSA2005)
        content += b"<n:ProducerReference>%b</n:ProducerReference>" % inside
    return element(
        "n", WSN13, "NotificationMessage", b"%b<n:Message>%b</n:Message>" % (content, payload)
    )
