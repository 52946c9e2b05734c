"""WS-BaseNotification written: the body of a message, in the version and addressing of a peer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tocsin.errors import BadSubscription
from tocsin.event.instant import rfc3339
from tocsin.wire.soap.addressing import EndpointReference, epr_content
from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import escaped, quoted
from tocsin.wire.soap.names import NAMESPACE_OF, WSRM11, WSRMP10, WSRMP11, XSI
from tocsin.wire.soap.topics import TopicName, dialect_uri
from tocsin.wire.wsn import messages
from tocsin.wire.wsn.operations import WORDINGS, Operation, OperationNames

OPERATION_OF: Final[dict[type[messages.Message], Operation]] = {
    messages.Subscribe: Operation.SUBSCRIBE,
    messages.SubscribeResponse: Operation.SUBSCRIBE,
    messages.Renew: Operation.RENEW,
    messages.RenewResponse: Operation.RENEW,
    messages.Unsubscribe: Operation.UNSUBSCRIBE,
    messages.UnsubscribeResponse: Operation.UNSUBSCRIBE,
    messages.PauseSubscription: Operation.PAUSE,
    messages.PauseSubscriptionResponse: Operation.PAUSE,
    messages.ResumeSubscription: Operation.RESUME,
    messages.ResumeSubscriptionResponse: Operation.RESUME,
    messages.GetCurrentMessage: Operation.CURRENT_MESSAGE,
    messages.GetCurrentMessageResponse: Operation.CURRENT_MESSAGE,
}


def write(message: messages.Message, spec: str, wsa: str) -> bytes:
    """The body's element; BadSubscription for what a version has no words for."""
    if isinstance(message, messages.Notify):
        return write_notify(message, spec, wsa)
    wording = WORDINGS[spec].get(OPERATION_OF[type(message)])
    if wording is None:
        raise BadSubscription(
            f"this version of WS-Notification ({spec}) has no {type(message).__name__}",
            remedy="Subscribe again instead.",
        )
    match message:
        case messages.Subscribe():
            inside = _subscribe(message, spec, wsa)
        case messages.SubscribeResponse():
            inside = _subscribe_response(message, spec, wsa)
        case messages.Renew(termination):
            name = "TerminationTime" if spec == "wsn13" else "RequestedTerminationTime"
            inside = _asked_time(name, termination)
        case messages.RenewResponse():
            inside = _renew_response(message, spec)
        case messages.GetCurrentMessage(topic):
            inside = write_expression("Topic", topic, wording.namespace)
        case messages.GetCurrentMessageResponse(payload):
            inside = payload or b""
        case _:
            inside = b""
    name = wording.request if isinstance(message, messages.Request) else wording.response
    return element("n", wording.namespace, name, inside)


def operation_names(message: messages.Request, spec: str) -> OperationNames:
    """What a version calls a request, and its actions; KeyError where it has none such."""
    return WORDINGS[spec][OPERATION_OF[type(message)]]


def write_reference(name: str, reference: EndpointReference, wsa: str) -> bytes:
    """An element with an endpoint reference, in the prefix of the message."""
    return b"<n:%b>%b</n:%b>" % (name.encode(), epr_content(reference, wsa), name.encode())


# Subscribe


def _subscribe(message: messages.Subscribe, spec: str, wsa: str) -> bytes:
    consumer = write_reference("ConsumerReference", message.consumer, wsa)
    ending = write_initial_termination(message.termination)
    if spec == "wsn13":
        return consumer + _filter(message) + ending + _policy(message, spec)
    notify = b"<n:UseNotify>%b</n:UseNotify>" % (b"false" if message.raw else b"true")
    namespace = NAMESPACE_OF[spec]
    parts = [
        _at_most_one("TopicExpression", message.topics, namespace),
        notify,
        _at_most_one("Precondition", message.properties, namespace),
        _at_most_one("Selector", message.contents, namespace),
        _policy(message, spec),
        ending,
    ]
    return consumer + b"".join(parts)


def _filter(message: messages.Subscribe) -> bytes:
    namespace = NAMESPACE_OF["wsn13"]
    inside = b"".join(
        write_expression(name, each, namespace)
        for name, expressions in (
            ("TopicExpression", message.topics),
            ("ProducerProperties", message.properties),
            ("MessageContent", message.contents),
        )
        for each in expressions
    )
    return b"<n:Filter>%b</n:Filter>" % inside if inside else b""


