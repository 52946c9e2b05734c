"""What may be subscribed to, by whom, and what the reply says of it."""

from __future__ import annotations

from tocsin.access.decision import Action
from tocsin.access.resources import filter_resource
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.types import SeenTypes
from tocsin.errors import BadMessage, NoSuchSubscription
from tocsin.event.filter import Filter
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER
from tocsin.wire.gma.normal import topic_of

_SERVICE = internal("performance")


def check_caller(
    port: BrokerPort,
    caller: Session,
    parameters: m.Parameters,
    filter: Filter | None,
    is_known: bool,
) -> None:
    """Raise NotAllowed if the caller may be neither what it is nor what it may turn out to be.

    A producer has no filter; whose role is not known may be one. Later each event, and the stream
    of them, is decided by the port.
    """
    if filter is not None:
        resource = filter_resource(filter)
        if port.may(caller, Action.SUBSCRIBE, resource, filter):
            return  # which the port decides, once, when the stream is opened
        if is_known:
            port.check(caller, Action.SUBSCRIBE, resource, filter)
    port.check(caller, Action.PUBLISH, topic_of(parameters))


def refuse_own_events(port: BrokerPort, acknowledge: str) -> None:
    """A subscription of this broker that pushes to its own listener would go round for ever."""
    try:
        port.view(_SERVICE, acknowledge)
    except NoSuchSubscription:
        return
    raise BadMessage(
        "these events come from this broker itself",
        remedy="Let the subscription push to the consumer's own address.",
    )


def refuse_consumer(role: str | None) -> None:
    """Nothing can be sent to this peer: a consumer has to come another way."""
    if role == CONSUMER:
        raise BadMessage(
            "events cannot come back this way",
            remedy="POST to /gma?role=consumer, which answers with a stream of frames, or "
            "subscribe by TCP.",
        )


def detail(
    port: BrokerPort, caller: Session, types: SeenTypes, parameters: m.Parameters
) -> str | None:
    """What a consumer should know: how it was understood, and that there is nothing yet, if it may
    know of every type."""
    details = [_narrowed(parameters)]
    if port.readable(caller, "types") is None and not types.has(parameters.name.type):
        details.append(f"no event {parameters.name} has arrived since the broker started")
    return "; ".join(filter(None, details)) or None


def agreed_options(request: m.SubscribeRequest, is_producer: bool, head: int) -> m.Options | None:
    """What of our own extensions is understood; nothing to who asked for none.

    A consumer that wants to know where events are in the log learns where its subscription begins:
    there it can go on if the connection breaks before the first event.
    """
    asked = request.options or m.Options()
    if is_producer:
        return (asked.acknowledge and m.Options(acknowledge=asked.acknowledge)) or None
    begins = head if asked.after is None else min(asked.after, head)
    agreed = m.Options(
        after=begins if asked.context else None,
        context=asked.context,
        filtered=request.filter is not None,
    )
    return agreed if agreed != m.Options() else None


def _narrowed(parameters: m.Parameters) -> str | None:
    """How parameters are understood that this side makes no events from."""
    equals = [
        f"{each.name} is {each.value}" for each in parameters.elements if each.name != "Period"
    ]
    return f"only events whose {' and '.join(equals)}" if equals else None
