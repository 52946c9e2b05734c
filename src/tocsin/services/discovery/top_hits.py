"""TopHits: as many hits as an answer may have, in the order that was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from tocsin.event.event import Value
from tocsin.event.facets import number_of
from tocsin.event.value import Quantity, in_base_units
from tocsin.overlay.discovery.effects import Summary
from tocsin.services.discovery.answer import Answer, Hit
from tocsin.wire.api.resource_request import DiscoveryRequest, OrderBy

_Key = tuple[int, float, str]


def sorted_hits(found: Sequence[Hit], order: OrderBy) -> list[Hit]:
    """Numbers before texts; what lacks the attribute comes last, whichever the direction."""
    if order.is_distance:
        return sorted(found, key=_distance, reverse=order.is_descending)
    having = [each for each in found if order.name in each.resource.attributes]
    lacking = [each for each in found if order.name not in each.resource.attributes]
    having.sort(key=lambda each: _id(each))
    having.sort(
        key=lambda each: _key(each.resource.attributes[order.name]), reverse=order.is_descending
    )
    return having + sorted(lacking, key=_id)


class TopHits:
    """What a request has found: no more of it than may be answered, and how much it was."""

    def __init__(self, limit: int, order: OrderBy | None) -> None:
        self._limit = limit
        self._order = order
        self._found: list[Hit] = []
        self.count = 0

    def __len__(self) -> int:
        """How many are held."""
        return len(self._found)

    def add(self, found: Iterable[Hit]) -> None:
        before = len(self._found)
        self._found.extend(found)
        self.count += len(self._found) - before
        if len(self._found) > 2 * self._limit:  # not each time: ordering is dear
            self._found = self.shown()

    def shown(self) -> list[Hit]:
        """The first in the order that was asked for, or that came."""
        everything = self._found if self._order is None else sorted_hits(self._found, self._order)
        return everything[: self._limit]


def _distance(found: Hit) -> tuple[int, float, str]:
    waited_s = found.round_trip_s
    return found.resource.hops, inf if waited_s is None else waited_s, found.resource.id


def _id(found: Hit) -> tuple[str, str]:
    return found.resource.id, found.resource.broker


def _key(value: Value) -> _Key:
    """Quantities compare by what they are in base units."""
    inside = value.value if isinstance(value, Quantity) else value
    if isinstance(inside, str):
        return 1, 0.0, inside
    number = number_of(inside)
    if number is None:
        return 2, 0.0, ""
    unit = value.unit if isinstance(value, Quantity) else None
    base = None if unit is None else in_base_units(float(number), unit)
    return 0, float(number) if base is None else base[1], ""


def answer_of(best: TopHits, summary: Summary, asked: DiscoveryRequest) -> Answer:
    """What is answered to the request, and whether there was more."""
    found = best.shown()
    stopped_early = len(found) < best.count
    if stopped_early and not asked.first:
        summary = replace(
            summary,
            incomplete=f"{best.count:,} match, {len(found):,} are shown: say how many as first",
        )
    return Answer(found, summary, stopped_early)
