"""When a subscription ends: what was asked, judged."""

from __future__ import annotations

from typing import Final

from tocsin.event.instant import LATEST_NS, NS_PER_S
from tocsin.wire.soap.expiry import read_expiry
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.messages import Never
from tocsin.wire.wsn.operations import Operation

LEASE_DEFAULT_S: Final = 72 * 3600
"""For whoever leaves it to us: as the original has it."""


def ends_at(termination: str | Never | None, faults: Faults, operation: Operation) -> int | None:
    """The moment, None for never; a fault for an end that is none, or has been."""
    if termination is None:
        return faults.now_ns + LEASE_DEFAULT_S * NS_PER_S
    if isinstance(termination, Never):
        return None
    expiry = read_expiry(termination, faults.now_ns, milliseconds=faults.spec == "wsn10")
    if expiry is None:
        shown = repr(termination[:64]) if termination else "nothing"
        raise faults.unacceptable_time(f"{shown} is neither a time nor a duration", operation)
    if expiry.expires_ns <= faults.now_ns:
        raise faults.unacceptable_time(f"{termination} is not in the future", operation)
    if expiry.expires_ns >= LATEST_NS:
        raise faults.unacceptable_time(f"{termination} is too far in the future", operation)
    return expiry.expires_ns
