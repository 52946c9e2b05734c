"""BrokerStatus: figures of a broker at one moment, for those who watch it."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.broker.clock import Doubt
from tocsin.broker.state.counters import Counters
from tocsin.event.subscription import Kind, State

if TYPE_CHECKING:
    from tocsin.broker.broker import Broker


@dataclass(frozen=True, slots=True)
class ClockStatus:
    """The machine's clock, as the broker judges it."""

    doubt: Doubt | None
    jump_ns: int  # how far it is from where it should be
    complaint: str  # empty if nothing is wrong with it


@dataclass(frozen=True, slots=True)
class SubscriptionCounts:
    """How many subscriptions and boxes there are, and their lag in events. It names none."""

    by_state: dict[tuple[Kind, State], int]
    lag: int  # of all together
    lag_max: int

    def of(self, kind: Kind) -> int:
        return sum(count for (each, _), count in self.by_state.items() if each is kind)


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """A copy: it does not change when the broker goes on."""

    first: int  # the number of the oldest event that the log still has
    head: int  # the number of the last event
    streams_open: int
    lanes_open: int  # sinks with events to send
    counters: Counters
    subscriptions: SubscriptionCounts
    clock: ClockStatus

    @property
    def events(self) -> int:
        """How many the log has."""
        return max(0, self.head - self.first + 1)


def status_of(broker: Broker) -> BrokerStatus:
    return BrokerStatus(
        first=broker.first,
        head=broker.head,
        streams_open=broker.streams_open,
        lanes_open=broker.lanes_open,
        counters=copy(broker.counters),
        subscriptions=_counts(broker),
        clock=clock_status_of(broker),
    )


def clock_status_of(broker: Broker) -> ClockStatus:
    clock = broker.clock
    return ClockStatus(clock.doubt, clock.jump_ns, clock.complaint())


def _counts(broker: Broker) -> SubscriptionCounts:
    views = broker.views()
    lags = [view.behind for view in views]
    by_state = Counter((view.subscription.kind, view.subscription.state) for view in views)
    return SubscriptionCounts(dict(by_state), sum(lags), max(lags, default=0))
