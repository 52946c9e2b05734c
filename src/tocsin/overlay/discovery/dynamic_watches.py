"""Dynamic continuous requests (paper 001, 4.3.2): updates are routed by their content.

A request goes along matching advertisements, old and new ones, and stays in the publication routing
table (PRT) of every broker on the way. First comes what matches now (A20), then every update whose
old or new values match, once over each link however many requests are behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from tocsin.errors import DiscoveryFull
from tocsin.overlay.discovery.advertisements import Advertisements, Entry, ResourceKey
from tocsin.overlay.discovery.context import CLIENT, Context
from tocsin.overlay.discovery.conversion import matches, resource_of, rows_of
from tocsin.overlay.discovery.effects import (
    Change,
    Current,
    Finished,
    Ignored,
    Notice,
    Summary,
)
from tocsin.overlay.discovery.memory import RESULTS, size_of
from tocsin.overlay.discovery.messages import (
    discover_message,
    done_message,
    packages,
    problem_of_request,
    read_region,
)
from tocsin.overlay.discovery.paths import Tally
from tocsin.overlay.discovery.requests import Request
from tocsin.overlay.discovery.resources import LocalResources
from tocsin.overlay.region import Region, Regions, overlaps
from tocsin.wire.link.discovery_messages import (
    COUNT_MAX,
    Cancel,
    Discover,
    Done,
    Result,
    Results,
    Update,
)

NO_ROOM: Final = "this broker has no room for what it has found: ask for less"


@dataclass(slots=True)
class Watch:
    """One continuous request at one broker."""

    request: Discover
    region: Region
    last_hop: str
    tally: Tally
    forwarded: set[str] = field(default_factory=set)
    branches: set[str] = field(default_factory=set)  # where no end of the snapshot came from
    is_current: bool = False
    held: dict[ResourceKey, Result] = field(default_factory=dict)  # what the client was told of

    @property
    def id(self) -> str:
        return self.request.request_id


class DynamicWatches:
    """The publication routing table."""

    def __init__(
        self,
        context: Context,
        advertisements: Advertisements,
        resources: LocalResources,
        requests: Regions[str],
    ) -> None:
        self._context = context
        self._advertisements = advertisements
        self._resources = resources
        self._requests = requests
        self.watches: dict[str, Watch] = {}
        self._holders: dict[ResourceKey, dict[str, None]] = {}  # requests told of a resource
        # Requests that came by a second way, while the first is not known to be lost.
        self._aside: dict[str, dict[str, tuple[Discover, Region]]] = {}
        self._aside_count = 0
        # How many came from each neighbour, and of those for each broker.
        self._shares: Counter[tuple[str, str]] = Counter()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self.watches

    def add(self, request: Request, now_ns: int) -> None:
        message = discover_message(request, self._context, now_ns)
        self._add(message, request.region, CLIENT, now_ns)

    def remove(self, request_id: str) -> bool:
        """Ends a client's request; False if there is none."""
        watch = self.watches.get(request_id)
        if watch is None or watch.last_hop != CLIENT:
            return False
        self._remove(watch)
        return True

    def receive_discover(self, neighbour: str, message: Discover, now_ns: int) -> None:
        known = self.watches.get(message.request_id)
        if known is not None and known.last_hop in (neighbour, CLIENT):
            self._context.drop("request known")
            return
        aside = self._aside.get(message.request_id, {})
        problem = "" if neighbour in aside else self._problem_of(neighbour, message)
        region = read_region(message, neighbour, self._context, problem)
        if region is None:
            return
        if known is None:
            self._add(message, region, neighbour, now_ns)
            return
        self._pop_aside(message.request_id, neighbour)
        self._aside.setdefault(message.request_id, {})[neighbour] = (message, region)
        self._aside_count += 1
        self._count(message, neighbour, 1)

    def _pop_aside(self, request_id: str, neighbour: str) -> tuple[Discover, Region] | None:
        aside = self._aside.get(request_id, {})
        found = aside.pop(neighbour, None)
        if found is not None:
            self._aside_count -= 1
            self._count(found[0], neighbour, -1)
            if not aside:
                del self._aside[request_id]
        return found

    def _problem_of(self, neighbour: str, message: Discover) -> str:
        """Why there is no room for another one of that broker, if there is none."""
        host = message.host
        options, remedy = self._context.options, "End some of them, or raise the limit there."
        if self._shares[neighbour, host] >= options.continuous_per_host_max:
            problem = "too many continuous requests of one broker"
            which = f"of the broker {host}, {options.continuous_per_host_max} of them,"
        elif self._shares[neighbour, ""] >= options.continuous_per_neighbour_max:
            problem = "too many continuous requests over one link"
            which = f"{options.continuous_per_neighbour_max} in number"
            remedy = "Raise continuous_requests_per_neighbour_max in [overlay] there."
        elif len(self.watches) + self._aside_count >= options.continuous_max:
            problem = "too many requests"
            which = f"or others, {options.continuous_max} of them,"
        else:
            kept = len(self.watches)  # there is room for as many
            return problem_of_request(self._context, neighbour, message, kept)
        error = DiscoveryFull(
            f"continuous requests {which} came over the link with {neighbour}, as many as may",
            remedy=remedy,
        )
        self._context.effects.append(Ignored(neighbour, error))
        return problem

    def _count(self, message: Discover, last_hop: str, by: int) -> None:
        self._context.memory.add_request(last_hop, by * size_of(message))
        if last_hop == CLIENT:
            return
        for key in ((last_hop, message.host), (last_hop, "")):
            self._shares[key] += by
            if not self._shares[key]:
                del self._shares[key]

    def receive_results(self, neighbour: str, message: Results) -> None:
        watch = self.watches[message.request_id]
        if neighbour not in watch.forwarded:
            self._context.drop("results from where none are expected")
        else:
            self._deliver(watch, message.results)

    def receive_done(self, neighbour: str, message: Done, now_ns: int) -> None:
        watch = self.watches[message.request_id]
        if neighbour not in watch.branches:
            self._context.drop("end marker that nothing waits for")
            return
        watch.tally.add_done(message, now_ns)
        watch.branches.discard(neighbour)
        self._check_current(watch, now_ns)

    def receive_cancel(self, neighbour: str, message: Cancel, now_ns: int) -> None:
        watch = self.watches[message.request_id]
        if watch.last_hop == neighbour:
            self._replace(watch, now_ns)
        elif self._pop_aside(watch.id, neighbour) is None:
            self._context.drop("cancellation of an unknown request")

    def _replace(self, watch: Watch, now_ns: int) -> None:
        """The way of a request is lost; it goes on by another way, if it came by one."""
        self._remove(watch)
        for neighbour in self._aside.get(watch.id, ()):
            if (found := self._pop_aside(watch.id, neighbour)) is not None:
                self._add(*found, neighbour, now_ns)
                return

    def receive_update(self, neighbour: str, message: Update) -> None:
        entry = self._advertisements.get((message.broker, message.resource_id))
        if entry is None or entry.last_hop != neighbour:
            self._context.drop("update from where the resource is not")
        else:
            self._route(message, came_from=neighbour)

    def publish(self, message: Update) -> None:
        """Routes new values of one of this broker's own resources."""
        self._route(message, came_from=None)

    def _route(self, message: Update, came_from: str | None) -> None:
        self._context.counters.matching_operations += 1
        key = (message.broker, message.resource_id)
        concerned: dict[str, None] = {}
        for result in (message.previous, message.result):
            for row in () if result is None else rows_of(result):
                concerned |= dict.fromkeys(self._requests.requests_overlapping(row))
        hops: dict[str, None] = {}
        for request_id in concerned:
            watch = self.watches[request_id]
            if watch.last_hop == CLIENT:
                self._observe(watch, key, message.result)
            elif watch.last_hop != came_from:
                hops[watch.last_hop] = None
        for neighbour in hops:
            self._context.send(neighbour, message)

    def _add(self, message: Discover, region: Region, last_hop: str, now_ns: int) -> None:
        watch = Watch(message, region, last_hop, Tally(now_ns))
        self.watches[watch.id] = watch
        self._count(message, last_hop, 1)
        self._requests.add(watch.id, region, last_hop)
        next_hops = self._advertisements.next_hops(region)
        for neighbour in sorted(next_hops - {CLIENT, last_hop}):
            self._forward(watch, neighbour)
        if CLIENT in next_hops:
            watch.tally.add_brokers((self._context.broker_id,))
            if message.snapshot:
                self._deliver_local(watch, now_ns)
        self._check_current(watch, now_ns)

    def _deliver_local(self, watch: Watch, now_ns: int) -> None:
        candidates = self._advertisements.local_resources(watch.region)
        found = self._resources.matching(watch.region, candidates, now_ns)
        self._deliver(watch, found, packed=self._context.options.package)

    def _deliver(self, watch: Watch, results: Sequence[Result], *, packed: bool = True) -> None:
        if watch.last_hop == CLIENT:
            for result in results:
                if self.watches.get(watch.id) is watch:
                    self._observe(watch, (result.broker, result.resource_id), result)
            return
        for package in packages(watch.id, results, self._context.options, packed=packed):
            watch.tally.messages += 1
            self._context.send(watch.last_hop, package)

    def _observe(self, watch: Watch, key: ResourceKey, result: Result | None) -> None:
        """Compares what a resource is like with what the client was told."""
        held = watch.held.get(key)
        if result is None or not matches(watch.region, result):
            if held is not None:
                self._release(watch, key)
                self._notify(watch, Change.REMOVED, result or held)
            return
        if not self._makes_room(watch, result, held):
            return
        watch.held[key] = result
        self._holders.setdefault(key, {})[watch.id] = None
        if held is None:
            self._notify(watch, Change.ADDED, result)
        elif held.attributes != result.attributes or held.address != result.address:
            self._notify(watch, Change.CHANGED, result)

    def _makes_room(self, watch: Watch, result: Result, former: Result | None) -> bool:
        """Without room, a request ends and says so: it could not tell what changes any more."""
        memory = self._context.memory
        more = size_of(result) - (0 if former is None else size_of(former))
        if more > 0 and not memory.has_room_for_result(more, self._context.options):
            self._context.drop("continuous request, for want of room")
            self._remove(watch)
            summary = Summary((), 0, watch.tally.since_ns, incomplete=NO_ROOM)
            self._context.effects.append(Finished(watch.id, summary))
            return False
        memory.add(RESULTS, more)
        return True

    def _release(self, watch: Watch, key: ResourceKey) -> None:
        self._context.memory.add(RESULTS, -size_of(watch.held.pop(key)))
        holders = self._holders[key]
        del holders[watch.id]
        if not holders:
            del self._holders[key]

    def _notify(self, watch: Watch, change: Change, result: Result) -> None:
        hops = self._advertisements.hops_to((result.broker, result.resource_id))
        self._context.effects.append(Notice(watch.id, change, resource_of(result, hops)))

    def _forward(self, watch: Watch, neighbour: str) -> None:
        watch.forwarded.add(neighbour)
        watch.branches.add(neighbour)
        watch.tally.messages += 1
        self._context.send(neighbour, replace(watch.request, hops=watch.request.hops + 1))

    def _check_current(self, watch: Watch, now_ns: int) -> None:
        if watch.is_current or watch.branches or self.watches.get(watch.id) is not watch:
            return
        watch.is_current = True
        tally = watch.tally
        if watch.last_hop == CLIENT:
            summary = Summary(
                brokers=tuple(sorted(tally.brokers)),
                messages=min(tally.messages, COUNT_MAX),
                oldest_ns=tally.since_ns,
                incomplete=tally.incomplete,
                found=len(watch.held),
            )
            self._context.effects.append(Current(watch.id, summary))
            return
        done = done_message(watch.id, 0, tally, now_ns)
        self._context.send(watch.last_hop, done)

    def _remove(self, watch: Watch) -> None:
        del self.watches[watch.id]
        self._count(watch.request, watch.last_hop, -1)
        self._requests.remove(watch.id)
        self._context.timers.cancel("lease", watch.id)
        for key in list(watch.held):
            self._release(watch, key)
        for neighbour in sorted(watch.forwarded & self._context.neighbours.keys()):
            self._context.send(neighbour, Cancel(watch.id))

    def advertisement_changed(self, old: Entry | None, new: Entry | None) -> None:
        """Sends requests towards a resource that is new, and says which ones went."""
        if new is not None and new.is_dynamic and new.last_hop != CLIENT:
            for row in new.rows:
                for request_id in self._requests.requests_overlapping(row):
                    watch = self.watches[request_id]
                    if new.last_hop not in watch.forwarded | {watch.last_hop}:
                        self._forward(watch, new.last_hop)
        if old is not None and old.is_dynamic:
            self._leave_out(old.key, new)

    def _leave_out(self, key: ResourceKey, new: Entry | None) -> None:
        rows = () if new is None or not new.is_dynamic else new.rows
        for request_id in list(self._holders.get(key, ())):
            watch = self.watches[request_id]
            if not any(overlaps(watch.region, row) for row in rows):
                held = watch.held[key]
                self._release(watch, key)
                self._notify(watch, Change.REMOVED, held)

    def link_down(self, neighbour: str, now_ns: int) -> Iterator[None]:
        """Forgets requests that came over the link, and where others were sent; one a step."""
        for request_id in list(self._aside):
            self._pop_aside(request_id, neighbour)
            yield
        for watch in list(self.watches.values()):
            if self.watches.get(watch.id) is not watch:
                continue
            watch.forwarded.discard(neighbour)
            if watch.last_hop == neighbour:
                self._replace(watch, now_ns)
            elif neighbour in watch.branches:
                watch.branches.discard(neighbour)
                why = f"the link from {self._context.broker_id} to {neighbour} is down"
                watch.tally.incomplete = watch.tally.incomplete or why
                self._check_current(watch, now_ns)
            yield
