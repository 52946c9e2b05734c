"""Events on their way between brokers, and as the log keeps them."""

from __future__ import annotations

from tocsin.event.stored import Arrival, Stored
from tocsin.wire.link.messages import HOPS_MAX, Relayed


def relayed_event(stored: Stored, broker: str, log: str) -> Relayed:
    """An event of this broker's log, for another one."""
    came = stored.arrival
    if came is None:
        return Relayed(broker, log, stored.seq, stored.received_ns, 0, stored.event)
    return Relayed(
        came.origin, came.origin_log, came.number, came.received_ns, came.hops, stored.event
    )


def arrival_of(event: Relayed, neighbour: str) -> Arrival:
    """How an event came here, for this broker's log."""
    return Arrival(
        event.origin,
        event.origin_log,
        event.number,
        event.received_ns,
        neighbour,
        min(event.hops + 1, HOPS_MAX),
    )
