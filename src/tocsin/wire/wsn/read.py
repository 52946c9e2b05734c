"""WS-BaseNotification read: from the elements of messages to their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lxml import etree

from tocsin.event.instant import xs_date_time_ns
from tocsin.wire.soap.addressing import Addressing, EndpointReference, read_epr
from tocsin.wire.soap.envelope import Envelope, elements, first_element, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.mediation import NOTIFICATIONS_MAX, Notification
from tocsin.wire.soap.names import SPEC_OF, WSA_NAMESPACES, WSN10, WSN12, WSN13
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topics import read_topic
from tocsin.wire.wsn import messages
from tocsin.wire.wsn.operations import REQUESTS, RESPONSES, Operation
from tocsin.wire.wsn.read_subscribe import (
    is_nil,
    read_expression,
    read_subscribe,
    read_termination,
)

Element = etree._Element

REASON_CHARS_MAX: Final = 200  # of a fault
_ADDRESSES: Final = frozenset(f"{{{wsa}}}Address" for wsa in WSA_NAMESPACES)


def read(envelope: Envelope) -> messages.Message:
    """The message in the body; a SoapFault if it is none of this specification."""
    name = split(envelope.message.tag)
    asked = REQUESTS.get(name)
    if asked is not None:
        return read_request(envelope, *asked)
    answered = RESPONSES.get(name)
    if answered is not None:
        return _read_response(envelope, answered[1])
    if name[1] == "Notify" and SPEC_OF.get(name[0], "").startswith("wsn"):
        return read_notify(envelope)
    raise SoapFault("Sender", f"{name[1][:80]!r} is not a message of WS-BaseNotification")


def read_refusal(envelope: Envelope) -> tuple[str, str] | None:
    """The text of a fault and the name of the first element in its detail; None if it is none."""
    fault = envelope.message
    if split(fault.tag)[1] != "Fault":
        return None
    reason = " ".join("".join(fault.itertext()).split())[:REASON_CHARS_MAX]
    for child in elements(fault):
        if split(child.tag)[1].lower() == "detail":
            first = first_element(child)
            return reason, "" if first is None else split(first.tag)[1]
    return reason, ""


# Requests


def read_request(envelope: Envelope, spec: str, operation: Operation) -> messages.Request:
    """What is asked of a producer or of a subscription."""
    if operation is Operation.SUBSCRIBE:
        return read_subscribe(envelope, spec)
    if operation is Operation.RENEW:
        return _renew(envelope.message)
    if operation is Operation.CURRENT_MESSAGE:
        return _current_message(envelope.message)
    return _BARE_REQUESTS[operation]()


_BARE_REQUESTS: Final[Mapping[Operation, Callable[[], messages.Request]]] = {
    Operation.UNSUBSCRIBE: messages.Unsubscribe,
    Operation.PAUSE: messages.PauseSubscription,
    Operation.RESUME: messages.ResumeSubscription,
}


def _renew(element: Element) -> messages.Renew:
    for child in elements(element):
        if split(child.tag)[1] in ("TerminationTime", "RequestedTerminationTime"):
            return messages.Renew(read_termination(child))
    return messages.Renew(None)


def _current_message(element: Element) -> messages.GetCurrentMessage:
    for child in elements(element):
        if split(child.tag)[1] in ("Topic", "TopicExpression"):
            return messages.GetCurrentMessage(read_expression(child))
    raise SoapFault("Sender", "GetCurrentMessage names no Topic")


# Responses


def _read_response(envelope: Envelope, operation: Operation) -> messages.Response:
    element = envelope.message
    if operation is Operation.SUBSCRIBE:
        return _subscribe_response(envelope, element)
    if operation is Operation.RENEW:
        termination, current = _times(element)
        return messages.RenewResponse(termination, current)
    if operation is Operation.CURRENT_MESSAGE:
        content = first_element(element)
        payload = None if content is None else cut_out(envelope, [content])[0]
        return messages.GetCurrentMessageResponse(payload)
    return _BARE_RESPONSES[operation]()


_BARE_RESPONSES: Final[Mapping[Operation, Callable[[], messages.Response]]] = {
    Operation.UNSUBSCRIBE: messages.UnsubscribeResponse,
    Operation.PAUSE: messages.PauseSubscriptionResponse,
    Operation.RESUME: messages.ResumeSubscriptionResponse,
}


def _subscribe_response(envelope: Envelope, element: Element) -> messages.SubscribeResponse:
    reference = _reference(envelope, element, "SubscriptionReference")
    if reference is None:
        raise SoapFault("Sender", "SubscribeResponse has no SubscriptionReference")
    termination, current = _times(element)
    return messages.SubscribeResponse(reference, current, termination)


def _times(element: Element) -> tuple[int | messages.Never | None, int | None]:
    """When it ends, and what time it is there; what is missing or cannot be read is None."""
    termination: int | messages.Never | None = None
    current: int | None = None
    for child in elements(element):
        name = split(child.tag)[1]
        if name in ("TerminationTime", "NewTerminationTime"):
            termination = messages.NEVER if is_nil(child) else xs_date_time_ns(text_of(child))
        elif name == "CurrentTime":
            current = xs_date_time_ns(text_of(child))
    return termination, current


def _reference(envelope: Envelope, element: Element, name: str) -> EndpointReference | None:
    for child in elements(element):
        if split(child.tag)[1] == name:
            return read_epr(envelope, child)
    return None


# Notifications


def read_notify(envelope: Envelope) -> messages.Notify:
    """A consumer's view of Notify: each message, who produced it, for which subscription."""
    holders, contents = _holders(envelope.message)
    payloads = cut_out(envelope, contents)
    return messages.Notify(
        tuple(
            messages.NotificationMessage(
                payload=payload,
                topic=read_topic(parts.get("Topic")),
                producer=_read_if(envelope, parts.get("ProducerReference")),
                subscription=_read_if(envelope, parts.get("SubscriptionReference")),
            )
            for parts, payload in zip(holders, payloads, strict=True)
        )
    )


