"""Meter: what each request of a workload cost, in messages, look-ups and time.

Publication messages are counted in three ways, because they decide what is found (the paper does
not say which is its own): each result as a message of its own; results from a cache as one package
and all others alone; and packages wherever several results leave a broker at once, as this broker
sends them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.overlay.discovery.effects import (
    Answered,
    Effect,
    Finished,
    Notice,
    Send,
    SendDirect,
)
from tocsin.wire.link.discovery_messages import (
    Advertise,
    Discover,
    DiscoveryMessage,
    Done,
    Results,
    Unadvertise,
    Update,
)


@dataclass(slots=True)
class RequestCost:
    """One request. Hops are messages between brokers; client links do not count."""

    broker: str
    issued_ns: int
    finished_ns: int | None = None
    last_result_ns: int | None = None
    results: int = 0
    shared: bool = False
    subscription_hops: int = 0
    publication_hops_alone: int = 0
    publication_hops_cached: int = 0
    publication_hops_packaged: int = 0
    end_markers: int = 0
    other_hops: int = 0  # covers that are gone, cancellations
    matching_operations: int = 0
    covering_lookups: int = 0


@dataclass(slots=True)
class Meter:
    """The costs of requests by id, and of what belongs to no request."""

    requests: dict[str, RequestCost] = field(default_factory=dict)
    resources: dict[str, int] = field(default_factory=dict)  # when each changed last
    advertisement_hops: int = 0
    update_hops: int = 0
    connections: set[tuple[str, str]] = field(default_factory=set)  # that direct results need

    def issue(self, request_id: str, broker: str, at_ns: int) -> None:
        """A request is about to be made."""
        self.requests[request_id] = RequestCost(broker, at_ns)

    def change(self, resource_id: str, at_ns: int) -> None:
        """A resource is about to be registered or to change."""
        self.resources[resource_id] = at_ns

    def looked_up(self, request_id: str, matches: int, covers: int) -> None:
        """A broker worked through a message about a request, with so many look-ups."""
        cost = self.requests.get(request_id)
        if cost is not None:
            cost.matching_operations += matches
            cost.covering_lookups += covers

    def performed(self, broker: str, effect: Effect, at_ns: int) -> None:
        """A broker has sent a message, or told its client something."""
        match effect:
            case Send(_, message):
                self._count(message)
            case SendDirect(other, message):
                self._count(message)
                self.connections.add((broker, other))
            case Answered(request_id, results):
                cost = self.requests[request_id]
                cost.results += len(results)
                cost.last_result_ns = at_ns
            case Finished(request_id, summary):
                cost = self.requests[request_id]
                cost.finished_ns, cost.shared = at_ns, summary.shared
            case Notice(request_id, _, resource) if resource.id in self.resources:
                # Each notice is a row of its own: what it reports happened when it was issued.
                notice = RequestCost(broker, self.resources[resource.id], at_ns, at_ns, 1)
                self.requests[f"{request_id}/{len(self.requests)}"] = notice

    def _count(self, message: DiscoveryMessage) -> None:
        if isinstance(message, Advertise | Unadvertise):
            self.advertisement_hops += 1
            return
        if isinstance(message, Update):
            self.update_hops += 1
            return
        cost = self.requests.get(message.request_id)
        if cost is None:
            return
        match message:
            case Discover():
                cost.subscription_hops += 1
            case Results(_, results):
                # What was kept in a cache has an age.
                is_cached = any(result.age_ns for result in results)
                cost.publication_hops_alone += len(results)
                cost.publication_hops_cached += 1 if is_cached else len(results)
                cost.publication_hops_packaged += 1
            case Done():
                cost.end_markers += 1
            case _:
                cost.other_hops += 1
