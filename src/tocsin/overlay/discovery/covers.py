"""The SrdSubList of paper 001: requests whose answers may be shared with those that they cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from heapq import merge
from itertools import islice
from typing import Final

from tocsin.overlay.discovery.context import Context
from tocsin.overlay.discovery.paths import Path
from tocsin.overlay.region import Region, Regions

COVER_TRIES_MAX: Final = 8  # covers that are looked at, if the first ones cannot be used


class CoverList:
    """One-time dynamic requests that nothing covered when they came (A17).

    Those of clients here and those that passed are looked up apart: at a broker with one neighbour,
    nothing that came from there is of use to what comes from there (A10), and that is nearly all.
    """

    def __init__(
        self, context: Context, of_clients: Regions[str], of_neighbours: Regions[str]
    ) -> None:
        self._context = context
        self._of_clients = of_clients
        self._of_neighbours = of_neighbours
        self._paths: dict[str, Path] = {}
        self._numbers: dict[str, int] = {}  # the order in which they were listed
        self._listed = 0
        self._last_hops: Counter[str] = Counter()  # of those that passed

    def add(self, path: Path, now_ns: int) -> None:
        """Lists a request, if its answer may be shared at all."""
        if self._context.options.similarity and now_ns < path.shared_until_ns:
            path.is_listed = True
            self._listed += 1
            self._paths[path.id], self._numbers[path.id] = path, self._listed
            self._table_of(path).add(path.id, path.region)
            if not path.is_host:
                self._last_hops[path.last_hop] += 1

    def remove(self, path: Path) -> None:
        if path.is_listed:
            path.is_listed = False
            del self._paths[path.id], self._numbers[path.id]
            self._table_of(path).remove(path.id)
            if not path.is_host:
                self._last_hops[path.last_hop] -= 1
                if not self._last_hops[path.last_hop]:
                    del self._last_hops[path.last_hop]

    def _table_of(self, path: Path) -> Regions[str]:
        return self._of_clients if path.is_host else self._of_neighbours

    def find(self, path: Path, now_ns: int) -> Path | None:
        """The oldest request that covers this one and whose answer it can use."""
        if not self._context.options.similarity or path.request.max_age_ns == 0:
            return None
        self._context.counters.covering_lookups += 1
        unusable = path.failed_covers | {path.id}  # A15
        found = (each for each in self._covering(path) if each not in unusable)
        for request_id in islice(found, COVER_TRIES_MAX):
            cover = self._paths[request_id]
            if self._is_usable(cover, path, now_ns):
                return cover
        return None

    def _covering(self, path: Path) -> Iterator[str]:
        """The oldest first."""
        here = self._of_clients.covering(path.region)
        if self._last_hops.keys() <= {path.last_hop}:
            return here
        passed = self._of_neighbours.covering(path.region)
        return merge(here, passed, key=self._numbers.__getitem__)

    def _is_usable(self, cover: Path, path: Path, now_ns: int) -> bool:
        return (
            now_ns < cover.shared_until_ns
            and (cover.is_host or cover.last_hop in self._context.neighbours)
            and now_ns - cover.tally.since_ns <= path.request.max_age_ns
            and (cover.is_host or cover.last_hop != path.last_hop)  # A10
            and not cover.tally.incomplete
            and len(cover.waiters) < self._context.options.waiting_max
        )

    def remove_overlapping(self, rows: Collection[Region]) -> None:
        """A12: an answer from before an advertisement came or went is not shared any more."""
        for row in rows:
            for table in (self._of_clients, self._of_neighbours):
                for request_id in table.requests_overlapping(row):
                    self.remove(self._paths[request_id])
