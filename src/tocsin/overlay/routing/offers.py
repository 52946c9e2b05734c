"""Offers: what a neighbour advertises, and which subscriptions it meets, with a limit on the work.

Offers under another first level of topics are passed over; the others are compared one by one. All
comparisons for one neighbour are counted: past a limit it is sent every subscription, as one is
that advertises very much. That costs messages, and never an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tocsin.errors import RoutingTableFull
from tocsin.event.filter import Filter
from tocsin.event.topic_levels import MANY, ONE
from tocsin.matching.covering import intersects, never_matches
from tocsin.matching.regions import inhabited_regions
from tocsin.overlay.routing.links import Link

COMPARISONS_MAX = 300_000  # for one neighbour: some 3 s of work
COMPARISONS_PER_S = 5_000  # so many are forgiven again
GROUPED_MIN = 8  # offers: fewer are compared at once


class Offers:
    """Of one neighbour, or those that came or went at once."""

    def __init__(self, link: Link, filters: list[Filter], *, is_everything: bool) -> None:
        self.is_everything = is_everything
        self._link = link
        self._anywhere: list[Filter] = []
        self._by_level: dict[str, list[Filter]] = {}
        if is_everything:
            return
        for each in filters:
            levels = _first_levels(each) if len(filters) >= GROUPED_MIN else None
            if levels is None:
                self._anywhere.append(each)
            else:
                for level in levels:
                    self._by_level.setdefault(level, []).append(each)

    def meet(self, wanted: Filter) -> bool:
        """False only if nothing that is offered passes the filter."""
        if self.is_everything:
            return not never_matches(wanted)
        for offered in self._candidates(wanted):
            self._link.compared += 1
            if intersects(wanted, offered):
                return True
        return False

    def _candidates(self, wanted: Filter) -> Iterable[Filter]:
        yield from self._anywhere
        if self._by_level:
            levels = _first_levels(wanted)
            for level in sorted(self._by_level if levels is None else levels):
                yield from self._by_level.get(level, ())


@lru_cache(maxsize=16_384)
def _first_levels(wanted: Filter) -> frozenset[str] | None:
    """One of these is the first level of the topic of each event that passes; None: it may be any
    topic, or none."""
    regions = inhabited_regions(wanted)
    if regions is None:
        return None
    found: set[str] = set()
    for region in regions:
        first = {pattern.levels[0] for pattern in region.patterns} - {ONE, MANY}
        if not first:
            return None
        found.add(min(first))
    return frozenset(found)


def too_costly(link: Link) -> RoutingTableFull | None:
    """The error, once, when more was compared for the neighbour than may be."""
    if link.compared <= COMPARISONS_MAX or link.is_costly:
        return None
    link.is_costly = True
    return RoutingTableFull(
        f"to compare the advertisements of {link.neighbour} with all subscriptions takes too long: "
        "it is sent every subscription",
        remedy="Let its brokers advertise fewer and wider filters.",
    )


def forgive(link: Link, passed_s: float) -> None:
    """Time has passed, in which as much may be compared."""
    link.compared = max(0, link.compared - int(passed_s * COMPARISONS_PER_S))
