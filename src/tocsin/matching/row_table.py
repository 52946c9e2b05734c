"""RowTable: rows of one width, those of a cluster side by side, so that a kernel can scan them.

A row is `width` terms (attribute, lowest, highest). Each cluster has a slice of the table with room
for a power of two of rows; when it is full the cluster moves to a slice twice as long. A row that
leaves is overwritten by the last of its cluster. Nothing is ever rebuilt or sorted.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from tocsin.matching.kernel import Floats, Ints, SmallInts

Term = tuple[int, float, float]
"""(attribute number, lowest, highest): the attribute is there, and its value between the two."""

ALWAYS: Term = (0, float("-inf"), float("inf"))
"""Fills a row up to its table's width: attribute 0 is one that every event has."""

_SLOTS_AT_FIRST = 64


def table_width(term_count: int) -> int:
    """The width of the table for a row of so many terms: the next power of two, at least 2."""
    return 1 << max(term_count - 1, 1).bit_length()


def _next_room(room: int) -> int:
    """Many clusters have one row and stay so; one that has two will soon have more."""
    return 2 * room if room > 1 else 4 if room else 1


class RowTable:
    """The rows of one width. `slots` (shared by all tables) says where each row stands."""

    def __init__(self, width: int, slots: array[int]) -> None:
        self.width = width
        self.at: SmallInts = np.zeros((_SLOTS_AT_FIRST, width), np.int32)
        self.lo: Floats = np.zeros((_SLOTS_AT_FIRST, width), np.float64)
        self.hi: Floats = np.zeros((_SLOTS_AT_FIRST, width), np.float64)
        self.row: Ints = np.zeros(_SLOTS_AT_FIRST, np.int64)
        self.start: Ints = np.zeros(1, np.int64)
        self.count: Ints = np.zeros(1, np.int64)
        self._room: dict[int, int] = {}  # of each cluster that has rows here
        self._free: dict[int, list[int]] = {}  # room -> where slices of that length begin
        self._slots_taken = 0
        self._slots = slots

    def make_room(self, cluster_count: int) -> None:
        """Let `start` and `count` have a place for each of so many clusters."""
        if cluster_count > len(self.count):
            # In place, like the terms: no view of these arrays outlives a call.
            size = max(cluster_count, 2 * len(self.count))
            self.start.resize(size, refcheck=False)
            self.count.resize(size, refcheck=False)

    def put(self, row: int, cluster: int, terms: Sequence[Term]) -> None:
        """Add the row to the cluster, for which there is room."""
        count = int(self.count[cluster])
        if count == self._room.get(cluster, 0):
            self._move(cluster, count)
        slot = int(self.start[cluster]) + count
        padding = self.width - len(terms)
        padded = [*terms, *[ALWAYS] * padding] if padding else terms
        self.at[slot], self.lo[slot], self.hi[slot] = zip(*padded, strict=True)
        self.row[slot] = row
        self.count[cluster] = count + 1
        self._slots[row] = slot

    def take(self, row: int, cluster: int) -> None:
        """Remove the row from the cluster."""
        slot = self._slots[row]
        count = int(self.count[cluster]) - 1
        start = int(self.start[cluster])
        last = start + count
        if last != slot:
            for column in (self.at, self.lo, self.hi, self.row):
                column[slot] = column[last]
            self._slots[int(self.row[slot])] = slot
        self.count[cluster] = count
        if not count:
            self._free.setdefault(self._room.pop(cluster), []).append(start)

    def _move(self, cluster: int, count: int) -> None:
        """Give the cluster a longer slice."""
        old_room = self._room.get(cluster, 0)
        room = _next_room(old_room)
        start = self._slice(room)
        if old_room:
            old = int(self.start[cluster])
            for column in (self.at, self.lo, self.hi, self.row):
                column[start : start + count] = column[old : old + count]
            for offset, row in enumerate(self.row[start : start + count].tolist()):
                self._slots[row] = start + offset
            self._free.setdefault(old_room, []).append(old)
        self.start[cluster] = start
        self._room[cluster] = room

    def _slice(self, room: int) -> int:
        free = self._free.get(room)
        if free:
            return free.pop()
        start = self._slots_taken
        self._slots_taken += room
        if self._slots_taken > len(self.row):
            size = max(self._slots_taken, len(self.row) + len(self.row) // 2)
            for terms in (self.at, self.lo, self.hi):
                terms.resize((size, self.width), refcheck=False)
            self.row.resize(size, refcheck=False)
        return start
