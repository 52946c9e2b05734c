"""WS-BrokeredNotification written: the body of a message, for the version of a peer."""

from __future__ import annotations

from tocsin.wire.wsn.write import (
    element,
    write_expression,
    write_initial_termination,
    write_reference,
)
from tocsin.wire.wsn_brokered import messages


def write(message: messages.Message, spec: str, wsa: str) -> bytes:
    """The body's element."""
    namespace = messages.NAMESPACES[spec]
    match message:
        case messages.RegisterPublisher():
            return element(messages.REGISTER, namespace, _register(message, namespace, wsa))
        case messages.RegisterPublisherResponse(registration, consumer):
            inside = write_reference("PublisherRegistrationReference", registration, wsa)
            if consumer is not None and spec == "wsn13":
                inside += write_reference("ConsumerReference", consumer, wsa)
            return element(f"{messages.REGISTER}Response", namespace, inside)
        case messages.DestroyRegistration():
            return element(messages.DESTROY, namespace, b"")
        case messages.DestroyRegistrationResponse():
            return element(f"{messages.DESTROY}Response", namespace, b"")


def _register(message: messages.RegisterPublisher, namespace: str, wsa: str) -> bytes:
    out = b""
    if message.publisher is not None:
        out += write_reference("PublisherReference", message.publisher, wsa)
    for topic in message.topics:
        out += write_expression("Topic", topic, namespace)
    out += b"<n:Demand>%b</n:Demand>" % (b"true" if message.demand else b"false")
    return out + write_initial_termination(message.termination)
