"""OverlayCheck: what brokers owe each other, and how events come from one to the other."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.event.stored import Arrival, Stored
from tocsin.services.link.local_filters import entry_id
from tocsin.sim.checks.access import AccessModel
from tocsin.sim.checks.delivery import DeliveryCheck
from tocsin.sim.checks.log import Key
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.rights import Shape, shape_of
from tocsin.sim.workload import wants
from tocsin.sim.world import Violation, World


@dataclass(frozen=True, slots=True)
class _Owed:
    """An event that a subscription of another broker gets."""

    event: Key
    shape: Shape
    origin: str
    number: int  # there
    to: str
    record: SubscriptionRecord
    last_request: int  # to change the subscription, when the event was stored


class OverlayCheck:
    """Of one world. Brokers are named by their hosts here, and by their ids to each other."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._checks: dict[str, DeliveryCheck] = {}
        self._host_of: dict[str, str] = {}  # by broker id
        self.ids: dict[str, str] = {}  # of the brokers, by host
        self._began: dict[tuple[str, str], set[str]] = {}  # (host, entry) -> hosts
        self._owed: list[_Owed] = []
        self._seen: dict[str, dict[tuple[str, int], int]] = {}  # (log, number) -> number here
        self._came: dict[str, set[tuple[str, int]]] = {}  # (host of the origin, number there)
        self._access: list[AccessModel] = []  # of each broker, where everybody signs in
        self.crossed = 0  # events that were stored at one more broker

    def add(self, host: str, checks: DeliveryCheck) -> None:
        self._checks[host] = checks
        self._seen[host] = {}
        self._came[host] = set()
        checks.log.on_stored = lambda stored: self._stored(host, stored)
        if (access := checks.access) is not None:
            self._access.append(access)
            access.on_look = lambda: self._look(access)

    def knows(self, host: str, broker: str) -> None:
        """The broker at a host has an id, which stays the same."""
        if self.ids.setdefault(host, broker) != broker:
            raise Violation(f"{host} was broker {self.ids[host]} and is {broker}")
        self._host_of[broker] = host

    # Subscriptions that hold at other brokers

    def began(self, host: str, entry: str, broker: str) -> None:
        """The broker at `host` tells its clients that the subscription holds at another one."""
        other = self._host_of.get(broker)
        if other is not None:
            self._began.setdefault((host, entry), set()).add(other)
            self._world.seen["a subscription began at another broker"] += 1

    def withdrawn(self, host: str, entry: str) -> None:
        """No client of the broker wants this any more."""
        self._began.pop((host, entry), None)

    def only(self, host: str, entries: set[str]) -> None:
        """A broker has started again, with these subscriptions of its clients."""
        for key in [each for each in self._began if each[0] == host and each[1] not in entries]:
            del self._began[key]

    def refused_entry(self) -> None:
        """A broker has not taken what another one asked for, nor what that stood for: where
        subscriptions hold is not known before it is said again."""
        self._began.clear()
        self._world.seen["access: an entry of a neighbour was refused"] += 1

    # Events

    def _look(self, model: AccessModel) -> None:
        """What every neighbour may have all the time, it gets; the rest it need not."""
        if self._owed:
            crosses = model.open_to_neighbours()
            self._owed = [owed for owed in self._owed if crosses(owed.shape)]

    def _stored(self, host: str, stored: Stored) -> None:
        if stored.arrival is None:
            self._published(host, stored)
        else:
            self._check_arrival(host, stored, stored.arrival)

    def _published(self, origin: str, stored: Stored) -> None:
        shape = shape_of(stored.event)
        if not all(model.open_to_neighbours()(shape) for model in self._access):
            return
        for host, checks in self._checks.items():
            if host == origin:
                continue
            for record in checks.records.values():
                asked = record.want.now()
                if len(asked) > 1 or record.may_be_gone(checks.fair_ns):
                    continue
                began = self._began.get((host, entry_id(asked[0].filter)))
                if began and origin in began and wants(asked[0], stored.event):
                    event = (stored.event.source, stored.event.id)
                    self._owed.append(
                        _Owed(event, shape, origin, stored.seq, host, record, record.last_request)
                    )

    def _check_arrival(self, host: str, stored: Stored, came: Arrival) -> None:
        what = f"{host} took {stored.event.source} {stored.event.id} from another broker"
        origin = self._host_of.get(came.origin)
        if origin is None or came.neighbour not in self._host_of:
            raise Violation(f"{what}, and nobody is {came}")
        if origin == host:
            raise Violation(f"{what}, and it was published here")
        if self._checks[origin].log.events.get(came.number) != stored.event:
            raise Violation(f"{what}, and it is not event {came.number} of {origin}")
        if not 1 <= came.hops < len(self._checks):
            raise Violation(f"{what}, over {came.hops} links")
        known, key = self._seen[host], (came.origin_log, came.number)
        if known.get(key, 0) > self._checks[host].log.trimmed_to:
            raise Violation(f"{what} as event {known[key]} and as event {stored.seq}")
        known[key] = stored.seq
        self._came[host].add((origin, came.number))
        self.crossed += 1
        self._world.seen[f"event came over {min(came.hops, 3)} links"] += 1

    # The end

    def what_is_owed(self) -> str | None:
        """An event that was published where a subscription held, and has not come to it."""
        for owed in self._owed:
            checks, record = self._checks[owed.to], owed.record
            is_as_it_was = record.last_request == owed.last_request
            if not is_as_it_was or record.may_be_gone(checks.fair_ns):
                continue
            if (owed.origin, owed.number) not in self._came[owed.to]:
                source, event_id = owed.event
                return (
                    f"subscription {record.id} of {owed.to} has not got {source} {event_id}, which "
                    f"was published at {owed.origin} when the subscription held there"
                )
        return None
