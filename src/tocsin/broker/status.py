"""BrokerStatus: figures of a broker at one moment, for those who watch it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.broker.clock import Doubt
from tocsin.broker.counters import Counters

if TYPE_CHECKING:
    from tocsin.broker.broker import Broker


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A copy: it does not change when the broker goes on."""

    first: int  # the number of the oldest event that the log still has
    head: int  # the number of the last event
    streams_open: int
    lanes_open: int  # sinks with events to send
    counters: Counters
    clock_doubt: Doubt | None
    clock_jump_ns: int  # how far the machine's clock is from where it should be
    clock_complaint: str  # empty if nothing is wrong with it

    @property
    def events(self) -> int:
        """How many the log has."""
        return max(0, self.head - self.first + 1)


def status_of(broker: Broker) -> BrokerStatus:
    clock = broker.clock
    return BrokerStatus(
        first=broker.first,
        head=broker.head,
        streams_open=broker.streams_open,
        lanes_open=broker.lanes_open,
        counters=copy(broker.counters),
        clock_doubt=clock.doubt,
        clock_jump_ns=clock.jump_ns,
        clock_complaint=clock.complaint(),
    )