def _read_if(envelope: Envelope, element: Element | None) -> EndpointReference | None:
    return None if element is None else read_epr(envelope, element)


def read_notifications(envelope: Envelope, addressing: Addressing) -> list[Notification]:
    """A broker's view of Notify, for the events that it brings. One message that brings several
    has one id; theirs are that id and their number."""
    # Where only the action says that it is Notify, the body is as empty as a Notify can be.
    holders, contents = _holders(envelope.message)
    payloads = cut_out(envelope, contents)
    message_id = addressing.message_id
    several = len(holders) > 1
    return [
        Notification(
            payload=payloads[index],
            name=split(contents[index].tag),
            topic=read_topic(parts.get("Topic")),
            producer=_address(parts.get("ProducerReference")),
            message_id=f"{message_id}#{index + 1}" if several and message_id else message_id,
        )
        for index, parts in enumerate(holders)
    ]


# By whole tags, in one look at each child: every notification comes by here.
_HOLDERS: Final = frozenset(f"{{{ns}}}NotificationMessage" for ns in (WSN13, WSN12, WSN10))
_PARTS: Final = {
    f"{{{namespace}}}{name}": name
    for namespace in (WSN13, WSN12, WSN10)
    for name in ("SubscriptionReference", "Topic", "ProducerReference", "Message")
}


def _holders(notify: Element) -> tuple[list[dict[str, Element]], list[Element]]:
    """The parts of each NotificationMessage, and the one element that its Message holds."""
    holders: list[dict[str, Element]] = []
    contents: list[Element] = []
    for holder in notify:
        if holder.tag not in _HOLDERS:
            continue
        parts = {_PARTS[child.tag]: child for child in holder if child.tag in _PARTS}
        message = parts.get("Message")
        inside = [] if message is None else elements(message)
        if len(inside) != 1:
            found = "no element" if not inside else f"{len(inside)} elements"
            raise SoapFault("Sender", f"a Message holds exactly one element, and this has {found}")
        if len(holders) == NOTIFICATIONS_MAX:
            raise SoapFault(
                "Sender", f"a message may hold at most {NOTIFICATIONS_MAX} notifications"
            )
        holders.append(parts)
        contents.append(inside[0])
    if not holders:
        raise SoapFault("Sender", "Notify holds no NotificationMessage")
    return holders, contents


def _address(reference: Element | None) -> str | None:
    """The address of a producer; unusable references raise no fault here."""
    if reference is None:
        return None
    for child in reference:
        if child.tag in _ADDRESSES:
            return text_of(child) or None
    return None
