"""WS-BrokeredNotification read."""

from __future__ import annotations

from typing import Final

from lxml import etree

from tocsin.wire.soap.addressing import EndpointReference, read_epr
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.wsn.read_subscribe import read_expression, read_termination
from tocsin.wire.wsn_brokered import messages

Element = etree._Element

TOPICS_MAX: Final = 64  # of one registration

_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False, "": False}


def read(envelope: Envelope) -> messages.Message:
    """The message in the body; a SoapFault if it is none of this specification."""
    namespace, name = split(envelope.message.tag)
    if namespace in messages.NAMESPACES.values():
        if name == messages.REGISTER:
            return read_register(envelope)
        if name == f"{messages.REGISTER}Response":
            return _registered(envelope)
        if name == messages.DESTROY:
            return messages.DestroyRegistration()
        if name == f"{messages.DESTROY}Response":
            return messages.DestroyRegistrationResponse()
    raise SoapFault("Sender", f"{name[:80]!r} is not a message of WS-BrokeredNotification")


def read_register(envelope: Envelope) -> messages.RegisterPublisher:
    """What a publisher wants to be registered for."""
    element = envelope.message
    termination = _child(element, "InitialTerminationTime")
    topics = element.findall(f"{{{split(element.tag)[0]}}}Topic")
    if len(topics) > TOPICS_MAX:
        raise SoapFault("Sender", f"a registration may name {TOPICS_MAX} topics")
    return messages.RegisterPublisher(
        publisher=_reference(envelope, element, "PublisherReference"),
        topics=tuple(read_expression(topic) for topic in topics),
        demand=_demand(_child(element, "Demand")),
        termination=None if termination is None else read_termination(termination),
    )


def _demand(element: Element | None) -> bool:
    text = text_of(element)
    if text not in _TRUTHS:
        raise SoapFault("Sender", f"Demand must be true or false, not {text[:40]!r}")
    return _TRUTHS[text]


def _registered(envelope: Envelope) -> messages.RegisterPublisherResponse:
    element = envelope.message
    registration = _reference(envelope, element, "PublisherRegistrationReference")
    if registration is None:
        raise SoapFault("Sender", "the answer has no PublisherRegistrationReference")
    return messages.RegisterPublisherResponse(
        registration, _reference(envelope, element, "ConsumerReference")
    )


def _reference(envelope: Envelope, element: Element, name: str) -> EndpointReference | None:
    child = _child(element, name)
    return None if child is None else read_epr(envelope, child)


def _child(element: Element, name: str) -> Element | None:
    """The child of this name; some writers put it into another namespace of the same family."""
    return next((child for child in elements(element) if split(child.tag)[1] == name), None)