def _at_most_one(name: str, expressions: Sequence[messages.Expression], namespace: str) -> bytes:
    if len(expressions) > 1:
        raise BadSubscription(
            f"before version 1.3 a subscription has one {name}, not {len(expressions)}",
            remedy="Join the expressions into one, or make several subscriptions.",
        )
    return b"".join(write_expression(name, each, namespace) for each in expressions)


def write_initial_termination(termination: str | messages.Never | None) -> bytes:
    """The end that is asked for; nothing where it is left to the other side."""
    return b"" if termination is None else _asked_time("InitialTerminationTime", termination)


def _policy(message: messages.Subscribe, spec: str) -> bytes:
    inside = b"<n:UseRaw/>" if message.raw and spec == "wsn13" else b""
    if message.reliable:
        assertion = WSRMP11 if message.reliable == WSRM11 else WSRMP10
        inside += b'<rm:RMAssertion xmlns:rm="%b"/>' % assertion.encode()
    return b"<n:SubscriptionPolicy>%b</n:SubscriptionPolicy>" % inside if inside else b""


# Expressions and times


def write_expression(name: str, expression: messages.Expression, namespace: str) -> bytes:
    """An element with a dialect and the namespaces that the expression's prefixes need."""
    bindings = dict(expression.namespaces)
    own = free_prefix(bindings)
    declared = b"".join(
        b' xmlns:%b="%b"' % (prefix.encode(), quoted(uri)) for prefix, uri in bindings.items()
    )
    dialect = b' Dialect="%b"' % quoted(expression.dialect) if expression.dialect else b""
    tag = f"{own}:{name}".encode()
    return b'<%b xmlns:%b="%b"%b%b>%b</%b>' % (
        tag,
        own.encode(),
        namespace.encode(),
        declared,
        dialect,
        escaped(expression.text),
        tag,
    )


def free_prefix(taken: Iterable[str]) -> str:
    """A prefix for us that is none of these."""
    prefix, used = "n", set(taken)
    while prefix in used:
        prefix += "0"
    return prefix


def _asked_time(name: str, termination: str | messages.Never | None) -> bytes:
    if isinstance(termination, str):
        return b"<n:%b>%b</n:%b>" % (name.encode(), escaped(termination), name.encode())
    return _nil(name)


def _moment(name: str, moment: int | messages.Never | None) -> bytes:
    if isinstance(moment, int):
        return b"<n:%b>%b</n:%b>" % (name.encode(), rfc3339(moment).encode(), name.encode())
    return _nil(name)


def _nil(name: str) -> bytes:
    return b'<n:%b xmlns:xsi="%b" xsi:nil="true"/>' % (name.encode(), XSI.encode())


# Responses


def _subscribe_response(message: messages.SubscribeResponse, spec: str, wsa: str) -> bytes:
    out = write_reference("SubscriptionReference", message.reference, wsa)
    if spec != "wsn13":
        return out  # they have no place for times
    if message.current_ns is not None:
        out += _moment("CurrentTime", message.current_ns)
    if message.termination_ns is not None:
        out += _moment("TerminationTime", message.termination_ns)
    return out


def _renew_response(message: messages.RenewResponse, spec: str) -> bytes:
    # The other way round than in SubscribeResponse: the schemas have it so.
    name = "TerminationTime" if spec == "wsn13" else "NewTerminationTime"
    out = _moment(name, message.termination_ns)
    if message.current_ns is not None:
        out += _moment("CurrentTime", message.current_ns)
    return out


# Notify


def write_notify(message: messages.Notify, spec: str, wsa: str) -> bytes:
    """Notify with each of its messages; only 1.3 has a place for the subscription in them."""
    inside = b"".join(_notification(each, spec, wsa) for each in message.messages)
    return element("n", NAMESPACE_OF[spec], "Notify", inside)


def _notification(message: messages.NotificationMessage, spec: str, wsa: str) -> bytes:
    out = b""
    if message.subscription is not None and spec == "wsn13":
        out += write_reference("SubscriptionReference", message.subscription, wsa)
    if message.topic is not None:
        out += write_expression("Topic", _concrete(message.topic, spec), NAMESPACE_OF[spec])
    if message.producer is not None:
        out += write_reference("ProducerReference", message.producer, wsa)
    out += b"<n:Message>%b</n:Message>" % message.payload
    return b"<n:NotificationMessage>%b</n:NotificationMessage>" % out


def _concrete(topic: TopicName, spec: str) -> messages.Expression:
    return messages.Expression(
        topic.text, dialect_uri(spec, is_root="/" not in topic.path), topic.namespaces
    )
