"""Subscription: who wants what, sent where, until when. A message box has a sink that is pulled."""

from __future__ import annotations

from enum import Enum

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.event.filter import Filter

BLACKBOARD = "blackboard"  # a mode of delivery: concept-value pairs, those asked for alone


class State(Enum):
    """What a subscription does now."""

    PENDING = "pending"  # the sink has not yet said that it wants events
    ACTIVE = "active"
    PAUSED = "paused"


class Kind(Enum):
    """How events leave: pushed to a sink, fetched from a box, or sent to another broker."""

    PUSH = "push"
    BOX = "box"
    LINK = "link"  # to a neighbour in the overlay, by its link


class SinkCredential(msgspec.Struct, frozen=True):
    """What a sink wants to see with each request: its kind, which is shown, and the line of the
    request, which is sealed from the moment it was read and opened only to be sent."""

    kind: str  # bearer, basic or header
    sealed: str


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a subscriber may set about delivery; `config` in the JSON of the API."""

    mode: str = "binary"  # or structured, where batch is 1; or blackboard
    batch: int = 1  # events in one POST; more than one makes it a CloudEvents batch
    secret: str | None = None  # Standard Webhooks signing secret, sealed, never shown again
    credential: SinkCredential | None = None
    attempts: int | None = None  # answered refusals before an event is a dead letter
    timeout_s: float | None = None  # how long the sink may take to answer
    backlog: int | None = None  # waiting events kept; the oldest are dropped past it, and counted
    backlog_age_s: float | None = None  # how old a waiting event may become before it is dropped


class SoapTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How notifications are written for a Web-services consumer: as in its subscription.

    Specification, SOAP version and addressing version are independent of each other.
    """

    spec: str  # wse04, wse11, wsn13, wsn12 or wsn10
    soap: str = "1.1"
    wsa: str = ""  # the addressing namespace; without one no addressing headers are sent
    form: str = "wrapped"  # wrapped, raw, acked (PushWithAck), events (WS-Management), pull
    references: str = ""  # header blocks for every message to the consumer, ready to send
    manager: str = ""  # where the subscription is managed: goes into references we send
    end_to: str | None = None  # who is notified when it ends before its time
    end_references: str = ""
    filter_xml: str = ""  # as it was asked for, to show it as a resource property
    box: bool = False  # its consumer is a message box of this broker
    reliable: str = ""  # the WS-ReliableMessaging namespace, if its rules were asked for
    bookmarks: bool = False  # every message says how far it goes (WS-Management)
    heartbeat_s: float | None = None
    expires_as: str = "duration"  # how its times are written; or dateTime, milliseconds


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who made something, as it is kept with it: that decides what it gets from then on."""

    name: str
    groups: tuple[str, ...] = ()  # those that the credential named
    credential: str = ""  # its key, as in token/4f2a; empty without one
    is_internal: bool = False  # the broker itself
    entity_id: str = ""  # of its key, if it has proved to have one


SOMEBODY = Owner("anonymous")
"""Of what is there, and of which nobody knows who made it."""


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as it is kept: everything but its place in the log."""

    id: str
    kind: Kind
    sink: str | None = None
    filters: msgspec.Raw = msgspec.Raw(b"[]")  # as the subscriber wrote them, to show them again
    config: Config = Config()
    created_ns: int = 0
    expires_ns: int | None = None
    state: State = State.ACTIVE
    reason: str | None = None  # why it is pending or paused, if the broker decided so
    rate_per_minute: int | None = None  # what the sink allowed in its handshake
    soap: SoapTerms | None = None  # of one that was made by SOAP
    neighbour: str | None = None  # of a link: the id of the broker at its other end
    owner: Owner | None = None  # None: somebody who had not signed in


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks to change of a subscription; what is left out stays."""

    state: State | None = None
    expires_ns: int | UnsetType | None = UNSET
    filters: msgspec.Raw | None = None
    filter: Filter | None = None  # the same, ready to use
    sink: str | None = None
    config: Config | None = None
    owner: Owner | None = None  # whose it is from now on, or by which credential
    is_there: bool = False  # it was its own sink that asked: no need to wait with the next try


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Subscription).decode


def definition(subscription: Subscription) -> bytes:
    """The stored form."""
    return _encode(subscription)


def from_definition(data: bytes) -> Subscription:
    """A subscription from its stored form."""
    return _decode(data)
