"""The messages of WS-BaseNotification, the same types for all its versions.

Version 1.2 renews and ends subscriptions by WS-ResourceLifetime and 1.0 spells its names in its own
way; both mean the same messages, and `read` and `write` know the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.topics import TopicName

Name = tuple[str, str]
"""Namespace and local name of an element."""


class Never(Enum):
    """The end of what has no end; on the wire an element that is nil."""

    NEVER = "never"


NEVER: Final = Never.NEVER


@dataclass(frozen=True, slots=True)
class Expression:
    """A topic expression or a query, with the namespaces that its prefixes stand for."""

    text: str
    dialect: str = ""
    namespaces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Who wants what. `termination` is as it was written; None leaves it to the producer."""

    consumer: EndpointReference
    topics: tuple[Expression, ...] = ()
    contents: tuple[Expression, ...] = ()  # MessageContent; Selector before 1.3
    properties: tuple[Expression, ...] = ()  # ProducerProperties; Precondition before 1.3
    termination: str | Never | None = None
    raw: bool = False
    reliable: str = ""  # the namespace of WS-ReliableMessaging, if the policy asks for it
    unknown_filters: tuple[Name, ...] = ()
    unknown_policies: tuple[Name, ...] = ()
    filter_xml: bytes = field(default=b"", compare=False)  # as it was sent, to show it again


@dataclass(frozen=True, slots=True)
class SubscribeResponse:
    """The subscription, and when it ends by whose clock, where the producer says so."""

    reference: EndpointReference
    current_ns: int | None = None
    termination_ns: int | Never | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    termination: str | Never | None


@dataclass(frozen=True, slots=True)
class RenewResponse:
    termination_ns: int | Never | None
    current_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    pass


@dataclass(frozen=True, slots=True)
class UnsubscribeResponse:
    pass


@dataclass(frozen=True, slots=True)
class PauseSubscription:
    pass


@dataclass(frozen=True, slots=True)
class PauseSubscriptionResponse:
    pass


@dataclass(frozen=True, slots=True)
class ResumeSubscription:
    pass


@dataclass(frozen=True, slots=True)
class ResumeSubscriptionResponse:
    pass


@dataclass(frozen=True, slots=True)
class GetCurrentMessage:
    topic: Expression


@dataclass(frozen=True, slots=True)
class GetCurrentMessageResponse:
    payload: bytes | None


@dataclass(frozen=True, slots=True)
class NotificationMessage:
    """One notification; `payload` is one element, as it was sent."""

    payload: bytes
    topic: TopicName | None = None
    producer: EndpointReference | None = None
    subscription: EndpointReference | None = None


@dataclass(frozen=True, slots=True)
class Notify:
    messages: tuple[NotificationMessage, ...]


Request = (
    Subscribe | Renew | Unsubscribe | PauseSubscription | ResumeSubscription | GetCurrentMessage
)
Response = (
    SubscribeResponse
    | RenewResponse
    | UnsubscribeResponse
    | PauseSubscriptionResponse
    | ResumeSubscriptionResponse
    | GetCurrentMessageResponse
)
Message = Request | Response | Notify
