"""Advertisements: the subscription routing table (SRT). What there is, and over which link.

They are flooded: a broker takes one from a neighbour and sends it to all others. The tree has one
way to each broker, so an advertisement that also comes over a second link is kept aside, and used
when the first one withdraws it or goes down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tocsin.errors import DiscoveryFull, RoutingTableFull, TocsinError
from tocsin.overlay.discovery.context import CLIENT, Context
from tocsin.overlay.discovery.conversion import from_row, static_resource
from tocsin.overlay.discovery.effects import Ignored, Resource
from tocsin.overlay.discovery.memory import RESOURCES, size_of
from tocsin.overlay.discovery.requests import ModelType
from tocsin.overlay.region import Region, Regions
from tocsin.wire.link.discovery_messages import Advertise, Result, Unadvertise

ResourceKey = tuple[str, str]
"""(broker, resource)."""

RowKey = tuple[ResourceKey, int]
RegionsFactory = Callable[[], Regions[RowKey]]


@dataclass(frozen=True, slots=True)
class Entry:
    """An advertisement and where it came from."""

    message: Advertise
    rows: tuple[Region, ...]
    last_hop: str
    size: int = 0  # in bytes, as it came from a neighbour

    @property
    def key(self) -> ResourceKey:
        return self.message.broker, self.message.resource_id

    @property
    def is_dynamic(self) -> bool:
        return self.message.model == ModelType.DYNAMIC


Changed = Callable[[Entry | None, Entry | None, int], None]
"""Called with an entry as it was, as it is now, and the time."""


class Advertisements:
    """The advertisements of all brokers, static and dynamic ones in a table each."""

    def __init__(
        self,
        context: Context,
        static: Regions[RowKey],
        dynamic: Regions[RowKey],
        local: Regions[RowKey],
        changed: Changed,
    ) -> None:
        self._context = context
        self._entries: dict[ResourceKey, Entry] = {}
        self._aside: dict[ResourceKey, dict[str, Entry]] = {}
        self._aside_count = 0
        self._bytes: dict[str, int] = {}  # of what came from each neighbour
        self._keys: dict[str, dict[ResourceKey, None]] = {}  # of the same, also of what is aside
        self._static = static
        self._dynamic = dynamic
        self._local = local  # those of this broker, among the dynamic ones
        self._changed = changed
        self._resources: dict[ResourceKey, Resource] = {}  # static ones that were found before

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, key: ResourceKey) -> Entry | None:
        return self._entries.get(key)

    def hops_to(self, key: ResourceKey) -> int:
        entry = self._entries.get(key)
        return entry.message.hops if entry else 0

    def not_from(self, results: Sequence[Result], neighbour: str) -> list[Result]:
        """Those of resources that are not advertised by way of this neighbour."""
        entries = [self._entries.get((each.broker, each.resource_id)) for each in results]
        return [
            each
            for each, entry in zip(results, entries, strict=True)
            if entry is None or entry.last_hop != neighbour
        ]

    def next_hops(self, request: Region) -> set[str]:
        """Where dynamic resources are that the request may be for; CLIENT means here."""
        self._context.counters.matching_operations += 1
        linked = self._context.neighbours
        found = self._dynamic.groups_overlapping(request)
        return {hop for hop in found if hop == CLIENT or hop in linked}

    def local_resources(self, request: Region) -> list[str]:
        """The dynamic resources of this broker that the request may be for."""
        return list(dict.fromkeys(key[1] for key, _ in self._local.overlapping(request)))

    def static_entries(self, request: Region) -> list[Entry]:
        """Every static resource that the request overlaps."""
        return [self._entries[key] for key in self._static_keys(request)]

    def static_resources(self, request: Region) -> list[Resource]:
        """The same, as an answer shows them."""
        known = self._resources
        return [known.get(key) or self._resource(key) for key in self._static_keys(request)]

    def _static_keys(self, request: Region) -> dict[ResourceKey, None]:
        self._context.counters.matching_operations += 1
        return dict.fromkeys([key for key, _ in self._static.overlapping(request)])

    def _resource(self, key: ResourceKey) -> Resource:
        made = self._resources[key] = static_resource(self._entries[key].message)
        return made

    def receive(self, neighbour: str, message: Advertise, now_ns: int) -> None:
        """Takes a neighbour's advertisement and floods it on."""
        if not self._context.is_behind(message.broker, neighbour):
            # It may be on its way from before the broker moved: nobody is to blame.
            self._context.drop("advertisement of a broker that is not behind the neighbour")
            return
        entry = self._entry(neighbour, message)
        if entry is None:
            return
        known = self._entries.get(entry.key)
        former = known
        if known is not None and known.last_hop != neighbour:
            former = self._aside.get(entry.key, {}).get(neighbour)
        problem = self._problem_of(entry, former)
        if problem is not None:
            self._context.drop("too many advertisements")
            self._context.effects.append(Ignored(neighbour, problem))
        elif known is not None and known.last_hop != neighbour:
            self._put_aside(entry)
        elif known is not None and known.message.adv_id == message.adv_id:
            self._count_hops(known, message.hops + 1)
        else:
            self.put(entry, now_ns)

    def _count_hops(self, known: Entry, hops: int) -> None:
        """What is known has come again: the tree behind the neighbour may be another by now."""
        if known.message.hops == hops:
            self._context.drop("advertisement known")
            return
        message = msgspec.structs.replace(known.message, hops=hops)
        self._entries[known.key] = Entry(message, known.rows, known.last_hop)
        self._flood(message, but_not=known.last_hop)

    @property
    def is_full(self) -> bool:
        return len(self._entries) + self._aside_count >= self._context.options.advertisements_max

    def _entry(self, neighbour: str, message: Advertise) -> Entry | None:
        if message.broker == self._context.broker_id:
            self._context.drop("advertisement of this broker's own, from a neighbour")
        elif message.model not in (ModelType.STATIC, ModelType.DYNAMIC):
            self._context.drop("advertisement of an unknown model")
        elif message.hops >= self._context.options.hops_max:
            self._context.drop("advertisement came over too many links")
        else:
            rows = tuple(map(from_row, message.rows))
            if all(row is not None for row in rows):
                here = msgspec.structs.replace(message, hops=message.hops + 1)
                taken = tuple(row for row in rows if row is not None)
                return Entry(here, taken, neighbour, size_of(here))
            self._context.drop("advertisement with an invalid region")
        return None

    def _problem_of(self, entry: Entry, former: Entry | None) -> TocsinError | None:
        """Why there is no room for it in place of what came from that neighbour before."""
        options, neighbour = self._context.options, entry.last_hop
        rows, size = len(self._keys.get(neighbour, ())), self._bytes.get(neighbour, 0)
        if former is None and self.is_full:
            return DiscoveryFull(
                f"there are {options.advertisements_max} advertisements of resources, as many as "
                "there may be",
                remedy="Withdraw some.",
            )
        if former is None and rows >= options.advertisements_per_neighbour_max:
            return RoutingTableFull(
                f"{rows} advertisements of resources came over the link with {neighbour}, as many "
                "as may come by one",
                remedy="Raise resources_per_neighbour_max in [overlay] there.",
            )
        more = entry.size - (0 if former is None else former.size)
        memory = self._context.memory
        if more > 0 and memory.held[RESOURCES] + more > options.resource_bytes_max:
            memory.refused[RESOURCES] += 1
            return DiscoveryFull(
                f"there are advertisements of resources of {options.resource_bytes_max} bytes, as "
                "many as there may be",
                remedy="Withdraw some, or raise resource_bytes_max in [overlay] there.",
            )
        maximum = options.advertisement_bytes_per_neighbour_max
        if more > 0 and size + more > maximum:
            return RoutingTableFull(
                f"advertisements of resources of {maximum} bytes came over the link with "
                f"{neighbour}, as many as may come by one",
                remedy="Raise resource_bytes_per_neighbour_max in [overlay] there.",
            )
        return None

    def _count(self, entry: Entry, by: int) -> None:
        """One entry more of its neighbour, or less."""
        hop = entry.last_hop
        if hop == CLIENT:
            return
        self._bytes[hop] = self._bytes.get(hop, 0) + by * entry.size
        self._context.memory.add(RESOURCES, by * entry.size)
        keys = self._keys.setdefault(hop, {})
        if by > 0:
            keys[entry.key] = None
        else:
            keys.pop(entry.key, None)
        if not keys:
            del self._keys[hop], self._bytes[hop]

    def _put_aside(self, entry: Entry) -> None:
        self._pop_aside(entry.key, entry.last_hop)
        self._aside.setdefault(entry.key, {})[entry.last_hop] = entry
        self._aside_count += 1
        self._count(entry, 1)

    def put(self, entry: Entry, now_ns: int) -> None:
        """Adds an entry in place of the one that there was, and floods it."""
        old = self._entries.get(entry.key)
        if old is not None:
            self._take_out(old)
        self._add(entry)
        self._flood(entry.message, but_not=entry.last_hop)
        self._changed(old, entry, now_ns)

    def _add(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        self._count(entry, 1)
        table = self._dynamic if entry.is_dynamic else self._static
        for number, row in enumerate(entry.rows):
            table.add((entry.key, number), row, entry.last_hop)
            if entry.is_dynamic and entry.last_hop == CLIENT:
                self._local.add((entry.key, number), row, CLIENT)

    def _take_out(self, entry: Entry) -> None:
        del self._entries[entry.key]
        self._count(entry, -1)
        self._resources.pop(entry.key, None)
        table = self._dynamic if entry.is_dynamic else self._static
        for number in range(len(entry.rows)):
            table.remove((entry.key, number))
            if entry.is_dynamic and entry.last_hop == CLIENT:
                self._local.remove((entry.key, number))

    def withdraw(self, neighbour: str, message: Unadvertise, now_ns: int) -> None:
        """Takes a neighbour's withdrawal, which counts for what came from there alone."""
        key = (message.broker, message.resource_id)
        entry = self._entries.get(key)
        if entry is not None and entry.last_hop == neighbour:
            self.remove(entry, now_ns)
        elif self._pop_aside(key, neighbour) is None:
            self._context.drop("withdrawal of an advertisement that did not come from there")

    def remove(self, entry: Entry, now_ns: int) -> None:
        """Takes an entry out. Another way to the same resource takes its place, if there is one."""
        self._take_out(entry)
        other = self._other_way(entry.key)
        if other is None:
            self._flood(_withdrawal(entry), but_not=entry.last_hop)
            self._changed(entry, None, now_ns)
            return
        self._add(other)
        self._send(other.last_hop, _withdrawal(entry))
        if other.message.hops == entry.message.hops:
            # The others have it from here, and still can: they need not be told.
            self._send(entry.last_hop, other.message)
        else:
            self._flood(other.message, but_not=other.last_hop)
        self._changed(entry, other, now_ns)

    def _other_way(self, key: ResourceKey) -> Entry | None:
        for neighbour in self._aside.get(key, {}):
            return self._pop_aside(key, neighbour)
        return None

    def _pop_aside(self, key: ResourceKey, neighbour: str) -> Entry | None:
        aside = self._aside.get(key, {})
        entry = aside.pop(neighbour, None)
        if entry is not None:
            self._aside_count -= 1
            self._count(entry, -1)
        if not aside:
            self._aside.pop(key, None)
        return entry

    def link_up(self, neighbour: str) -> None:
        """Sends everything that is known to a new neighbour."""
        for entry in self._entries.values():
            if entry.last_hop != neighbour:
                self._send(neighbour, entry.message)

    def link_down(self, neighbour: str, now_ns: int) -> Iterator[None]:
        """Forgets everything that came over the link, an entry in each step."""
        for key in list(self._keys.get(neighbour, ())):
            if self._pop_aside(key, neighbour) is not None:
                yield
        for key in list(self._keys.get(neighbour, ())):
            entry = self._entries.get(key)
            if entry is not None and entry.last_hop == neighbour:
                self.remove(entry, now_ns)
                yield

    def _flood(self, message: Advertise | Unadvertise, but_not: str) -> None:
        for neighbour in self._context.neighbours:
            if neighbour != but_not:
                self._context.send(neighbour, message)

    def _send(self, neighbour: str, message: Advertise | Unadvertise) -> None:
        if neighbour in self._context.neighbours:
            self._context.send(neighbour, message)


def _withdrawal(entry: Entry) -> Unadvertise:
    message = entry.message
    return Unadvertise(message.adv_id, message.broker, message.resource_id)
