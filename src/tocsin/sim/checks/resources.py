"""ResourceCheck: which resources there are, what values they had when, and what a request finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from tocsin.event.event import Value
from tocsin.services.discovery.answer import Answer
from tocsin.sim.world import Violation, World
from tocsin.wire.api.resource_request import DiscoveryRequest, OrderBy
from tocsin.wire.api.resource_views import RequestModel

FAILURES = {
    "note: a link is down",
    "note: results are not delivered",
    "hosts are cut off from each other",
    "crash",
}
SLACK_NS = 3_000_000_000  # clocks of two machines differ by so much


@dataclass(slots=True)
class _Values:
    values: dict[str, int]
    since_ns: int
    until_ns: int | None = None  # the next ones, or the end, were acknowledged


@dataclass(slots=True)
class ResourceRecord:
    """One resource. What it advertises is the most that each attribute can be."""

    id: str
    most: Mapping[str, int]
    is_dynamic: bool
    host: str = ""
    history: list[_Values] = field(default_factory=list)
    is_withdrawn: bool = False

    def sent(self, values: dict[str, int], now_ns: int) -> None:
        self.history.append(_Values(values, now_ns))

    def acknowledged(self, now_ns: int) -> None:
        """The latest values hold, and none before."""
        for each in self.history[:-1]:
            each.until_ns = now_ns if each.until_ns is None else each.until_ns

    def withdrawn(self, now_ns: int) -> None:
        self.is_withdrawn = True
        for each in self.history:
            each.until_ns = now_ns if each.until_ns is None else each.until_ns


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request: the least that each attribute must be, and what else it asks for."""

    least: Mapping[str, int]
    is_dynamic: bool
    first: int = 0
    max_age_ns: int | None = None
    order_by: OrderBy | None = None

    @property
    def text(self) -> str:
        return " and ".join(f"{name} >= {value}" for name, value in self.least.items())

    def request(self, *, continuous: bool = False) -> DiscoveryRequest:
        model = "dynamic" if self.is_dynamic else "static"
        return DiscoveryRequest(
            self.text,
            cast(RequestModel, f"{model} continuous" if continuous else model),
            max_age_ns=self.max_age_ns,
            first=self.first,
            order_by=self.order_by,
        )

    def finds(self, record: ResourceRecord) -> bool:
        """By the latest values of a dynamic one, or by what it advertises."""
        if record.is_withdrawn or record.is_dynamic != self.is_dynamic or not record.history:
            return False
        has = record.history[-1].values if self.is_dynamic else record.most
        return self.is_met(has) and self.is_met(record.most)

    def is_met(self, values: Mapping[str, Value]) -> bool:
        return all(values.get(name, -1) >= least for name, least in self.least.items())  # type: ignore[operator]


class ResourceCheck:
    """Of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.records: dict[str, ResourceRecord] = {}
        self.answered = 0

    def add(self, record: ResourceRecord) -> None:
        self.records[record.id] = record

    def check(
        self, wanted: Wanted, answer: Answer, asked_ns: int, kept_ns: int, guard_ns: int
    ) -> None:
        """An answer leaves a broker. `kept_ns`: how long results may lie in caches, with the time
        that they are kept longer for what is on its way, `guard_ns`."""
        self.answered += 1
        self._world.seen[f"discovery: {_kind_of(answer)}"] += 1
        ids = [found.resource.id for found in answer.found]
        what = f"the discovery of {wanted.text} found {ids}"
        if len(ids) != len(set(ids)):
            raise Violation(f"{what}: one of them twice")
        if answer.summary.incomplete and not FAILURES & self._world.seen.keys():
            raise Violation(f"8: {what} and is incomplete: {answer.summary.incomplete}")
        if 0 < wanted.first < len(ids):
            raise Violation(f"{what}: {wanted.first} were wanted")
        if wanted.order_by is not None and (ways := _ways(wanted.order_by, answer)) != sorted(ways):
            raise Violation(f"{what}: ordered by {wanted.order_by.name} they are {ways}")
        if wanted.max_age_ns is not None:
            kept_ns = min(kept_ns, wanted.max_age_ns + guard_ns)
        # Nothing that is read for this request alone is from before it, whatever clocks say.
        earliest_ns = asked_ns - kept_ns - SLACK_NS if wanted.max_age_ns != 0 else asked_ns
        if answer.summary.shared and wanted.max_age_ns == 0:
            raise Violation(f"2: {what}: it was shared, and may be of no age")
        for found in answer.found:
            has = dict(found.resource.attributes)
            self.check_resource(what, wanted, found.resource.id, has, earliest_ns)

    def check_resource(
        self, what: str, wanted: Wanted, id: str, has: Mapping[str, Value], earliest_ns: int
    ) -> None:
        """A client is told of a resource: it has these values, or had them since."""
        record = self.records.get(id)
        if record is None or record.is_dynamic != wanted.is_dynamic:
            raise Violation(f"{what}: {id} is no such resource")
        if wanted.is_dynamic:
            self._check_values(what, wanted, record, has, earliest_ns)
        elif not wanted.is_met(record.most):
            raise Violation(f"{what}: {record.id} has at most {record.most}")

    def _check_values(
        self,
        what: str,
        wanted: Wanted,
        record: ResourceRecord,
        has: Mapping[str, Value],
        earliest_ns: int,
    ) -> None:
        if not wanted.is_met(has):
            raise Violation(f"{what}: {record.id} has {has}")
        for each in record.history:
            is_over = each.until_ns is not None and each.until_ns < earliest_ns
            if each.values == has and not is_over:
                return
        raise Violation(f"{what}: {record.id} did not have {has} since the request")

    def matching(self, wanted: Wanted) -> list[ResourceRecord]:
        """What there is, when nothing changes any more."""
        return [record for record in self.records.values() if wanted.finds(record)]

    def check_calm(
        self, wanted: Wanted, answer: Answer, host: str, hops_to: Callable[[str], int]
    ) -> None:
        """Nothing changes any more, and every broker can be reached, over so many links."""
        matching = {record.id: record for record in self.matching(wanted)}
        have, want = {each.resource.id: each for each in answer.found}, matching.keys()
        incomplete = answer.summary.incomplete
        size = min(wanted.first or len(want), len(want))
        what = f"in calm the discovery of {wanted.text} at {host} found {sorted(have)}"
        if not have.keys() <= want or len(have) != size or incomplete:
            raise Violation(f"1: {what}, not {size} of {sorted(want)}; incomplete: {incomplete!r}")
        for id, found in have.items():
            if found.resource.hops != hops_to(matching[id].host):
                raise Violation(f"{what}: {id} over {found.resource.hops} links")
        if wanted.order_by is not None:
            best = sorted(
                hops_to(record.host)
                if wanted.order_by.is_distance
                else -record.history[-1].values[wanted.order_by.name]
                for record in matching.values()
            )
            if _ways(wanted.order_by, answer) != best[:size]:
                raise Violation(f"{what}, which are not the best by {wanted.order_by.name}")


def _ways(order: OrderBy, answer: Answer) -> list[int]:
    """By what an answer is ordered: from the lowest on."""
    found = [each.resource for each in answer.found]
    if order.is_distance:
        return [each.hops for each in found]
    return [-cast(int, each.attributes[order.name]) for each in found]


def _kind_of(answer: Answer) -> str:
    summary = answer.summary
    if summary.incomplete:
        return "incomplete"
    return "shared" if summary.shared else "whole"
