"""One experiment: a workload on a network with one algorithm, and the records that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from tocsin.event.event import Value
from tocsin.event.facets import NUMBER
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Effect
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import ModelType, Registration, Request
from tocsin.overlay.region import Region
from tocsin.overlay.region_index import RegionIndex
from tocsin.sim.discovery.boxes import Bounds
from tocsin.sim.discovery.meter import Meter, RequestCost
from tocsin.sim.discovery.network import FREE, ClientCall, Costs, Network
from tocsin.sim.discovery.topology import Topology
from tocsin.sim.discovery.workload import ResourcePlan

NORMAL, SIMILARITY, DIRECT = "Normal", "Similarity", "Direct"
WAITS_NS = 3_600 * 1_000_000_000  # longer than the queue of any run, so that nothing times out


@dataclass(frozen=True, slots=True)
class Setting:
    """What tells one run from another. `similarity` is in percent, 0 where it is not set."""

    figure: str
    algorithm: str
    costs: str = "paper"
    topology: str = "path"
    placement: str = "balanced"
    space: str = "uniform"
    time: str = "uniform"
    model: str = "dynamic"
    similarity: int = 0
    matches: int = 0  # about so many resources are found by each request; 0 where it is not set
    rate: float = 10.0  # requests a second
    cache_s: float = 100.0


SETTING_COLUMNS = tuple(field.name for field in fields(Setting))

Record = dict[str, Any]
"""One row: a setting, a request and what it cost. The columns are those of `RECORD_TYPES`."""

RECORD_TYPES: Mapping[str, type] = {
    **dict.fromkeys(SETTING_COLUMNS, str),
    "similarity": int,
    "matches": int,
    "rate": float,
    "cache_s": float,
    "request": str,
    **{field.name: int for field in fields(RequestCost)},
    "broker": str,
    "shared": bool,
}


@dataclass(frozen=True, slots=True)
class IssuedRequest:
    """A request, where and when it is issued."""

    request_id: str
    broker: str
    at_ns: int
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class Outcome:
    """The records of a run, and what belongs to no request of it."""

    setting: Setting
    records: list[Record]
    advertisement_hops: int
    update_hops: int
    connections: int  # that results sent directly need


def region_of(bounds: Bounds) -> Region:
    return Region({(tag, NUMBER): bound for tag, bound in bounds.items()})


def options_for(algorithm: str, cache_s: float = 100.0) -> DiscoveryOptions:
    return DiscoveryOptions(
        similarity=algorithm == SIMILARITY,
        direct=algorithm == DIRECT,
        cache_expiry_ns=round(cache_s * 1_000_000_000),
        timeout_ns=WAITS_NS,
        # How far it goes is what is measured: a router has nearly everything over one link.
        advertisements_per_neighbour_max=1 << 60,
        advertisement_bytes_per_neighbour_max=1 << 60,
    )


def network_with(
    topology: Topology, resources: Iterable[tuple[ResourcePlan, str]], model: ModelType
) -> tuple[Network, int]:
    """A network whose resources are registered, and how many messages that took."""
    network = Network(topology, options_for(NORMAL), RegionIndex)
    meter = Meter()
    for resource, broker in resources:
        network.call(0, broker, register(resource, model))
    network.run(FREE, meter)
    return network, meter.advertisement_hops


def register(resource: ResourcePlan, model: ModelType) -> ClientCall:
    values: Mapping[str, Value] = resource.values if model is ModelType.DYNAMIC else {}
    registration = Registration(resource.name, model, region_of(resource.advertised), values)
    return ClientCall(lambda core, now_ns: core.register(registration, now_ns))


def update(resource_id: str, values: Mapping[str, Value]) -> ClientCall:
    return ClientCall(lambda core, now_ns: core.update(resource_id, values, now_ns))


def run_requests(
    network: Network, setting: Setting, asked: Sequence[IssuedRequest], costs: Costs
) -> Outcome:
    """Issue the requests, wait for all answers, and let every cached answer expire."""
    options = options_for(setting.algorithm, setting.cache_s)
    network.use(options)
    meter = Meter()
    begin_ns = network.now_ns
    for each in asked:
        request = Request(each.request_id, ModelType(setting.model), region_of(each.bounds))
        meter.issue(each.request_id, each.broker, begin_ns + each.at_ns)
        network.call(
            begin_ns + each.at_ns,
            each.broker,
            ClientCall(discover(request), each.request_id),
        )
    network.run(costs, meter)
    forget_all(network, options)
    return outcome(setting, meter)


def discover(request: Request) -> Callable[[DiscoveryCore, int], list[Effect]]:
    return lambda core, now_ns: core.discover(request, now_ns)


def forget_all(network: Network, options: DiscoveryOptions) -> None:
    """Go on to where nothing of the last workload is left in any table."""
    longest_ns = max(options.cache_expiry_ns, options.timeout_ns) + options.guard_ns
    network.pass_time(network.idle_ns + longest_ns + 1)
    assert not any(core.one_time.paths for core in network.cores.values())


def outcome(setting: Setting, meter: Meter) -> Outcome:
    return Outcome(
        setting,
        list(_records(setting, meter)),
        meter.advertisement_hops,
        meter.update_hops,
        len(meter.connections),
    )


def _records(setting: Setting, meter: Meter) -> Iterator[Record]:
    known = asdict(setting)
    for request_id, cost in meter.requests.items():
        yield {**known, "request": request_id, **asdict(cost)}


def watch(
    network: Network,
    setting: Setting,
    asked: Sequence[IssuedRequest],
    changes: Sequence[tuple[int, str, str, ClientCall]],
    costs: Costs,
) -> Outcome:
    """Continuous requests first; then resources come or change, each at its time and broker."""
    meter = Meter()
    network.use(options_for(NORMAL))
    for each in asked:
        request = Request(
            each.request_id, ModelType(setting.model), region_of(each.bounds), snapshot=False
        )
        network.call(network.now_ns, each.broker, ClientCall(discover(request), each.request_id))
    network.run(FREE, meter)
    meter = Meter()
    begin_ns = network.now_ns
    for at_ns, broker, resource_id, call in changes:
        network.call(begin_ns + at_ns, broker, _timed(call, resource_id, begin_ns + at_ns, meter))
    network.run(costs, meter)
    return outcome(setting, meter)


def _timed(call: ClientCall, resource_id: str, at_ns: int, meter: Meter) -> ClientCall:
    """The call, from whose time the notices of the resource are measured."""

    def act(core: DiscoveryCore, now_ns: int) -> list[Effect]:
        meter.change(resource_id, at_ns)
        return call.call(core, now_ns)

    return ClientCall(act)
