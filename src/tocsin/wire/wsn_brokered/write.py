"""WS-BrokeredNotification written: the body of a message, for the version of a peer."""

from __future__ import annotations

from tocsin.wire.soap.element import element
from tocsin.wire.wsn.write import (
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
            return element("n", namespace, messages.REGISTER, _register(message, namespace, wsa))
        case messages.RegisterPublisherResponse(registration, consumer):
            inside = write_reference("PublisherRegistrationReference", registration, wsa)
            if consumer is not None and spec == "wsn13":
                inside += write_reference("ConsumerReference", consumer, wsa)
            return element("n", namespace, f"{messages.REGISTER}Response", inside)
        case messages.DestroyRegistration():
            return element("n", namespace, messages.DESTROY)
        case messages.DestroyRegistrationResponse():
            return element("n", namespace, f"{messages.DESTROY}Response")


def _register(message: messages.RegisterPublisher, namespace: str, wsa: str) -> bytes:
    out = b""
    if message.publisher is not None:
        out += write_reference("PublisherReference", message.publisher, wsa)
    for topic in message.topics:
        out += write_expression("Topic", topic, namespace)
    out += b"<n:Demand>%b</n:Demand>" % (b"true" if message.demand else b"false")
    return out + write_initial_termination(message.termination)
