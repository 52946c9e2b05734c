"""Interest: what anybody wants just now, so that a publisher can learn that nobody listens."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.event.filter import ByConcept, Filter
from tocsin.matching.covering import intersects
from tocsin.matching.lookup_index import LookupIndex
from tocsin.ontology import in_use
from tocsin.wire.blackboard.messages import Profile
from tocsin.wire.blackboard.normal import MESSAGES, may_want_messages

ASKED_MAX = 10_000  # filters whose answers are remembered
_WHOLE_MESSAGES = "whole messages of the blackboard"


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
        self._asked: dict[Filter | str, tuple[int, Filter | None]] = {}
        self._concepts: LookupIndex[int] = LookupIndex()
        self._profile = Profile(0)  # as it was last read
        self._profile_version = 0
        self._profile_of = 0  # the version of ours that it was made of
        self._everything = False

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
        if isinstance(filter, ByConcept):
            self._concepts.subscribe(reader, filter.names())
        elif isinstance(former, ByConcept):
            self._concepts.unsubscribe(reader)
        if self._counts is not None:
            if filter is not None:
                self._count(self._counts, filter)
            if former is not None:
                self._discount(self._counts, former)

    def asks_for(self, reader: int, concepts: frozenset[str] | None) -> None:
        """Of the blackboard's messages this reader asks for these, and of others for nothing: it
        takes what comes, and for its sake alone nobody need publish."""
        self.version += 1
        if concepts is None:
            self._concepts.unsubscribe(reader)
        else:
            self._concepts.subscribe(reader, concepts)

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
        return self._any(filter, lambda each: intersects(each, filter))

    def profile_version(self) -> int:
        """Another one exactly when the aggregate profile is another.

        What it costs is that of what changed; the profile itself is made when somebody reads it.
        """
        if self._profile_of != self.version:
            self._profile_of = self.version
            everything = self._any(_WHOLE_MESSAGES, _wants_whole_messages)
            changed = self._concepts.changed
            if changed or everything != self._everything or not self._profile_version:
                changed.clear()
                self._everything = everything
                self._profile_version += 1
        return self._profile_version

    def profile(self) -> Profile:
        """The aggregate subscription profile (paper 004)."""
        version = self.profile_version()
        if self._profile.version != version:
            concepts = tuple(sorted(self._concepts.aggregate()))
            self._profile = Profile(version, concepts, self._everything)
        return self._profile

    def _any(self, question: Filter | str, fits: Callable[[Filter], bool]) -> bool:
        """Whether it fits any filter that somebody has. The answer is remembered with the filter
        that shows it; only filters that came since are looked at."""
        counts = self._counts
        if counts is None:
            self._counts = counts = {}
            for wanted in self._wanted.values():
                self._count(counts, wanted)
        looked_at, shown_by = self._asked.get(question, (0, None))
        if shown_by is not None and shown_by in counts:
            return True
        if shown_by is not None:
            looked_at = 0  # it is gone, and those beside it were not looked at
        shown_by = self._first_since(counts, looked_at, fits)
        if len(self._asked) >= ASKED_MAX:
            self._asked.clear()
        self._asked[question] = (self.version, shown_by)
        return shown_by is not None

    def _first_since(
        self, counts: dict[Filter, int], version: int, fits: Callable[[Filter], bool]
    ) -> Filter | None:
        for each in reversed(counts):
            if self._since[each] <= version:
                return None
            if fits(each):
                return each
        return None


def _wants_whole_messages(filter: Filter) -> bool:
    """Who asks by concept says what it wants of a message; any other may want all of it."""
    if isinstance(filter, ByConcept) or not may_want_messages(filter, in_use()):
        return False
    return intersects(filter, MESSAGES)
