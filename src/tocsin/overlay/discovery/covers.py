"""The SrdSubList of paper 001: requests whose answers may be shared with those that they cover."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Final

from tocsin.overlay.discovery.context import Context
from tocsin.overlay.discovery.paths import Path
from tocsin.overlay.region import Region, Regions

COVER_TRIES_MAX: Final = 8  # covers that are looked at, if the first ones cannot be used


class CoverList:
    """One-time dynamic requests that nothing covered when they came (A17)."""

    def __init__(self, context: Context, regions: Regions[str]) -> None:
        self._context = context
        self._regions = regions
        self._paths: dict[str, Path] = {}

    def add(self, path: Path, now_ns: int) -> None:
        """Lists a request, if its answer may be shared at all."""
        if self._context.options.similarity and now_ns < path.shared_until_ns:
            path.is_listed = True
            self._paths[path.id] = path
            self._regions.add(path.id, path.region)

    def remove(self, path: Path) -> None:
        if path.is_listed:
            path.is_listed = False
            del self._paths[path.id]
            self._regions.remove(path.id)

    def find(self, path: Path, now_ns: int) -> Path | None:
        """The oldest request that covers this one and whose answer it can use."""
        if not self._context.options.similarity or path.request.max_age_ns == 0:
            return None
        self._context.counters.covering_lookups += 1
        unusable = path.failed_covers | {path.id}  # A15
        found = (each for each in self._regions.covering(path.region) if each not in unusable)
        for request_id in islice(found, COVER_TRIES_MAX):
            cover = self._paths[request_id]
            if self._is_usable(cover, path, now_ns):
                return cover
        return None

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
            for request_id in self._regions.requests_overlapping(row):
                self.remove(self._paths[request_id])
