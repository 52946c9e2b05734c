"""What a broker that discovers resources wants done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tocsin.errors import TocsinError
from tocsin.event.event import Value
from tocsin.wire.link.discovery_messages import DiscoveryMessage


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as an answer shows it. `hops` is the number of links to its broker; `ranges` are
    those that a static one advertises, in words."""

    id: str
    broker: str
    attributes: Mapping[str, Value]
    as_of_ns: int
    adv_id: str
    kind: str = ""
    address: str = ""
    hops: int = 0
    ranges: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Summary:
    """How an answer came about.

    `brokers` have read their resources for it, or for the earlier request that it shared.
    `messages` went between brokers for it. What it says was true at `oldest_ns` or later.
    `incomplete` says what is missing and why, `why_empty` why nothing could be found.
    """

    brokers: tuple[str, ...]
    messages: int
    oldest_ns: int
    shared: bool = False
    incomplete: str = ""
    why_empty: str = ""
    stopped_early: bool = False
    found: int = 0


class Change(StrEnum):
    """What happened to a resource that a continuous request watches."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Send:
    """To a neighbour, over one ordered channel."""

    neighbour: str
    message: DiscoveryMessage


@dataclass(frozen=True, slots=True)
class SendDirect:
    """To a broker that may be no neighbour, by a connection of its own; may overtake others."""

    broker: str
    message: DiscoveryMessage
    address: str = ""  # where it takes connections


@dataclass(frozen=True, slots=True)
class Answered:
    """Results for a request of this broker's client; more may follow until it is finished."""

    request_id: str
    results: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The request has ended; of a continuous one, only if it was cancelled or its lease ended."""

    request_id: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Current:
    """A continuous request was told of all that matched when it was made."""

    request_id: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Notice:
    """A continuous request's resource came, changed or went."""

    request_id: str
    change: Change
    resource: Resource


@dataclass(frozen=True, slots=True)
class Ignored:
    """An advertisement or a request of the neighbour was not taken."""

    neighbour: str
    error: TocsinError


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was done for this request or resource."""

    id: str
    error: TocsinError


Effect = Send | SendDirect | Answered | Finished | Current | Notice | Ignored | Refused
