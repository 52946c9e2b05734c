"""Interest: what anybody wants just now, so that a publisher can be told when nobody listens."""

from __future__ import annotations

from tocsin.event.filter import Filter
from tocsin.matching.covering import intersects

ASKED_MAX = 10_000  # filters whose answers are remembered


class Interest:
    """The filters of all who are active. Nothing is counted before somebody asks."""

    def __init__(self) -> None:
        self.version = 1  # grows with every change
        self._wanted: dict[int, Filter] = {}  # by reader
        # How many want each distinct one; None until somebody asks. A filter that appears goes to
        # the end, so those that came after a version are the last ones.
        self._counts: dict[Filter, int] | None = None
        self._since: dict[Filter, int] = {}
        # The version at which it was answered, and a filter that shows the answer to be yes.
        self._asked: dict[Filter, tuple[int, Filter | None]] = {}

    def wants(self, reader: int, filter: Filter | None) -> None:
        """From now on this reader wants that; None for nothing."""
        former = self._wanted.get(reader)
        if former is filter:
            return
        self.version += 1
        if filter is None:
            del self._wanted[reader]
        else:
            self._wanted[reader] = filter
        if self._counts is not None:
            if filter is not None:
                self._count(self._counts, filter)
            if former is not None:
                self._discount(self._counts, former)

    def _count(self, counts: dict[Filter, int], filter: Filter) -> None:
        if filter not in counts:
            self._since[filter] = self.version
        counts[filter] = counts.get(filter, 0) + 1

    def _discount(self, counts: dict[Filter, int], filter: Filter) -> None:
        counts[filter] -= 1
        if not counts[filter]:
            del counts[filter], self._since[filter]

    def has(self, filter: Filter) -> bool:
        """False only if nobody who is active wants any event that passes the filter."""
        counts = self._counts
        if counts is None:
            self._counts = counts = {}
            for wanted in self._wanted.values():
                self._count(counts, wanted)
        looked_at, shown_by = self._asked.get(filter, (0, None))
        if shown_by is not None and shown_by in counts:
            return True
        if shown_by is not None:
            looked_at = 0  # it is gone, and those beside it were not looked at
        shown_by = self._first_since(counts, looked_at, filter)
        if len(self._asked) >= ASKED_MAX:
            self._asked.clear()
        self._asked[filter] = (self.version, shown_by)
        return shown_by is not None

    def _first_since(
        self, counts: dict[Filter, int], version: int, wanted: Filter
    ) -> Filter | None:
        for each in reversed(counts):
            if self._since[each] <= version:
                return None
            if intersects(each, wanted):
                return each
        return None
