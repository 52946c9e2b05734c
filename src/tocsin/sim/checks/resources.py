"""ResourceCheck: which resources there are, what values they had when, and what a request finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tocsin.event.event import Value
from tocsin.services.discovery.found import Answer
from tocsin.sim.world import Violation, World

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
    """A request: the least that each attribute must be."""

    least: Mapping[str, int]
    is_dynamic: bool

    @property
    def text(self) -> str:
        return " and ".join(f"{name} >= {value}" for name, value in self.least.items())

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

    def check(self, wanted: Wanted, answer: Answer, asked_ns: int, kept_ns: int) -> None:
        """An answer leaves a broker. `kept_ns`: how long results may lie in caches."""
        self.answered += 1
        self._world.seen[f"discovery: {_kind_of(answer)}"] += 1
        ids = [found.resource.id for found in answer.found]
        what = f"the discovery of {wanted.text} found {ids}"
        if len(ids) != len(set(ids)):
            raise Violation(f"{what}: one of them twice")
        for found in answer.found:
            record = self.records.get(found.resource.id)
            if record is None or record.is_dynamic != wanted.is_dynamic:
                raise Violation(f"{what}: {found.resource.id} is no such resource")
            if wanted.is_dynamic:
                has = dict(found.resource.attributes)
                self._check_values(what, wanted, record, has, asked_ns - kept_ns - SLACK_NS)
            elif not wanted.is_met(record.most):
                raise Violation(f"{what}: {record.id} has at most {record.most}")

    def _check_values(
        self,
        what: str,
        wanted: Wanted,
        record: ResourceRecord,
        has: dict[str, Value],
        earliest_ns: int,
    ) -> None:
        if not wanted.is_met(has):
            raise Violation(f"{what}: {record.id} has {has}")
        for each in record.history:
            is_over = each.until_ns is not None and each.until_ns < earliest_ns
            if each.values == has and not is_over:
                return
        raise Violation(f"{what}: {record.id} did not have {has} since the request")

    def check_calm(self, wanted: Wanted, answer: Answer, host: str) -> None:
        """Nothing changes any more, and every broker can be reached."""
        have = sorted(found.resource.id for found in answer.found)
        want = sorted(record.id for record in self.records.values() if wanted.finds(record))
        incomplete = answer.summary.incomplete
        if have != want or incomplete:
            raise Violation(
                f"in calm the discovery of {wanted.text} at {host} found {have}, not {want}; "
                f"incomplete: {incomplete!r}"
            )


def _kind_of(answer: Answer) -> str:
    summary = answer.summary
    if summary.incomplete:
        return "incomplete"
    return "shared" if summary.shared else "whole"
