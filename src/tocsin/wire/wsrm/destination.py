"""The receiving end of a sequence: each number is processed once, and in order.

What came too early is held until the numbers before it are there; what came again is known. The
state is small, frozen, and has a stored form: whoever keeps it on disk before acknowledging can
lose power at any moment.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec
from msgspec.structs import replace

from tocsin.event.subscription import Owner
from tocsin.wire.wsrm.faults import PeerVersions, closed, last_exceeded, rollover, unknown
from tocsin.wire.wsrm.messages import NUMBER_MAX, Acknowledgement, Sequence
from tocsin.wire.wsrm.ranges import NO_NUMBERS, Ranges, contains, count, highest, with_number

HELD_MAX: Final = 256  # messages of one sequence that wait for earlier ones


class Inbound(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence that somebody sends us."""

    identifier: str
    rm: str
    soap: str
    wsa: str = ""  # acknowledgements elsewhere are addressed in this version
    acks_to: str | None = None  # None: on the back channel
    acks_references: tuple[bytes, ...] = ()  # header blocks for every acknowledgement elsewhere
    expires_ns: int
    used_ns: int
    received: Ranges = NO_NUMBERS
    processed_to: int = 0  # higher numbers among the received are held
    last: int | None = None
    closed: bool = False
    owner: Owner | None = None  # who began it, if they had signed in


class Decision(Enum):
    """What to do with a message that came."""

    PROCESS = auto()
    HOLD = auto()
    REPEAT = auto()  # it is here already: acknowledge, and forget it
    NO_ROOM = auto()  # too many are held: do not acknowledge, so that it comes again


def arrive(inbound: Inbound, came: Sequence, soap: str) -> Decision:
    """Judge a message by its place; a SoapFault if it has none here."""
    to = PeerVersions(came.rm, soap)
    if came.rm != inbound.rm:
        raise unknown(to, came.identifier)
    if came.number > NUMBER_MAX[came.rm]:
        raise rollover(to, came.identifier, NUMBER_MAX[came.rm])
    if contains(inbound.received, came.number):
        return Decision.REPEAT
    if inbound.closed:
        raise closed(to, came.identifier)
    if inbound.last is not None and came.number > inbound.last:
        raise last_exceeded(to, came.identifier)
    if came.last and came.number < highest(inbound.received):
        raise last_exceeded(to, came.identifier)
    if came.number == inbound.processed_to + 1:
        return Decision.PROCESS
    return Decision.HOLD if held_count(inbound) < HELD_MAX else Decision.NO_ROOM


def received(inbound: Inbound, came: Sequence, now_ns: int) -> Inbound:
    """The message is on disk, to be processed when its turn comes."""
    return replace(
        inbound,
        received=with_number(inbound.received, came.number),
        last=came.number if came.last else inbound.last,
        used_ns=now_ns,
    )


def processed(inbound: Inbound, number: int) -> Inbound:
    """What has this number is done. Numbers before it that never came will not be processed."""
    assert number > inbound.processed_to
    return replace(inbound, processed_to=number)


def next_held(inbound: Inbound) -> int | None:
    """The number of the held message whose turn it is.

    A closed sequence waits for nothing: what was acknowledged is processed in spite of gaps
    (IncompleteSequenceBehavior NoDiscard, WS-ReliableMessaging 1.1 section 3.4).
    """
    following = inbound.processed_to + 1
    if contains(inbound.received, following):
        return following
    if not inbound.closed:
        return None
    return next((lower for lower, _ in inbound.received if lower > inbound.processed_to), None)


def closing(inbound: Inbound) -> Inbound:
    """No new message is taken from now on."""
    return replace(inbound, closed=True)


def held_count(inbound: Inbound) -> int:
    """How many messages wait for earlier ones."""
    waiting = ((max(low, inbound.processed_to + 1), up) for low, up in inbound.received)
    return count(tuple(pair for pair in waiting if pair[0] <= pair[1]))


def acknowledgement(inbound: Inbound) -> Acknowledgement:
    """What arrived, and whether that is all there will be."""
    return Acknowledgement(inbound.rm, inbound.identifier, inbound.received, final=inbound.closed)
