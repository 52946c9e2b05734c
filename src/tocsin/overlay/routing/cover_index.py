"""CoverIndex: which entries cover a filter, and which does it cover, without asking all of them.

An entry can only be covered by one that asks for no more than it asks itself. So each is filed by
the most telling thing it asks for, an access key, under which one that it covers is bound to look;
and it is posted under everything that it asks for, so that one that covers it is bound to find it.
`region_covers` decides about what was found.

Only filters that are simple take part: unions of boxes, without SQL, XPath or `not`. All others are
never covered. For simple ones covering is transitive, so two entries never leave each other out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType

from tocsin.event.filter import Filter
from tocsin.event.topic import TopicPattern
from tocsin.event.topic_levels import MANY, ONE
from tocsin.matching.ranges import NumberRange, Range, TextRange
from tocsin.matching.regions import Region, inhabited_regions, region_covers, regions
from tocsin.overlay.routing.effects import EntryKey

PATTERNS_MAX = 8  # of topics in one conjunction: more are not compared exactly

AccessKey = tuple[object, ...]
_ANYTHING: AccessKey = ()
_NOWHERE: Mapping[str, int] = MappingProxyType({})
# Compared in vain for one entry, which takes some milliseconds. A cover that is not found costs
# messages and nothing else.
MISSES_MAX = 1_000


@dataclass(slots=True, eq=False)
class Entry:
    """A subscription or an advertisement, where it comes from, and what covers it."""

    key: EntryKey
    text: str
    filter: Filter
    hop: str  # the neighbour that it comes from; empty for this broker's own
    inner: tuple[Region, ...] | None = None  # if its filter is simple: as something covered,
    outer: tuple[Region, ...] = ()  # and as something that covers
    access: tuple[AccessKey, ...] = ()  # where ones that cover it are filed
    covered_by: dict[str, Entry] = field(default_factory=dict)
    """At most one for each hop, and no more than are needed to know where it goes."""
    covers: dict[EntryKey, Entry] = field(default_factory=dict)  # those that name it there
    is_filed: bool = False  # it stands for those that it covers
    # Empty in most rows, of which there may be a million: no objects of their own then.
    reached: Mapping[str, int] = field(default_factory=lambda: _NOWHERE)
    """Brokers where it holds, this one aside, and when that was first heard here."""
    unheard: AbstractSet[str] = frozenset()  # neighbours sent it that have not answered yet

    def add_reached(self, brokers: Iterable[str], now_ns: int) -> None:
        if not isinstance(self.reached, dict):
            self.reached = {}
        self.reached.update(dict.fromkeys(brokers, now_ns))

    def sent_to(self, neighbour: str) -> None:
        if not isinstance(self.unheard, set):
            self.unheard = set()
        self.unheard.add(neighbour)

    def heard_from(self, neighbour: str) -> None:
        if isinstance(self.unheard, set):
            self.unheard.discard(neighbour)

    @property
    def goes_nowhere(self) -> bool:
        """True if it is covered in every direction."""
        return len(self.covered_by) > 1 or self.hop in self.covered_by

    def goes_to(self, neighbour: str) -> bool:
        """True unless it came from there, or is covered by one that goes there too."""
        return neighbour != self.hop and all(hop == neighbour for hop in self.covered_by)


def entry_of(key: EntryKey, text: str, wanted: Filter, hop: str) -> Entry:
    return Entry(key, text, wanted, hop, *_shape_of(wanted))


@lru_cache(maxsize=4_096)
def _shape_of(
    wanted: Filter,
) -> tuple[tuple[Region, ...] | None, tuple[Region, ...], tuple[AccessKey, ...]]:
    """`inner`, `outer` and `access` of its entries: the same few filters are in most of them."""
    inner = inhabited_regions(wanted)
    if inner is None or not all(map(_is_simple, inner)):
        return None, (), ()
    # One that covers it covers the first of its regions too. A filter that can never match is
    # covered by everything; nobody needs to be told of it.
    access = _access_keys(inner[0]) if inner else ()
    return inner, regions(wanted) or (), access


def _is_simple(region: Region) -> bool:
    return (
        not region.expressions
        and not region.denied
        and len(region.patterns) <= PATTERNS_MAX
        and all(map(_is_comparable, region.patterns))
    )


def _is_comparable(pattern: TopicPattern) -> bool:
    """`**/x/*/*` may need too many steps to compare; without a `*` after a `**` they are few."""
    levels = pattern.levels
    return MANY not in levels or ONE not in levels[levels.index(MANY) :]


def precedes(wide: Entry, narrow: Entry) -> bool:
    """True if the wide entry stands for the narrow one. Of two equal ones the first by key does."""
    if wide is narrow or not _covers(wide, narrow):
        return False
    return wide.key < narrow.key or not _covers(narrow, wide)


def _covers(wide: Entry, narrow: Entry) -> bool:
    if wide.inner is None or narrow.inner is None:
        return False
    return all(any(region_covers(each, inner) for each in wide.outer) for inner in narrow.inner)


class CoverIndex:
    """The entries of one table whose filters are simple."""

    def __init__(self) -> None:
        self._filed: _Shelves = {}
        self._posted: _Shelves = {}

    def file(self, entry: Entry) -> None:
        """From now on it may cover others."""
        for region in entry.outer:
            _put(self._filed, _access_key(region), entry)

    def unfile(self, entry: Entry) -> None:
        for region in entry.outer:
            _take(self._filed, _access_key(region), entry)

    def post(self, entry: Entry) -> None:
        """From now on it may become covered."""
        for access in entry.access:
            _put(self._posted, access, entry)

    def unpost(self, entry: Entry) -> None:
        for access in entry.access:
            _take(self._posted, access, entry)

    def covering(self, narrow: Entry) -> Iterator[Entry]:
        """The entries that stand for this one."""
        misses = 0
        for access in narrow.access:
            for entry in _at(self._filed, access):
                if precedes(entry, narrow):
                    yield entry
                else:
                    misses += 1
                    if misses > MISSES_MAX:
                        return

    def covered(self, wide: Entry) -> list[Entry]:
        """The posted entries that this one stands for."""
        found: dict[EntryKey, Entry] = {}
        misses = 0
        for region in wide.outer:
            for entry in _at(self._posted, _access_key(region)):
                if entry.key in found:
                    continue
                if precedes(wide, entry):
                    found[entry.key] = entry
                else:
                    misses += 1
                    if misses > MISSES_MAX:
                        return list(found.values())
        return list(found.values())


_Shelves = dict[AccessKey, Entry | dict[EntryKey, Entry]]
"""The entries of each access key; the entry itself where there is only one, as there mostly is."""


def _at(shelves: _Shelves, access: AccessKey) -> Iterable[Entry]:
    found = shelves.get(access, {})
    return (found,) if isinstance(found, Entry) else found.values()


def _put(shelves: _Shelves, access: AccessKey, entry: Entry) -> None:
    found = shelves.setdefault(access, entry)
    if isinstance(found, Entry):
        if found.key == entry.key:
            shelves[access] = entry
            return
        found = shelves[access] = {found.key: found}
    found[entry.key] = entry


def _take(shelves: _Shelves, access: AccessKey, entry: Entry) -> None:
    found = shelves.get(access)
    if isinstance(found, Entry):
        if found.key == entry.key:
            del shelves[access]
    elif found is not None:
        found.pop(entry.key, None)
        if not found:
            del shelves[access]


def _access_key(region: Region) -> AccessKey:
    """The most telling thing that the region asks for."""
    keys = _own_keys(region)
    return max(keys, key=lambda access: (_telling(access), repr(access)), default=_ANYTHING)


def _telling(access: AccessKey) -> int:
    match access:
        case ("topic", levels) if isinstance(levels, tuple):
            return 3 + len(levels) if levels else 0
        case ("only", *_):
            return 3
        case ("range", *_):
            return 2
    return 1


def _own_keys(region: Region) -> list[AccessKey]:
    keys: list[AccessKey] = [("name", name) for name in sorted(region.names)]
    for (name, kind), bound in sorted(region.ranges.items(), key=itemgetter(0)):
        only = _only(bound)
        keys.append(("range", name, kind) if only is None else ("only", name, kind, only))
    keys.extend(("topic", _literal(pattern)) for pattern in sorted(region.patterns, key=str))
    return keys


def _access_keys(closed: Region) -> tuple[AccessKey, ...]:
    """All keys under which something may be filed that covers the region."""
    keys = _own_keys(closed)
    keys.extend(("range", name, kind) for name, kind in sorted(closed.ranges))
    for pattern in sorted(closed.patterns, key=str):
        literal = _literal(pattern)
        keys.extend(("topic", literal[:depth]) for depth in range(len(literal)))
    return tuple(dict.fromkeys([*keys, ("topic", ()), _ANYTHING]))


def _only(bound: Range) -> float | str | None:
    if isinstance(bound, NumberRange):
        return bound.low if bound.low == bound.high else None
    return bound.only if isinstance(bound, TextRange) else None


def _literal(pattern: TopicPattern) -> tuple[str, ...]:
    """The levels before the first wildcard: a pattern within this one begins with them too."""
    levels = pattern.levels
    wild = (place for place, level in enumerate(levels) if level in (ONE, MANY))
    return levels[: next(wild, len(levels))]
