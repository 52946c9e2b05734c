"""WS-BrokeredNotification written: the body of a message, for the version of a peer."""

from __future__ import annotations

from tocsin.wire.soap.addressing import EndpointReference, epr_content
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import XSI
from tocsin.wire.wsn.messages import Never
from tocsin.wire.wsn.write import element, write_expression
from tocsin.wire.wsn_brokered import messages


def write(message: messages.Message, spec: str, wsa: str) -> bytes:
    """The body's element."""
    namespace = messages.NAMESPACES[spec]
    match message:
        case messages.RegisterPublisher():
            return element(messages.REGISTER, namespace, _register(message, namespace, wsa))
        case messages.RegisterPublisherResponse(registration, consumer):
            inside = _reference("PublisherRegistrationReference", registration, wsa)
            if consumer is not None and spec == "wsn13":
                inside += _reference("ConsumerReference", consumer, wsa)
            return element(f"{messages.REGISTER}Response", namespace, inside)
        case messages.DestroyRegistration():
            return element(messages.DESTROY, namespace, b"")
        case messages.DestroyRegistrationResponse():
            return element(f"{messages.DESTROY}Response", namespace, b"")


def _register(message: messages.RegisterPublisher, namespace: str, wsa: str) -> bytes:
    out = b""
    if message.publisher is not None:
        out += _reference("PublisherReference", message.publisher, wsa)
    for topic in message.topics:
        out += write_expression("Topic", topic, namespace)
    out += b"<n:Demand>%b</n:Demand>" % (b"true" if message.demand else b"false")
    if isinstance(message.termination, Never):
        out += b'<n:InitialTerminationTime xmlns:xsi="%b" xsi:nil="true"/>' % XSI.encode()
    elif message.termination is not None:
        text = escaped(message.termination)
        out += b"<n:InitialTerminationTime>%b</n:InitialTerminationTime>" % text
    return out


def _reference(name: str, reference: EndpointReference, wsa: str) -> bytes:
    return b"<n:%b>%b</n:%b>" % (name.encode(), epr_content(reference, wsa), name.encode())
