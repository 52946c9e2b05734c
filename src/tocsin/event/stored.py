"""Stored, Arrival, Append, StateChange: an event in the log, and what a commit brings."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tocsin.event.event import Event


class Arrival(msgspec.Struct, frozen=True, array_like=True):
    """How an event came here from another broker of the overlay.

    The order of the fields is the stored form: add new ones at the end, with a default.
    """

    origin: str  # the id of the broker where it was published,
    origin_log: str  # of its log,
    number: int  # and its number there
    received_ns: int  # there
    neighbour: str  # the id of the broker that sent it here
    hops: int  # how many links it has crossed


RepeatKey = tuple[str, str | int]


def repeat_key(event: Event, arrival: Arrival | None) -> RepeatKey:
    """What a log knows a repeat by: the source and id of what is published here, as a publisher
    sends both again; the log and the number there of what another broker accepted first, since
    publishers of several brokers may give different events the same source and id."""
    if arrival is None:
        return event.source, event.id
    return arrival.origin_log, arrival.number


class Stored(msgspec.Struct, eq=False, repr_omit_defaults=True):
    """An event with its place in the log, and the bytes that dialects made of it.

    What is rendered is a cache: filled by the dialect that first needs it, shared by every
    subscriber after that, and no part of what makes two of these equal.
    """

    seq: int
    received_ns: int
    event: Event
    arrival: Arrival | None = None  # if it was not published here
    structured: bytes | None = None
    binary: tuple[bytes, bytes] | None = None  # the block of headers, and the body
    performance: bytes | None = None  # as a performance event: its one element
    pairs: dict[str, str] | None = None  # as a message of the blackboard: its pairs,
    messages: dict[frozenset[str] | None, bytes] | None = None  # and the bytes by profile
    weight: int = 0  # about how many bytes of memory it holds, once somebody has asked

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stored):
            return NotImplemented
        mine = (self.seq, self.received_ns, self.event, self.arrival)
        return mine == (other.seq, other.received_ns, other.event, other.arrival)


class Append(msgspec.Struct):
    """What publishers offered since the last commit. The log numbers it when it is applied."""

    offers: list[list[Event]] = msgspec.field(default_factory=list)
    """One for each request, in the order they came: all events of an offer are kept, or none."""
    received_ns: int = 0
    count: int = 0  # events in all
    bytes: int = 0  # about how much memory they hold
    arrivals: dict[int, list[Arrival]] = msgspec.field(default_factory=dict)
    """Of offers that another broker made, by their place: one for each event."""


START_AT_END = (1 << 63) - 1
"""A subscription begins after the last event of the commit that brings it."""


@dataclass(slots=True, kw_only=True)
class StateChange:
    """What one commit changes beside the events.

    Definitions of subscriptions, records of dead letters and the state of services are bytes that
    a store does not look into; None removes one.
    """

    subscriptions: dict[str, bytes | None] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    """The cursors of new subscriptions: this event, or the log's last if that is earlier."""
    cursors: dict[str, int] = field(default_factory=dict)
    """How far each subscription has come. Removing the subscription removes its cursor."""
    dead: dict[str, bytes | None] = field(default_factory=dict)
    service_state: dict[str, bytes | None] = field(default_factory=dict)
    trim_to: int = 0
    """Events up to this one may go; the log may take a bounded number of them per commit."""

    def is_empty(self) -> bool:
        rows = self.subscriptions or self.starts or self.cursors or self.dead or self.service_state
        return not (rows or self.trim_to)


@dataclass(slots=True)
class Batch(StateChange):
    """Events that have their numbers already, and changes: what a copy of a log is given."""

    events: list[Stored] = field(default_factory=list)
    """Ascending, without a gap, and going on where the log ends."""
