"""Predicate index: which stored rows hold for the attributes of one event, by access-key clusters.

A row is a conjunction of terms (attribute, lowest, highest). It is stored once, in the cluster of
its access key: an attribute that it wants at one value, or else its two least-used attributes, or
its only one. An event reaches few clusters, through dictionaries, and a kernel tests the rows of
those. ADR 0004 has the alternatives and the measurements.
"""

from __future__ import annotations

from array import array

import numpy as np

from tocsin.matching.attributes import Answers
from tocsin.matching.clusters import AttributeTerm, Clusters
from tocsin.matching.kernel import Floats, Ints, Kernel, numba_kernel, numpy_kernel
from tocsin.matching.row_table import RowTable, table_width

FEW_ROWS_MAX = 64  # so many are tested faster one by one than by a kernel
NUMBA_ROWS_MIN = 4_096  # from here on the kernel earns back the second it takes to compile


class PredicateIndex:
    """Rows by number, found by what an event answers."""

    def __init__(
        self,
        *,
        use_numba: bool | None = None,
        few_rows_max: int = FEW_ROWS_MAX,
        numba_rows_min: int = NUMBA_ROWS_MIN,
    ) -> None:
        self._few_rows_max = few_rows_max
        self._numba_rows_min = numba_rows_min
        self._kernel: Kernel = numpy_kernel
        self._kernel_is_final = use_numba is False
        self._few: dict[int, list[AttributeTerm]] | None = {}
        self._row_count = 0
        self._tables: dict[int, RowTable] = {}
        self._slots = array("q")  # row -> where it stands on its table
        self._cluster_of = array("q")  # row -> its cluster
        self._clusters = Clusters()
        self._seen: Floats = np.full(1, np.nan)
        self._found: Ints = np.zeros(0, np.int64)
        if use_numba:
            self._compile()

    def __len__(self) -> int:
        return self._row_count

    @property
    def cluster_count(self) -> int:
        """How many clusters have rows."""
        return self._clusters.in_use

    def add(self, row: int, terms: list[AttributeTerm]) -> None:
        """Store a row under a number that is free. Terms: at least one, in order of attributes."""
        self._row_count += 1
        if self._few is not None:
            self._few[row] = terms
            if len(self._few) <= self._few_rows_max:
                return
            few, self._few = self._few, None
            for each, its_terms in few.items():
                self._insert(each, its_terms)
            return
        self._insert(row, terms)

    def remove(self, row: int, terms: list[AttributeTerm]) -> None:
        """Forget a stored row; `terms` are those it was stored with."""
        self._row_count -= 1
        if self._few is not None:
            del self._few[row]
            return
        cluster = self._cluster_of[row]
        self._tables[table_width(len(terms))].take(row, cluster)
        self._clusters.leave(cluster)

    def find(self, answers: Answers) -> Ints | list[int]:
        """The rows all of whose terms hold, each once, in no order."""
        if self._few is not None:
            return _find_among(self._few, answers)
        clusters = self._clusters.reached(answers)
        if not clusters:
            return []
        if self._row_count >= self._numba_rows_min and not self._kernel_is_final:
            self._compile()
        return self._find_in(clusters, answers)

    def _find_in(self, clusters: list[int], answers: Answers) -> Ints:
        numbers = [attribute.number for attribute, _ in answers]
        self._make_room_to_see(max(numbers))
        if self._row_count > len(self._found):
            self._found = np.zeros(2 * self._row_count, np.int64)
        seen, found, found_count = self._seen, self._found, 0
        seen[numbers] = [value for _, value in answers]
        reached = np.array(clusters, np.int64)
        for table in self._tables.values():
            table.make_room(len(self._clusters))
            found_count = self._kernel(
                reached,
                table.start,
                table.count,
                table.at,
                table.lo,
                table.hi,
                table.row,
                seen,
                found,
                found_count,
            )
        seen[numbers] = np.nan
        return found[:found_count]

    def _insert(self, row: int, terms: list[AttributeTerm]) -> None:
        if row >= len(self._slots):
            more = array("q", bytes(8 * (row + 1 - len(self._slots))))
            self._slots.extend(more)
            self._cluster_of.extend(more)
        self._make_room_to_see(terms[-1][0].number)
        cluster = self._clusters.join(terms)
        self._cluster_of[row] = cluster
        width = table_width(len(terms))
        table = self._tables.get(width)
        if table is None:
            table = self._tables[width] = RowTable(width, self._slots)
        table.make_room(len(self._clusters))
        table.put(row, cluster, [(attribute.number, lo, hi) for attribute, lo, hi in terms])

    def _make_room_to_see(self, number: int) -> None:
        if number >= len(self._seen):
            self._seen = np.full(2 * number, np.nan)
            self._seen[0] = 0.0

    def _compile(self) -> None:
        self._kernel = numba_kernel() or numpy_kernel
        self._kernel_is_final = True


def _find_among(rows: dict[int, list[AttributeTerm]], answers: Answers) -> list[int]:
    seen = dict(answers)
    found: list[int] = []
    for row, terms in rows.items():
        for attribute, lo, hi in terms:
            value = seen.get(attribute)
            if value is None or not lo <= value <= hi:
                break
        else:
            found.append(row)
    return found
