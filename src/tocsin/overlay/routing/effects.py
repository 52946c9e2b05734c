"""What a router asks of whoever runs it, in the order in which it is to be done."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.errors import TocsinError
from tocsin.event.filter import Filter
from tocsin.wire.link.messages import Message

EntryKey = tuple[str, str]
"""(origin, id): the broker that a subscription or advertisement was made at, and its id there."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send the message on this connection."""

    link: int
    message: Message


@dataclass(frozen=True, slots=True)
class PieceSent:
    """The tables go on: ask for the next piece (`Router.send_next_piece`) once this connection has
    taken what was sent."""

    link: int


@dataclass(frozen=True, slots=True)
class CloseLink:
    """Close this connection once what was sent has gone out. The router has forgotten it.

    The error says why the link cannot be; there is none if another peer is used instead.
    """

    link: int
    error: TocsinError | None


@dataclass(frozen=True, slots=True)
class NeighbourUp:
    """The neighbour is connected, and its tables are complete: events may be sent to it.

    Another `log` than before: it lost its data, and has none of the events that it acknowledged.
    """

    neighbour: str
    link: int
    log: str


@dataclass(frozen=True, slots=True)
class NeighbourDown:
    """The neighbour is not connected any more. What it asked for is kept for it in the log."""

    neighbour: str


@dataclass(frozen=True, slots=True)
class NeighbourFilter:
    """What the neighbour wants has changed: events that pass any of its filters."""

    neighbour: str
    added: dict[EntryKey, Filter]
    removed: tuple[EntryKey, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionMoved:
    """A subscription that was reached through one neighbour is reached through another.

    What the log still holds of it for the neighbour before, from its cursor on, is to be sent
    through the one after, addressed to the origin: the brokers between may have it already.
    """

    key: EntryKey
    filter: Filter
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Began:
    """A subscription made at this broker holds at that broker from now on."""

    subscription: str
    broker: str


@dataclass(frozen=True, slots=True)
class NeighbourForgotten:
    """Nothing is kept for this neighbour any more: drop its cursor."""

    neighbour: str


@dataclass(frozen=True, slots=True)
class EntryIgnored:
    """The neighbour sent an entry that is not routed: it is invalid, or a table is full."""

    neighbour: str
    error: TocsinError


@dataclass(frozen=True, slots=True)
class Save:
    """Keep this row with the log, or remove it; all rows are given to the router after a start."""

    key: str
    value: bytes | None


Effect = (
    Send
    | PieceSent
    | CloseLink
    | NeighbourUp
    | NeighbourDown
    | NeighbourFilter
    | SubscriptionMoved
    | Began
    | NeighbourForgotten
    | EntryIgnored
    | Save
)
