"""The sending end of a sequence: each message keeps its number until it is acknowledged.

Messages are known by the places in the log of their first and last event. Kept on disk before a
number is used for the first time, the state makes a restart harmless: what may have been sent is
sent again under the number it had, and its receiver knows it.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from tocsin.wire.wsrm.faults import PeerVersions, invalid_acknowledgement
from tocsin.wire.wsrm.messages import NUMBER_MAX, Acknowledgement, Sequence
from tocsin.wire.wsrm.ranges import NO_NUMBERS, Ranges, contains, highest, union
from tocsin.wire.wsrm.write import write_acknowledgement

Events = tuple[int, int]
"""First and last event of a message, by their places in the log."""

# Numbers remembered. After a crash the broker sends again what it delivered since the last commit,
# and the number of each new message was a commit: so it is one or two, unless commits stood still.
PLACED_MAX: Final = 64


class Outbound(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence that somebody takes from us."""

    identifier: str
    rm: str
    expires_ns: int | None = None
    placed: tuple[tuple[int, int, int], ...] = ()  # first event, last event, number; latest last
    acknowledged: Ranges = NO_NUMBERS

    @property
    def last(self) -> int:
        """The highest number used."""
        return self.placed[-1][2] if self.placed else 0


def number_of(outbound: Outbound, events: Events) -> int | None:
    """The number that a message has; None if it has none yet."""
    for first, last, number in reversed(outbound.placed):
        if (first, last) == events:
            return number
    return None


def has_room(outbound: Outbound, now_ns: int, *, outstanding_max: int = 1) -> bool:
    """True if a new message may be placed.

    With an outstanding message that will not be sent again there never is room: its number would
    be missed for ever by a receiver that waits for it. A new sequence is needed then.
    """
    if outbound.expires_ns is not None and now_ns >= outbound.expires_ns:
        return False
    return (
        len(unacknowledged(outbound)) < outstanding_max and outbound.last < NUMBER_MAX[outbound.rm]
    )


def place(outbound: Outbound, events: Events) -> Outbound:
    """Give the next number to a message."""
    assert number_of(outbound, events) is None
    placed = (*outbound.placed, (*events, outbound.last + 1))
    return replace(outbound, placed=placed[-PLACED_MAX:])


def header(outbound: Outbound, number: int) -> Sequence:
    return Sequence(outbound.rm, outbound.identifier, number)


def acknowledge(outbound: Outbound, came: Acknowledgement, soap: str) -> Outbound:
    """Take an acknowledgement; a SoapFault if it is one of messages that were never sent."""
    if came.identifier != outbound.identifier or came.rm != outbound.rm:
        return outbound
    if came.ranges and (highest(came.ranges) > outbound.last or came.ranges[0][0] < 1):
        raise invalid_acknowledgement(PeerVersions(came.rm, soap), write_acknowledgement(came))
    return replace(outbound, acknowledged=union(outbound.acknowledged, came.ranges))


def is_acknowledged(outbound: Outbound, number: int) -> bool:
    return contains(outbound.acknowledged, number)


def unacknowledged(outbound: Outbound) -> list[int]:
    """The numbers that were used and are still to be acknowledged, the lowest first."""
    return [n for _, _, n in outbound.placed if not contains(outbound.acknowledged, n)]
