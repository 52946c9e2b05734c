"""The messages of WS-Eventing, as both sides see them. `spec` is wse04 or wse11."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import NAMESPACE_OF, WSE04, WSE11, WSMAN_URI
from tocsin.wire.wsn.messages import Expression

PUSH: Final = f"{WSE04}/DeliveryModes/Push"
PUSH_WITH_ACK: Final = f"{WSMAN_URI}/PushWithAck"
EVENTS: Final = f"{WSMAN_URI}/Events"
PULL: Final = f"{WSMAN_URI}/Pull"
MODES: Final = {PUSH: "raw", PUSH_WITH_ACK: "acked", EVENTS: "events", PULL: "pull"}

UNWRAP: Final = f"{WSE11}/DeliveryFormats/Unwrap"
WRAP: Final = f"{WSE11}/DeliveryFormats/Wrap"
FORMATS: Final = {UNWRAP: "raw", WRAP: "wrapped"}

WRAPPED_ACTION: Final = f"{WSE11}/WrappedSinkPortType/NotifyEvent"
EVENTS_ACTION: Final = EVENTS
ACK_ACTION: Final = f"{WSMAN_URI}/Ack"
EARLIEST: Final = f"{WSMAN_URI}/bookmark/earliest"
HEARTBEAT_ACTION: Final = f"{WSMAN_URI}/Heartbeat"

Namespaces = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """What a subscriber wants: an expression, or the original's pair of topic and content."""

    expression: Expression
    topic: Expression | None = None
    content: Expression | None = None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Without `expires`: as long as possible. Times are as they were written."""

    spec: str
    notify_to: EndpointReference | None = None
    end_to: EndpointReference | None = None
    mode: str = ""  # wse04; empty is push
    format: str = ""  # wse11; empty is unwrapped
    expires: str | None = None
    best_effort: bool = False  # wse11: another time than the one asked for will do
    filter: Filter | None = None
    heartbeats: str | None = None  # WS-Management: a duration
    batch: int | None = None  # WS-Management: events in one message at most
    send_bookmarks: bool = False  # WS-Management: each delivery shall say how far it goes
    bookmark: str | None = None  # WS-Management: go on after this one; or EARLIEST
    reliable: str = ""  # the namespace of WS-ReliableMessaging, if notifications shall follow it


@dataclass(frozen=True, slots=True)
class SubscribeResponse:
    """Granted until `expires`; `context` is where to pull, for one who pulls."""

    spec: str
    manager: EndpointReference
    expires: str
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    spec: str
    expires: str | None = None
    best_effort: bool = False


@dataclass(frozen=True, slots=True)
class RenewResponse:
    spec: str
    expires: str | None = None


@dataclass(frozen=True, slots=True)
class GetStatus:
    spec: str


@dataclass(frozen=True, slots=True)
class GetStatusResponse:
    spec: str
    expires: str | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    spec: str


@dataclass(frozen=True, slots=True)
class UnsubscribeResponse:
    """In 2004/08 there is nothing of it but its action."""

    spec: str


@dataclass(frozen=True, slots=True)
class SubscriptionEnd:
    """`status` is the last word of the URI: DeliveryFailure, SourceShuttingDown, ..."""

    spec: str
    status: str
    reason: str = ""
    manager: EndpointReference | None = None  # wse04 only


@dataclass(frozen=True, slots=True)
class Notify:
    """A wrapped notification of wse11. `payload` is one element, ready to send."""

    payload: bytes
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """WS-Management's batch: each event with its action."""

    events: tuple[Notify, ...]


@dataclass(frozen=True, slots=True)
class Pull:
    """WS-Enumeration: fetch what waits."""

    context: str
    elements_max: int | None = None
    characters_max: int | None = None
    time_max: str | None = None  # a duration


@dataclass(frozen=True, slots=True)
class PullResponse:
    """`context` is the one to pull with next; `ended`: there will be no next."""

    items: tuple[bytes, ...]
    context: str | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """WS-Enumeration: nobody will pull here any more."""

    context: str


Message = (
    Subscribe
    | SubscribeResponse
    | Renew
    | RenewResponse
    | GetStatus
    | GetStatusResponse
    | Unsubscribe
    | UnsubscribeResponse
    | SubscriptionEnd
    | Notify
    | Events
    | Pull
    | PullResponse
    | Release
)


def status_uri(spec: str, status: str) -> str:
    """The whole name of why a subscription ended."""
    return f"{NAMESPACE_OF[spec]}/{status}"
