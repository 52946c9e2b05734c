"""What a neighbour needs rights for, beside the link: the filters that come over it, resources, and
control messages.

It speaks for the brokers behind it too, and for their clients: each broker asks for what its own
neighbour passes on.
"""

from __future__ import annotations

from tocsin.access.decision import Action
from tocsin.access.resources import filter_resource
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.event.filter import Filter
from tocsin.overlay.discovery.requests import ModelType
from tocsin.overlay.routing.state import SUBSCRIPTIONS
from tocsin.services.link.connection import Connection
from tocsin.wire.link.discovery_messages import (
    Advertise,
    Discover,
    DiscoveryMessage,
    Unadvertise,
    Update,
)
from tocsin.wire.link.messages import Control

_CONTINUOUS = [each for each in ModelType if each.is_continuous]


def session_of(connection: Connection) -> Session:
    """Who is at the other end."""
    return connection.transport.session


def check_link(port: BrokerPort, connection: Connection, named: str = "") -> None:
    """Raise NotAllowed for who may not be linked as this broker, or as the one it is by now."""
    port.check(session_of(connection), Action.MANAGE, f"link/{named or connection.broker}")


def check_again(port: BrokerPort, connection: Connection) -> bool:
    """The same for who is linked, if its rights are others than when it was last looked at: a right
    that has ended ends the link, also of a neighbour that sends nothing. True if they are."""
    permit = port.access.session_permit(session_of(connection), Action.SUBSCRIBE)
    if not connection.broker or permit is None or permit.version == connection.rights_version:
        return False
    connection.rights_version = permit.version
    check_link(port, connection)
    return True


def check_entry(port: BrokerPort, session: Session, table: str, filter: Filter) -> None:
    """Raise NotAllowed for a subscription whose events it may not have, and an advertisement of
    events that it may not publish."""
    if table == SUBSCRIPTIONS:
        port.check_filter(session, filter)
    else:
        port.check(session, Action.PUBLISH, filter_resource(filter), filter)


def check_control(port: BrokerPort, session: Session, message: Control) -> None:
    """Raise NotAllowed for a message that it may not send."""
    port.check(session, Action.PUBLISH, message.topic)


def check_tdns(port: BrokerPort, session: Session, broker: str) -> None:
    """Raise NotAllowed for who may not speak of the topic discovery nodes of this broker."""
    port.check(session, Action.MANAGE, f"tdn/{broker}")


def check_discovery(port: BrokerPort, session: Session, message: DiscoveryMessage) -> None:
    """Raise NotAllowed for what a client may not ask of this broker either. Answers, and the ends
    of requests, were asked for."""
    match message:
        case Advertise() | Unadvertise() | Update():
            port.check(session, Action.MANAGE, f"resource/{message.resource_id}")
        case Discover(model=model):
            is_continuous = model in _CONTINUOUS
            port.check(session, Action.SUBSCRIBE if is_continuous else Action.READ, "resource/*")
        case _:
            pass
