"""What a source of WS-Eventing or WS-Management sends: bare and wrapped notifications, batches."""

from __future__ import annotations

from lxml import etree

from tocsin.wire.soap.addressing import Addressing, header_text
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.mediation import NOTIFICATIONS_MAX, Notification
from tocsin.wire.soap.names import WSE04, WSE11, WSMAN
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topics import read_topic, topic_block

Element = etree._Element


def read_bare(envelope: Envelope, addressing: Addressing) -> Notification:
    """A message that is the notification itself."""
    children = elements(envelope.body)
    if len(children) != 1:
        raise SoapFault("Sender", f"the body of a notification is one element, not {len(children)}")
    return _notification(envelope, addressing, children[0], addressing.action)


def read_wrapped(envelope: Envelope, addressing: Addressing) -> Notification:
    """WS-Eventing 2011's wrapper, which keeps the action that the bare message would have."""
    wrapper = envelope.message
    children = elements(wrapper)
    if len(children) != 1:
        raise SoapFault("Sender", f"wse:Notify holds one element, not {len(children)}")
    action = wrapper.get("actionURI") or wrapper.get(f"{{{WSE11}}}actionURI")
    return _notification(envelope, addressing, children[0], action)


def read_batch(envelope: Envelope, addressing: Addressing) -> list[Notification]:
    """WS-Management's batch of events; empty if it holds heartbeats alone."""
    batch = envelope.message
    events = [each for each in elements(batch) if not _is_heartbeat(each)]
    if not events and len(batch):
        return []
    if len(events) > NOTIFICATIONS_MAX:
        raise SoapFault("Sender", f"a message may hold {NOTIFICATIONS_MAX} notifications")
    if not events or any(len(elements(event)) != 1 for event in events):
        raise SoapFault("Sender", "each wsman:Event holds one element")
    inner = [elements(event)[0] for event in events]
    topic = read_topic(topic_block(envelope))
    return [
        Notification(
            payload=payload,
            name=split(element.tag),
            topic=topic,
            action=event.get("Action") or event.get(f"{{{WSMAN}}}Action"),
            message_id=_numbered(addressing.message_id, number, len(events)),
        )
        for number, (event, element, payload) in enumerate(
            zip(events, inner, cut_out(envelope, inner), strict=True), 1
        )
    ]


def read_end_status(envelope: Envelope) -> str:
    """The reason in a SubscriptionEnd of either version."""
    end = envelope.message
    found = (end.find(f"{{{namespace}}}Status") for namespace in (WSE04, WSE11))
    return text_of(next((status for status in found if status is not None), None))


def wants_acknowledgement(envelope: Envelope) -> bool:
    """True for deliveries of WS-Management that count only when they are answered."""
    return header_text(envelope, WSMAN, "AckRequested") is not None


def _notification(
    envelope: Envelope, addressing: Addressing, element: Element, action: str | None
) -> Notification:
    sender = addressing.sender
    return Notification(
        payload=cut_out(envelope, [element])[0],
        name=split(element.tag),
        topic=read_topic(topic_block(envelope)),
        producer=None if sender is None or sender.is_anonymous else sender.address,
        action=action,
        message_id=addressing.message_id,
    )


def _numbered(message_id: str | None, number: int, of: int) -> str | None:
    return message_id if message_id is None or of == 1 else f"{message_id}#{number}"


def _is_heartbeat(event: Element) -> bool:
    return not len(event) and event.get("Action", "").endswith("/Heartbeat")
