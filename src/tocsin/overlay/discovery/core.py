"""DiscoveryCore: one broker's part in finding resources. Inputs and the time in, effects out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tocsin.errors import BadDiscovery, DiscoveryFull, NoSuchDiscovery, TocsinError
from tocsin.event.event import Value
from tocsin.overlay.discovery.advertisements import Advertisements, Entry
from tocsin.overlay.discovery.context import Context, Counters, IsBehind, MayConnectTo
from tocsin.overlay.discovery.conversion import is_same_answer, unsendable
from tocsin.overlay.discovery.covers import CoverList
from tocsin.overlay.discovery.dynamic_watches import DynamicWatches
from tocsin.overlay.discovery.effects import (
    Answered,
    Current,
    Effect,
    Finished,
    Refused,
    Summary,
)
from tocsin.overlay.discovery.memory import REQUESTS
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.options import DEFAULTS, DiscoveryOptions
from tocsin.overlay.discovery.requests import ModelType, Registration, Request
from tocsin.overlay.discovery.resources import LocalResource, LocalResources, no_such_resource
from tocsin.overlay.discovery.snapshot import snapshot
from tocsin.overlay.discovery.static_watches import StaticWatches
from tocsin.overlay.region import Regions, RegionTable
from tocsin.wire.link.discovery_messages import (
    ID_CHARS_MAX,
    Advertise,
    Cancel,
    CoverGone,
    Discover,
    DiscoveryMessage,
    Done,
    Result,
    Results,
    Unadvertise,
    Update,
)

NO_TIME_LEFT: Final = "the lease has ended"


class DiscoveryCore:
    """See `Discovery` for what each method promises."""

    def __init__(
        self,
        broker_id: str,
        options: DiscoveryOptions = DEFAULTS,
        regions: Callable[[], Regions[Any]] = RegionTable,
    ) -> None:
        self._context = Context(broker_id, options)
        self.resources = LocalResources(self._context)
        self.advertisements = Advertisements(
            self._context, regions(), regions(), regions(), self._advertisement_changed
        )
        self._covers = CoverList(self._context, regions(), regions())
        self.one_time = self._make_one_time(self._covers)
        self.static_watches = StaticWatches(self._context, self.advertisements, regions())
        self.dynamic_watches = DynamicWatches(
            self._context, self.advertisements, self.resources, regions()
        )
        self._clearing: deque[Iterator[None]] = deque()  # what is left of links that have ended

    def _make_one_time(self, covers: CoverList) -> OneTimeRequests:
        return OneTimeRequests(self._context, self.advertisements, self.resources, covers)

    @property
    def broker_id(self) -> str:
        return self._context.broker_id

    @property
    def counters(self) -> Counters:
        return self._context.counters

    @property
    def options(self) -> DiscoveryOptions:
        return self._context.options

    @options.setter
    def options(self, options: DiscoveryOptions) -> None:
        self._context.options = options

    @property
    def is_behind(self) -> IsBehind:
        return self._context.is_behind

    @is_behind.setter
    def is_behind(self, is_behind: IsBehind) -> None:
        self._context.is_behind = is_behind

    @property
    def may_connect_to(self) -> MayConnectTo:
        return self._context.may_connect_to

    @may_connect_to.setter
    def may_connect_to(self, may_connect_to: MayConnectTo) -> None:
        self._context.may_connect_to = may_connect_to

    # Resources.

    def register(self, registration: Registration, now_ns: int) -> list[Effect]:
        problem = self.resources.problem_of(registration)
        if problem is not None:
            return [Refused(registration.resource_id, problem)]
        old = self.resources.get(registration.resource_id)
        previous = old.result(now_ns) if old else None
        if old is not None and old.registration.is_same_description(registration):
            resource = old
            if registration.values:
                resource.set_values(registration.values)
        else:
            values = old.values if old and not registration.values else None
            resource = self.resources.put(registration, now_ns)
            if values and not self.resources.problem_of_values(registration, values):
                resource.set_values(values)
            self.advertisements.put(resource.entry, now_ns)
        self.resources.begin_lease(resource, registration.lease_ns, now_ns)
        self._publish(resource, previous, resource.result(now_ns))
        return self._context.take_effects()

    def update(self, resource_id: str, values: Mapping[str, Value], now_ns: int) -> list[Effect]:
        resource = self.resources.get(resource_id)
        if resource is None:
            return [Refused(resource_id, no_such_resource(resource_id))]
        problem = self.resources.problem_of_values(resource.registration, values)
        if problem is None and resource.registration.model is ModelType.STATIC:
            problem = BadDiscovery(
                f"{resource_id!r} is a static resource",
                remedy="Register it again to change it, or register it as dynamic.",
            )
        if problem is not None:
            return [Refused(resource_id, problem)]
        previous = resource.result(now_ns)
        resource.set_values(values)
        self._publish(resource, previous, resource.result(now_ns))
        return self._context.take_effects()

    def _publish(
        self, resource: LocalResource, previous: Result | None, result: Result | None
    ) -> None:
        if resource.registration.model is ModelType.STATIC or is_same_answer(previous, result):
            return
        message = resource.entry.message
        self.dynamic_watches.publish(
            Update(message.adv_id, message.broker, resource.id, result, previous)
        )

    def withdraw(self, resource_id: str, now_ns: int) -> list[Effect]:
        resource = self.resources.remove(resource_id)
        if resource is None:
            return [Refused(resource_id, no_such_resource(resource_id))]
        self.advertisements.remove(resource.entry, now_ns)
        return self._context.take_effects()

    # Requests of clients.

    def discover(self, request: Request, now_ns: int) -> list[Effect]:
        problem = self._problem_of(request)
        if problem is not None:
            return [Refused(request.request_id, problem)]
        if request.region.is_empty:  # A16
            why = request.region.empty_because
            return [Finished(request.request_id, Summary((), 0, now_ns, why_empty=why))]
        if request.lease_ns is not None and request.model.is_continuous:
            self._context.timers.set(now_ns + request.lease_ns, "lease", request.request_id)
        match request.model:
            case ModelType.STATIC:
                self._answer_static(request, now_ns)
            case ModelType.DYNAMIC:
                self.one_time.discover(request, now_ns)
            case ModelType.STATIC_CONTINUOUS:
                found = self.static_watches.add(request)
                summary = Summary((self.broker_id,), 0, now_ns, found=found)
                self._context.effects.append(Current(request.request_id, summary))
            case ModelType.DYNAMIC_CONTINUOUS:
                self.dynamic_watches.add(request, now_ns)
        return self._context.take_effects()

    def _problem_of(self, request: Request) -> TocsinError | None:
        options = self.options
        id = request.request_id
        if not 0 < len(id) <= ID_CHARS_MAX or self._is_known(id):
            return BadDiscovery(
                f"the id {id[:100]!r} is empty, too long or used by another request",
                remedy="Leave it out: the broker makes one.",
            )
        if len(request.region.bounds) > options.attributes_max:
            return BadDiscovery(
                f"the request names more than {options.attributes_max} attributes",
                remedy="Name fewer.",
            )
        if (name := unsendable(request.region, {})) is not None:
            return BadDiscovery(f"{name!r} or its value is too long", remedy="Use a shorter text.")
        if request.model.is_continuous:
            kept = len(self.static_watches) + len(self.dynamic_watches.watches)
            limit = options.continuous_max
        else:
            kept, limit = len(self.one_time.paths), options.requests_max
        if self._context.memory.held[REQUESTS] >= options.request_bytes_max:
            return DiscoveryFull(
                f"this broker keeps requests of {options.request_bytes_max} bytes",
                remedy="Try again later, or raise request_bytes_max in [overlay].",
            )
        if kept < limit:
            return None
        return DiscoveryFull(
            f"this broker keeps {kept} requests", remedy="Try again later, or raise the limit."
        )

    def _is_known(self, request_id: str) -> bool:
        return (
            request_id in self.one_time.paths
            or request_id in self.static_watches
            or request_id in self.dynamic_watches
        )

    def _answer_static(self, request: Request, now_ns: int) -> None:
        found = tuple(self.advertisements.static_resources(request.region))
        is_cut = 0 < request.first < len(found)
        if is_cut:
            found = found[: request.first]
        if found:
            self._context.effects.append(Answered(request.request_id, found))
        nothing = "" if found else "no static resource advertises these attributes in these ranges"
        summary = Summary(
            (self.broker_id,), 0, now_ns, why_empty=nothing, stopped_early=is_cut, found=len(found)
        )
        self._context.effects.append(Finished(request.request_id, summary))

    def cancel(self, request_id: str, now_ns: int) -> list[Effect]:
        self._context.timers.cancel("lease", request_id)
        is_ended = (
            self.static_watches.remove(request_id)
            or self.dynamic_watches.remove(request_id)
            or self.one_time.cancel(request_id, now_ns)
        )
        if not is_ended:
            error = NoSuchDiscovery(
                f"no discovery {request_id[:100]!r} runs here",
                remedy="It may have ended; make the request again.",
            )
            return [Refused(request_id, error)]
        return self._context.take_effects()

    # Neighbours.

    def link_up(self, neighbour: str, now_ns: int) -> list[Effect]:
        if neighbour in self._context.neighbours:
            self._link_down(neighbour, now_ns)
        while self._clearing:  # what came over the former link is not taken for that of this one
            self._clear(now_ns)
        self._context.neighbours[neighbour] = None
        self.advertisements.link_up(neighbour)
        return self._context.take_effects()

    def link_down(self, neighbour: str, now_ns: int) -> list[Effect]:
        self._link_down(neighbour, now_ns)
        self._clear(now_ns)
        return self._context.take_effects()

    def _link_down(self, neighbour: str, now_ns: int) -> None:
        if neighbour not in self._context.neighbours:
            return
        del self._context.neighbours[neighbour]
        self._clearing.append(self.advertisements.link_down(neighbour, now_ns))
        self._clearing.append(self.dynamic_watches.link_down(neighbour, now_ns))
        self._clearing.append(self.one_time.link_down(neighbour, now_ns))

    @property
    def is_clearing(self) -> bool:
        return bool(self._clearing)

    def clear(self, now_ns: int) -> list[Effect]:
        self._clear(now_ns)
        return self._context.take_effects()

    def _clear(self, now_ns: int) -> None:
        left = self.options.cleared_at_once_max
        while self._clearing and left:
            steps = self._clearing[0]
            for _ in steps:
                left -= 1
                if not left:
                    return
            self._clearing.popleft()

    def receive(self, neighbour: str, message: DiscoveryMessage, now_ns: int) -> list[Effect]:
        self.counters.received += 1
        if neighbour not in self._context.neighbours:
            self._context.drop("message from a broker that is not a neighbour")
        else:
            self._receive(neighbour, message, now_ns)
        return self._context.take_effects()

    def _receive(self, neighbour: str, message: DiscoveryMessage, now_ns: int) -> None:
        watches, one_time = self.dynamic_watches, self.one_time
        match message:
            case Advertise():
                self.advertisements.receive(neighbour, message, now_ns)
            case Unadvertise():
                self.advertisements.withdraw(neighbour, message, now_ns)
            case Discover():
                self._receive_discover(neighbour, message, now_ns)
            case Results() if message.request_id in watches:
                watches.receive_results(neighbour, message)
            case Results():
                one_time.receive_results(neighbour, message, now_ns)
            case Done() if message.request_id in watches:
                watches.receive_done(neighbour, message, now_ns)
            case Done():
                one_time.receive_done(neighbour, message, now_ns)
            case CoverGone():
                one_time.receive_cover_gone(neighbour, message, now_ns)
            case Cancel() if message.request_id in watches:
                watches.receive_cancel(neighbour, message, now_ns)
            case Cancel():
                one_time.receive_cancel(neighbour, message, now_ns)
            case Update():
                watches.receive_update(neighbour, message)

    def _receive_discover(self, neighbour: str, message: Discover, now_ns: int) -> None:
        if message.host == self.broker_id:
            self._context.drop("request of this broker's own, from a neighbour")
        elif message.model == ModelType.DYNAMIC:
            self.one_time.receive_discover(neighbour, message, now_ns)
        elif message.model == ModelType.DYNAMIC_CONTINUOUS:
            self.dynamic_watches.receive_discover(neighbour, message, now_ns)
        else:
            self._context.drop("request of a model that is not forwarded")

    def receive_direct(self, message: DiscoveryMessage, now_ns: int) -> list[Effect]:
        self.counters.received += 1
        if isinstance(message, Results):
            self.one_time.receive_direct(message, now_ns)
        else:
            self._context.drop("message that is not sent directly")
        return self._context.take_effects()

    def _advertisement_changed(self, old: Entry | None, new: Entry | None, now_ns: int) -> None:
        rows = [row for entry in (old, new) if entry and entry.is_dynamic for row in entry.rows]
        self._covers.remove_overlapping(rows)
        self.dynamic_watches.advertisement_changed(old, new)
        self.static_watches.changed(old, new)

    # Time.

    def tick(self, now_ns: int) -> list[Effect]:
        while (due := self._context.timers.pop_due(now_ns)) is not None:
            what, id = due
            match what:
                case "path":
                    self.one_time.expire(id, now_ns)
                case "timeout":
                    self.one_time.time_out(id, now_ns)
                case "resource":
                    self._end_resource(id, now_ns)
                case "lease":
                    self._end_request(id, now_ns)
        return self._context.take_effects()

    def _end_resource(self, resource_id: str, now_ns: int) -> None:
        resource = self.resources.get(resource_id)
        if resource and resource.expires_ns is not None and resource.expires_ns <= now_ns:
            self.resources.remove(resource_id)
            self.advertisements.remove(resource.entry, now_ns)

    def _end_request(self, request_id: str, now_ns: int) -> None:
        if self.static_watches.remove(request_id) or self.dynamic_watches.remove(request_id):
            summary = Summary((), 0, now_ns, incomplete=NO_TIME_LEFT)
            self._context.effects.append(Finished(request_id, summary))

    def next_due_ns(self) -> int | None:
        return self._context.timers.next_due_ns()

    def tables(self) -> dict[str, object]:
        return snapshot(
            self._context,
            self.advertisements,
            self.resources,
            self.one_time,
            self.dynamic_watches,
        )
