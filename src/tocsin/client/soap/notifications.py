"""Notifications of every specification and format, out of an envelope."""

from __future__ import annotations

from typing import Final

from lxml import etree

from tocsin import safexml
from tocsin.client.soap.message import Message
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import Addressing, read_addressing
from tocsin.wire.soap.envelope import Envelope, elements, split
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.mediation import Notification
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topics import TopicName, read_topic, topic_block
from tocsin.wire.wsn.read import read_notifications

Element = etree._Element

# Elements that hold NotificationMessage: those that are sent, and those that are fetched.
HOLDERS: Final = frozenset(
    {
        (names.WSN13, "Notify"),
        (names.WSN12, "Notify"),
        (names.WSN10, "Notify"),
        (names.WSN13, "GetMessagesResponse"),
        (names.ONVIF_EVENTS, "PullMessagesResponse"),
    }
)
_MAY_BE_EMPTY: Final = frozenset({"GetMessagesResponse", "PullMessagesResponse"})


def notifications(envelope: Envelope, addressing: Addressing) -> list[Notification]:
    """What a message holds; nothing for one with an empty body, such as a heartbeat."""
    content = envelope.content
    if content is None:
        return []
    name = split(content.tag)
    if name in HOLDERS:
        if name[1] in _MAY_BE_EMPTY and not _holds_any(content):
            return []
        return read_notifications(envelope, addressing)
    if name == (names.WSE11, "Notify"):
        return _inside(envelope, addressing, [content], "actionURI")
    if name == (names.WSMAN, "Events"):
        full = [each for each in elements(content) if len(each)]
        return _inside(envelope, addressing, full, "Action")
    if content.getparent() is envelope.body and len(elements(envelope.body)) != 1:
        raise SoapFault("Sender", "the body of a notification is one element, and this has more")
    return [_plain(envelope, addressing, content)]


def _holds_any(content: Element) -> bool:
    return any(split(child.tag)[1] == "NotificationMessage" for child in elements(content))


def _inside(
    envelope: Envelope, addressing: Addressing, holders: list[Element], attribute: str
) -> list[Notification]:
    """Each holder's one element, with the action that its attribute names."""
    if any(len(elements(holder)) != 1 for holder in holders):
        raise SoapFault("Sender", "each wrapper of a notification holds one element")
    topic = _topic(envelope)
    several = len(holders) > 1
    found: list[Notification] = []
    for number, holder in enumerate(holders, 1):
        [inner] = elements(holder)
        [payload] = cut_out(envelope, [inner])
        own = split(holder.tag)[0]
        message_id = addressing.message_id
        found.append(
            Notification(
                payload=payload,
                name=split(inner.tag),
                topic=topic,
                producer=_sender(addressing),
                action=holder.get(attribute) or holder.get(f"{{{own}}}{attribute}"),
                message_id=f"{message_id}#{number}" if several and message_id else message_id,
            )
        )
    return found


def _plain(envelope: Envelope, addressing: Addressing, content: Element) -> Notification:
    [payload] = cut_out(envelope, [content])
    return Notification(
        payload=payload,
        name=split(content.tag),
        topic=_topic(envelope),
        producer=_sender(addressing),
        action=addressing.action,
        message_id=addressing.message_id,
    )


def _topic(envelope: Envelope) -> TopicName | None:
    return read_topic(topic_block(envelope))


def _sender(addressing: Addressing) -> str | None:
    sender = addressing.sender
    return None if sender is None or sender.is_anonymous else sender.address


def messages(envelope: Envelope, addressing: Addressing | None = None) -> list[Message]:
    """The notifications of an envelope as a program sees them."""
    known = read_addressing(envelope) if addressing is None else addressing
    return [as_message(each, envelope.raw) for each in notifications(envelope, known)]


def boxed_messages(body: bytes, carrier: bytes) -> list[Message]:
    """The notifications in an element that a message box kept without its envelope."""
    root = safexml.parse(body, what="the message in the box")
    whole = Envelope("1.1", None, root, root, body)
    return [as_message(each, carrier) for each in notifications(whole, Addressing())]


def as_message(found: Notification, carrier: bytes) -> Message:
    """One notification, and the envelope that brought it."""
    return Message(
        payload=found.payload,
        topic="" if found.topic is None else found.topic.path,
        action=found.action,
        producer=found.producer,
        id=found.message_id,
        envelope=carrier,
        topic_name=found.topic,
    )
