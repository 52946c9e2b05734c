"""Interval index: which stored boxes contain a box, contain a point, or are met by a box.

Each is a question about both ends of an interval. A stored box contains another if, for each
attribute of its own, the other has the attribute, begins no sooner and ends no later; it is met if
the other ends no sooner than it begins and begins no later than it ends. The index of predicates
answers that for events, once an interval is two attributes, one for each end.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from math import inf

import numpy as np

from tocsin.event.facets import TEXT
from tocsin.matching.attributes import Answers, AttributeTable
from tocsin.matching.clusters import AttributeTerm
from tocsin.matching.conjunction import EQUAL, EXISTS, PRESENT, AttributeKey
from tocsin.matching.kernel import Ints
from tocsin.matching.predicate_index import PredicateIndex
from tocsin.overlay.region import UNBOUNDED, Bound, Region

_LOWEST, _HIGHEST, _VALUE = "l", "h", "v"

_Asked = Iterator[tuple[AttributeKey, float]]


class IntervalIndex:
    """Boxes by serial number: the lower, the older.

    With `by_value`, a box of one value in some attribute is found by that value, which is much
    faster; then only boxes and points that it must contain can be asked for.
    """

    def __init__(self, *, by_value: bool, use_numba: bool | None = None) -> None:
        self._by_value = by_value
        self._index = PredicateIndex(use_numba=use_numba)
        self._attributes = AttributeTable()
        self._rows: dict[int, tuple[int, list[AttributeTerm]]] = {}  # serial -> row, terms
        self._free: list[int] = []
        self._serial = array("q")  # of each row
        self._unbounded: set[int] = set()  # boxes without a bound

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, serial: int, region: Region) -> None:
        """Store a region that is not empty, under a number that was never used."""
        row = self._free.pop() if self._free else len(self._rows)
        if row == len(self._serial):
            self._serial.append(0)
        self._serial[row] = serial
        terms = [
            (self._attributes.acquire(key), low, high) for key, low, high in self._terms(region)
        ]
        terms.sort(key=lambda term: term[0].number)
        self._rows[serial] = row, terms
        if terms:
            self._index.add(row, terms)
        else:
            self._unbounded.add(serial)

    def remove(self, serial: int) -> None:
        """Forget a stored region."""
        row, terms = self._rows.pop(serial)
        if terms:
            self._index.remove(row, terms)
        else:
            self._unbounded.discard(serial)
        for attribute, _, _ in terms:
            self._attributes.release(attribute)
        self._free.append(row)

    def containing(self, region: Region) -> Ints:
        """The stored regions that cover this one, in no order."""
        return self._find(_ends(region.bounds.items()))

    def met_by(self, region: Region) -> Ints:
        """The stored regions each of whose attributes this one has and meets, in no order."""
        assert not self._by_value
        return self._find(_ends(_reversed(region)))

    def _find(self, asked: _Asked) -> Ints:
        answers: Answers = []
        for key, value in asked:
            attribute = self._attributes.get(key)
            if attribute is not None:
                answers.append((attribute, value))
        rows = np.asarray(self._index.find(answers), np.int64)
        found = np.frombuffer(self._serial, np.int64)[rows] if len(rows) else rows
        if self._unbounded:
            found = np.append(found, np.fromiter(self._unbounded, np.int64))
        return found

    def _terms(self, region: Region) -> Iterator[tuple[AttributeKey, float, float]]:
        """What a stored region asks; an end without a bound asks nothing."""
        for (name, kind), bound in region.bounds.items():
            if isinstance(bound, str):
                yield (name, TEXT + EQUAL, bound), *PRESENT
                continue
            low, high = bound
            if self._by_value and low == high:
                yield (name, _VALUE + kind, ""), low, high
                continue
            if low > -inf:
                yield (name, _LOWEST + kind, ""), low, inf
            if high < inf:
                yield (name, _HIGHEST + kind, ""), -inf, high
            if bound == UNBOUNDED:
                yield (name, EXISTS + kind, ""), low, high


def _reversed(region: Region) -> Iterator[tuple[tuple[str, str], Bound]]:
    """The same region, with each interval from its highest to its lowest value."""
    for key, bound in region.bounds.items():
        yield key, bound if isinstance(bound, str) else (bound[1], bound[0])


def _ends(bounds: Iterable[tuple[tuple[str, str], Bound]]) -> _Asked:
    for (name, kind), bound in bounds:
        if isinstance(bound, str):
            yield (name, TEXT + EQUAL, bound), PRESENT[0]
            continue
        first, last = bound
        if first == last:
            yield (name, _VALUE + kind, ""), first
        yield (name, _LOWEST + kind, ""), first
        yield (name, _HIGHEST + kind, ""), last
        yield (name, EXISTS + kind, ""), 1.0
