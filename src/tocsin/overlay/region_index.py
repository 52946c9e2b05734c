"""Region index: a table of regions whose answers cost what they contain, not what is stored.

There is an index for each kind of question, made when the question is first asked and kept in step
from then on: a table of advertisements is never asked for covers, one of requests seldom for
anything else. Few regions, and the youngest ones, are asked for covers without an index. All of
them equal a scan of the table by test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Final, Generic

import numpy as np

from tocsin.event.event import Value
from tocsin.matching.kernel import Ints
from tocsin.overlay.interval_index import IntervalIndex
from tocsin.overlay.overlap_index import OverlapIndex, Term
from tocsin.overlay.region import Key, Region, covers, day_rows, point

# Few are compared one by one. A broker is asked now and then, and other processes have the
# processor in between: then the code and the data of an index are in none of its caches, and a
# look-up or an insertion takes about six times as long as one after another. A comparison is little
# code, and insertions wait until there are enough of them to be made one after another.
FEW_MAX: Final = 64  # of a table without an index
LATE_MAX: Final = 32  # beside the index


class RegionIndex(Generic[Key]):
    """`Regions`, answered by indexes."""

    def __init__(self, *, use_numba: bool | None = None) -> None:
        self._use_numba = use_numba
        self._added = 0
        self._rows: dict[Key, tuple[int, Region, str]] = {}  # the oldest first
        self._keys: dict[int, Key] = {}  # by serial number
        self._covers: IntervalIndex | None = None
        self._late: dict[int, tuple[Key, Region]] = {}  # not in `_covers` yet: the youngest
        self._requests: IntervalIndex | None = None
        self._offers: dict[str, OverlapIndex] | None = None  # by group

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, key: Key, region: Region, group: str = "") -> None:
        self.remove(key)
        serial = self._added
        self._added += 1
        self._rows[key] = serial, region, group
        self._keys[serial] = key
        if region.is_empty:
            return
        if self._covers is not None:
            self._late[serial] = key, region
            if len(self._late) > LATE_MAX:
                self._index_late(self._covers)
        if self._requests is not None:
            self._requests.add(serial, region)
        if self._offers is not None:
            _offer(self._offers, serial, region, group)

    def remove(self, key: Key) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            return
        serial, region, group = row
        del self._keys[serial]
        if region.is_empty:
            return
        if self._covers is not None and self._late.pop(serial, None) is None:
            self._covers.remove(serial)
        if self._requests is not None:
            self._requests.remove(serial)
        if self._offers is not None:
            self._offers[group].remove(serial)
            if not self._offers[group]:
                del self._offers[group]

    def covering(self, region: Region) -> Iterator[Key]:
        if region.is_empty:  # everything covers it
            return iter(self._rows)
        if self._covers is None:
            if len(self._rows) <= FEW_MAX:
                return (key for key, (_, wide, _) in self._rows.items() if covers(wide, region))
            self._covers = self._interval_index(by_value=True)
        late = (key for key, wide in self._late.values() if covers(wide, region))
        if not len(self._covers):
            return late
        found = self._covers.containing(region)
        found.sort()
        keys = self._keys
        return chain((keys[serial] for serial in found.tolist()), late)

    def overlapping(self, request: Region) -> list[Key]:
        if request.is_empty or not self._rows:
            return []
        terms = _terms(request)
        found = [index.find(terms) for index in self._by_group().values()]
        if len(found) == 1:  # in order already
            return [self._keys[serial] for serial in found[0].tolist()]
        return self._oldest_first(np.concatenate(found)) if found else []

    def groups_overlapping(self, request: Region) -> set[str]:
        if request.is_empty or not self._rows:
            return set()
        terms = _terms(request)
        return {group for group, index in self._by_group().items() if index.any(terms)}

    def requests_overlapping(self, advertisement: Region) -> list[Key]:
        if advertisement.is_empty or not self._rows:
            return []
        if self._requests is None:
            self._requests = self._interval_index(by_value=False)
        return self._oldest_first(self._requests.met_by(advertisement))

    def admitting(self, values: Mapping[str, Value]) -> list[Key]:
        if not self._rows:
            return []
        if self._covers is None:
            self._covers = self._interval_index(by_value=True)
        self._index_late(self._covers)
        found = [self._covers.containing(row) for row in day_rows(point(values))]
        return self._oldest_first(np.unique(np.concatenate(found)))

    def _interval_index(self, *, by_value: bool) -> IntervalIndex:
        index = IntervalIndex(by_value=by_value, use_numba=self._use_numba)
        for serial, region, _ in self._rows.values():
            if not region.is_empty:
                index.add(serial, region)
        return index

    def _index_late(self, index: IntervalIndex) -> None:
        for serial, (_, region) in self._late.items():
            index.add(serial, region)
        self._late.clear()

    def _by_group(self) -> dict[str, OverlapIndex]:
        if self._offers is None:
            self._offers = {}
            for serial, region, group in self._rows.values():
                if not region.is_empty:
                    _offer(self._offers, serial, region, group)
        return self._offers

    def _oldest_first(self, serials: Ints) -> list[Key]:
        keys = self._keys
        return [keys[serial] for serial in np.sort(serials).tolist()]


def _offer(offers: dict[str, OverlapIndex], serial: int, region: Region, group: str) -> None:
    index = offers.get(group)
    if index is None:
        index = offers[group] = OverlapIndex()
    index.add(serial, _terms(region))


def _terms(region: Region) -> Sequence[Term]:
    """A text is an attribute of its own, which a box has or has not."""
    return [
        ((*key, bound), -inf, inf) if isinstance(bound, str) else (key, *bound)
        for key, bound in region.bounds.items()
    ]
