"""Overlap index: which stored boxes a request meets, at a cost that follows the answer.

A request meets a box if each attribute that it asks for is one of the box's, and the two intervals
have a value in common. For each attribute there are its boxes in the order of their highest and of
their lowest values, so one search says how many can meet the request in that attribute, without
looking at them; those of the attribute with the fewest are tested. Boxes added since an order was
made wait beside it, and a box that left fails the test, so that neither is paid for one by one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf, nan

import numpy as np

from tocsin.matching.kernel import Floats, Ints

Term = tuple[Hashable, float, float]
"""(attribute, lowest, highest)."""

RECENT_MIN = 256  # boxes beside an order are tested as fast as a search in it takes
RECENT_SHARE = 64  # of an order's length: a new order for each 1/64 more costs 10 us a box at 100k
SPARSE_SHARE = 16  # an attribute that fewer boxes have, of all, has no place for each of them
ROOM_MIN = 64
FEW_MIN = 8  # intervals of one attribute: fewer are tested faster one by one
CHUNK_FIRST = 64  # of the search for any box; the next chunk is so many times as long
CHUNK_GROWTH = 8

_NO_ROWS: Ints = np.zeros(0, np.int64)
_NO_VALUES: Floats = np.zeros(0)


class _Column:
    """The intervals of one attribute, by row: in a dictionary while they are few, then in arrays
    with a place for each row, NaN where a row has none and so fails every comparison."""

    def __init__(self, room: int) -> None:
        self.count = 0
        self.recent: list[int] = []  # rows added since the order was made
        self.lows: Floats = _NO_VALUES
        self.by_low: Ints = _NO_ROWS
        self.highs: Floats = _NO_VALUES
        self.by_high: Ints = _NO_ROWS
        self._room = room
        self._few: dict[int, tuple[float, float]] | None = {}
        self._low_of: Floats = _NO_VALUES
        self._high_of: Floats = _NO_VALUES

    def put(self, row: int, low: float, high: float) -> None:
        self.count += 1
        self.recent.append(row)
        if self._few is not None:
            self._few[row] = low, high
            if self.count > max(FEW_MIN, self._room // SPARSE_SHARE):
                self._spread()
        else:
            self._low_of[row], self._high_of[row] = low, high

    def take(self, row: int) -> None:
        self.count -= 1
        if self._few is not None:
            del self._few[row]
        else:
            self._low_of[row] = self._high_of[row] = nan

    def make_room(self, room: int) -> None:
        """Let there be so many rows."""
        if self._few is None:
            more = np.full(room - self._room, nan)
            self._low_of = np.append(self._low_of, more)
            self._high_of = np.append(self._high_of, more)
        self._room = room

    def meeting(self, rows: Ints, low: float, high: float) -> Ints:
        """Those of the rows whose interval meets this one."""
        few = self._few
        if few is None:
            # Without an end there is nothing to compare with it; one comparison is for NaN.
            if high == inf:
                return rows[self._high_of[rows] >= low]
            if low == -inf:
                return rows[self._low_of[rows] <= high]
            return rows[(self._low_of[rows] <= high) & (self._high_of[rows] >= low)]
        none = (nan, nan)
        pairs = [few.get(row, none) for row in rows.tolist()]
        return rows[[one <= high and other >= low for one, other in pairs]] if pairs else rows

    def candidates(self, low: float, high: float) -> Ints:
        """The ordered rows that can meet the interval, without those that cannot on one side."""
        if self._is_out_of_order():
            self._order()
        first = int(self.highs.searchsorted(low, "left")) if low > -inf else 0
        end = int(self.lows.searchsorted(high, "right")) if high < inf else len(self.by_low)
        return self.by_high[first:] if len(self.by_high) - first < end else self.by_low[:end]

    def _is_out_of_order(self) -> bool:
        gone = len(self.by_low) + len(self.recent) - self.count
        recent_max = max(RECENT_MIN, len(self.by_low) // RECENT_SHARE)
        return len(self.recent) > recent_max or gone > RECENT_MIN + self.count

    def _order(self) -> None:
        if self._few is not None:
            rows = np.fromiter(self._few, np.int64, len(self._few))
            lows, highs = np.array(list(self._few.values())).reshape(-1, 2).T
        else:
            rows = (~np.isnan(self._low_of)).nonzero()[0]
            lows, highs = self._low_of[rows], self._high_of[rows]
        order = lows.argsort()
        self.lows, self.by_low = lows[order], rows[order]
        order = highs.argsort()
        self.highs, self.by_high = highs[order], rows[order]
        self.recent = []

    def _spread(self) -> None:
        assert self._few is not None
        self._low_of, self._high_of = np.full((2, self._room), nan)
        for row, (low, high) in self._few.items():
            self._low_of[row], self._high_of[row] = low, high
        self._few = None


class OverlapIndex:
    """Boxes by serial number: the lower, the older."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, _Column] = {}
        self._rows: dict[int, tuple[int, tuple[Hashable, ...]]] = {}  # serial -> row, attributes
        self._free_rows: list[int] = []
        self._serial: Ints = np.zeros(ROOM_MIN, np.int64)  # of each row

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, serial: int, terms: Sequence[Term]) -> None:
        """Store a box of these terms, one an attribute, under a number that was never used."""
        row = self._free_rows.pop() if self._free_rows else len(self._rows)
        if row == len(self._serial):
            self._serial = np.append(self._serial, np.zeros(row, np.int64))
            for column in self._columns.values():
                column.make_room(2 * row)
        self._serial[row] = serial
        self._rows[serial] = row, tuple(key for key, _, _ in terms)
        for key, low, high in terms:
            found = self._columns.get(key)
            if found is None:
                found = self._columns[key] = _Column(len(self._serial))
            found.put(row, low, high)

    def remove(self, serial: int) -> None:
        """Forget a stored box."""
        row, keys = self._rows.pop(serial)
        for key in keys:
            column = self._columns[key]
            column.take(row)
            if not column.count:
                del self._columns[key]
        self._free_rows.append(row)

    def find(self, terms: Sequence[Term]) -> Ints:
        """The boxes that a request of these terms meets, the oldest first."""
        if not terms:
            return np.sort(np.fromiter(self._rows, np.int64, len(self._rows)))
        ordered, recent = self._candidates(terms)
        rows = np.concatenate((ordered, recent)) if len(recent) else ordered
        found = self._serial[self._meeting(rows, terms)]
        found.sort()
        if len(recent):  # a row that was used again may be among both
            is_new = found[1:] != found[:-1]
            if not is_new.all():
                return np.append(found[:1], found[1:][is_new])
        return found

    def any(self, terms: Sequence[Term]) -> bool:
        """Whether a request of these terms meets a box."""
        if not terms:
            return bool(self._rows)
        for rows in self._candidates(terms):
            start, size = 0, CHUNK_FIRST
            while start < len(rows):
                if len(self._meeting(rows[start : start + size], terms)):
                    return True
                start, size = start + size, size * CHUNK_GROWTH
        return False

    def _candidates(self, terms: Sequence[Term]) -> tuple[Ints, Ints]:
        """The boxes to test, ordered and recent: none if an attribute is in no box."""
        best, fewest = _NO_ROWS, -1
        recent: list[int] = []
        for key, low, high in terms:
            column = self._columns.get(key)
            if column is None:
                return _NO_ROWS, _NO_ROWS
            rows = column.candidates(low, high)
            count = len(rows) + len(column.recent)
            if fewest < 0 or count < fewest:
                best, recent, fewest = rows, column.recent, count
        return best, np.array(recent, np.int64) if recent else _NO_ROWS

    def _meeting(self, rows: Ints, terms: Sequence[Term]) -> Ints:
        for key, low, high in terms:
            if not len(rows):
                break
            rows = self._columns[key].meeting(rows, low, high)
        return rows
