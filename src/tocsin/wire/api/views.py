"""The answers of the API as types, which are also the schemas in /openapi.json.

Times are RFC 3339. Events are structured CloudEvents exactly as they were published; their places
in the log stand beside them, in `sequences`, so that an event reads the same wherever it is read.
"""

from __future__ import annotations

from typing import Literal

import msgspec

StateName = Literal["pending", "active", "paused"]
SinkState = Literal["none", "ok", "unconsented", "busy", "failing", "unreachable"]


class CloudEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A CloudEvent in the JSON format; extension attributes are further members."""

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    topic: str | msgspec.UnsetType = msgspec.UNSET
    time: str | msgspec.UnsetType = msgspec.UNSET
    subject: str | msgspec.UnsetType = msgspec.UNSET
    datacontenttype: str | msgspec.UnsetType = msgspec.UNSET
    dataschema: str | msgspec.UnsetType = msgspec.UNSET
    data_base64: str | msgspec.UnsetType = msgspec.UNSET


class PublishResult(msgspec.Struct, frozen=True):
    """So many events are on disk, from sequence number `first` to `last`."""

    accepted: int
    first: int
    last: int
    duplicates: int | msgspec.UnsetType = msgspec.UNSET


class SignatureInfo(msgspec.Struct, frozen=True):
    """Who signed an event; `problem` says why the signature does not hold, and is null if it does.
    The name counts if an authority of the site has certified it."""

    holds: bool
    eid: str | None = None
    name: str | None = None
    certified: bool = False
    problem: str | None = None


class EventsPage(msgspec.Struct, frozen=True):
    """A part of the log. Pass `next` as `after` to go on; `corrupt` could not be read.

    `more` is true if the log goes on after `next`. A filter looks at a bounded part of the log, so
    that there may be no events here and more all the same. `signatures`, if they were asked for,
    are in the order of the events: null for one that is not signed.
    """

    events: list[msgspec.Raw]
    sequences: list[int]
    next: int
    more: bool
    corrupt: list[int] | msgspec.UnsetType = msgspec.UNSET
    signatures: list[SignatureInfo | None] | msgspec.UnsetType = msgspec.UNSET


class MessagesPulled(msgspec.Struct, frozen=True):
    """What was fetched from a box. Pass `next` as `ack` with the next call to release it."""

    events: list[msgspec.Raw]
    sequences: list[int]
    next: str
    dropped: int
    withheld: int | msgspec.UnsetType = msgspec.UNSET  # for want of a right; for who may know


class ConfigInfo(msgspec.Struct, frozen=True):
    """What a subscriber set about delivery. Of a secret, only whether there is one; of a
    credential, only its kind."""

    mode: str  # binary, structured or blackboard
    batch: int
    secret: bool
    credential: Literal["bearer", "basic", "header"] | None
    attempts: int | None
    timeout_s: float | None
    backlog: int | None
    backlog_age_s: float | None


class SubscriptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription that pushes: what was asked for, and how it fares."""

    id: str
    owner: str | None  # the principal that made it, or was given it; null of somebody unknown
    sink: str
    protocol: Literal["HTTP", "GMA"] = "HTTP"
    dialect: str  # of its messages: CloudEvents, a Web-services specification, GMA
    filters: msgspec.Raw
    config: ConfigInfo
    state: StateName
    reason: str | None
    created: str
    expires: str | None
    cursor: int
    waiting: int
    behind: int
    lagging: bool
    delivered: int
    failed_attempts: int
    dead: int
    dropped: int
    withheld: int | None  # for want of a right; null for who may not know
    last_error: str | None
    last_delivered: str | None
    next_attempt: str | None
    sink_state: SinkState
    reached: dict[str, str] | msgspec.UnsetType = msgspec.UNSET  # brokers it holds at, since when


class BoxInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A message box: what goes in, where it is fetched, and how much waits."""

    id: str
    owner: str | None
    messages: str
    filters: msgspec.Raw
    config: ConfigInfo
    state: StateName
    created: str
    expires: str | None
    cursor: int
    waiting: int
    behind: int
    lagging: bool
    dropped: int
    withheld: int | None
    reached: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class SubscriptionsPage(msgspec.Struct, frozen=True):
    """Some subscriptions of `total`. Pass `next` as `after` to go on; null is the end."""

    subscriptions: list[SubscriptionInfo]
    next: str | None
    total: int


class BoxesPage(msgspec.Struct, frozen=True):
    """Some boxes of `total`. Pass `next` as `after` to go on; null is the end."""

    boxes: list[BoxInfo]
    next: str | None
    total: int


class AttemptInfo(msgspec.Struct, frozen=True):
    """One try to deliver, and what came of it."""

    at: str
    result: str
    status: int | None
    excerpt: str


class DeadLetterInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An event that one subscription did not get, and why."""

    id: str
    subscription: str
    sink: str
    sequence: int
    received: str
    given_up: str
    reason: str
    attempts: list[AttemptInfo]
    event: msgspec.Raw


class DeadLettersPage(msgspec.Struct, frozen=True):
    """Some dead letters. Pass `next` as `after` to go on; null is the end."""

    deadletters: list[DeadLetterInfo]
    next: str | None


class RedriveResult(msgspec.Struct, frozen=True):
    """The sink took the event this time, and the dead letter is gone."""

    redriven: str


class HealthInfo(msgspec.Struct, frozen=True):
    """Whether it is well, and what speaks against it."""

    ok: bool
    reasons: list[str]


class ClockInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The broker's time, and whether it believes the clock of its machine."""

    time: str
    """By which leases end and events are stamped."""
    machine: str
    """What the machine's clock says."""
    jump_s: float
    """How far that is from where it should be, by the last time in the log and what passed."""
    doubt: str | None
    """ahead, behind or set: why it is not believed."""
    problem: str | None
