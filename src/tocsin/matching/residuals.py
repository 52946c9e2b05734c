"""Residuals: the conditions that no index answers, each kept once however many rows share it."""

from __future__ import annotations

from collections import Counter

from tocsin.event.event import CONTEXT_NAMES
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Predicate,
    Sql,
    TextIs,
    TopicIs,
    TopicMatches,
    XPath,
)


class Residuals:
    """Filters by number, from 1. Says which names of an event they can ask for."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.beyond_context = 0  # how many can ask for names that are in no context
        self._filters: dict[int, Filter] = {}
        self._uses: Counter[int] = Counter()
        self._numbers: dict[Filter, int] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._filters)

    def __getitem__(self, number: int) -> Filter:
        return self._filters[number]

    def acquire(self, filter: Filter) -> int:
        """The number of this filter, with one more use."""
        number = self._numbers.get(filter)
        if number is None:
            number = self._numbers[filter] = self._next
            self._next += 1
            self._filters[number] = filter
            self._note_names(filter, 1)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Give one use back; after the last the filter is forgotten."""
        self._uses[number] -= 1
        if not self._uses[number]:
            filter = self._filters.pop(number)
            del self._uses[number], self._numbers[filter]
            self._note_names(filter, -1)

    def _note_names(self, filter: Filter, uses: int) -> None:
        names = names_asked(filter)
        if names is None or names - CONTEXT_NAMES:
            self.beyond_context += uses
        for name in names or ():
            self.names[name] += uses
            if not self.names[name]:
                del self.names[name]


def names_asked(filter: Filter) -> frozenset[str] | None:
    """The names whose values decide the filter; None if they could be any."""
    match filter:
        case Predicate(name) | TextIs(name):
            return frozenset({name})
        case TopicIs() | TopicMatches() | XPath():  # none asks by name
            return frozenset()
        case Sql():
            return None
        case Not(part):
            return names_asked(part)
        case All(parts) | AnyOf(parts):
            asked: set[str] = set()
            for part in parts:
                names = names_asked(part)
                if names is None:
                    return None
                asked |= names
            return frozenset(asked)
