"""Stored and Batch: an event in the log, and what one transaction of the log changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tocsin.event.event import Event


class Stored(msgspec.Struct, eq=False, repr_omit_defaults=True):
    """An event with its place in the log, and the bytes that dialects made of it.

    What is rendered is a cache: filled by the dialect that first needs it, shared by every
    subscriber after that, and no part of what makes two of these equal.
    """

    seq: int
    received_ns: int
    event: Event
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
        mine = (self.seq, self.received_ns, self.event)
        return mine == (other.seq, other.received_ns, other.event)


@dataclass(slots=True)
class Batch:
    """One transaction of the log: all of it is kept, or nothing.

    Definitions of subscriptions, records of dead letters and what services keep are bytes that the
    log does not look into; None removes one.
    """

    events: list[Stored] = field(default_factory=list)
    """Ascending, without a gap, and going on where the log ends."""
    events_bytes: int = 0
    """About how much memory they hold."""
    subscriptions: dict[str, bytes | None] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    """How far each subscription has come. Removing the subscription removes its cursor."""
    dead: dict[str, bytes | None] = field(default_factory=dict)
    kept: dict[str, bytes | None] = field(default_factory=dict)
    trim_to: int = 0
    """Events up to this one may go; the log takes a bounded number of them per transaction."""

    def is_empty(self) -> bool:
        changes = self.events or self.subscriptions or self.cursors or self.dead or self.kept
        return not (changes or self.trim_to)
