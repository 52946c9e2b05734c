"""Regions: a filter as alternatives, each a hyper-rectangle with one range for each facet it names.

Facets of one name are not independent (the text "7" is also the number 7), so a region can be
closed: what one facet says about another is added, and contradictions between them show as
emptiness. A `Not` is driven down to the leaves; a denied leaf is kept as it is, because the
opposite of a predicate is not a predicate (an event without the attribute fails both).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, islice
from typing import TypeVar

from tocsin.event.facets import (
    BASE_UNITS,
    FLAG,
    NUMBER,
    TEXT,
    FacetKey,
    number_of,
    predicate_kind,
)
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    Sql,
    TextIs,
    TopicIs,
    TopicMatches,
    XPath,
)
from tocsin.event.filter_eval import comparand
from tocsin.event.topic import TopicPattern
from tocsin.event.topic_levels import MANY, ONE
from tocsin.event.topic_regex import compile_topic_regex
from tocsin.matching.ranges import (
    FlagRange,
    NumberRange,
    Range,
    TextRange,
    both,
    contains,
    flag_range,
    number_range,
    text_range,
)

REGIONS_MAX = 32  # alternatives of one filter; covering compares every pair of two filters' regions
TOPIC_PAIRS_MAX = 64  # of patterns compared between two regions; most filters have one or two
REGIONS_CACHED_MAX = 4_096

# The string form of an attribute, which `TextIs` asks; no facet, but a text like one.
STRING_FORM = "t"

Expression = TopicMatches | Sql | XPath
Leaf = Predicate | TopicIs | TextIs | Expression
_Member = TypeVar("_Member")

_ANY_TOPIC = TopicPattern(("**",))
_FLAGS = (("true", True), ("false", False))
_NO_NUMBER = NumberRange(low=1.0, high=0.0)


@dataclass(frozen=True, slots=True)
class Region:
    """A conjunction. Every field narrows it; the region without any lets every event through."""

    ranges: Mapping[FacetKey, Range] = field(default_factory=dict)
    names: frozenset[str] = frozenset()  # attributes that must be there
    patterns: frozenset[TopicPattern] = frozenset()
    expressions: frozenset[Expression] = frozenset()  # known only by their text
    denied: frozenset[Leaf] = frozenset()
    is_impossible: bool = False

    def __and__(self, other: Region) -> Region:
        ranges = dict(self.ranges)
        for key, bound in other.ranges.items():
            ranges[key] = both(ranges.get(key), bound)
        return Region(
            ranges,
            _union(self.names, other.names),
            _union(self.patterns, other.patterns),
            _union(self.expressions, other.expressions),
            _union(self.denied, other.denied),
            self.is_impossible or other.is_impossible,
        )


def _union(one: frozenset[_Member], other: frozenset[_Member]) -> frozenset[_Member]:
    """Not another set where one of them will do: most are empty, and tables have many."""
    return one | other if one and other else one or other


EVERY_EVENT = Region()
NO_EVENT = Region(is_impossible=True)


@lru_cache(maxsize=REGIONS_CACHED_MAX)
def regions(wanted: Filter) -> tuple[Region, ...] | None:
    """Regions that together let through what the filter does; None if they are too many."""
    return _regions(wanted, denied=False)


def _regions(wanted: Filter, *, denied: bool) -> tuple[Region, ...] | None:
    match wanted:
        case Not(part):
            return _regions(part, denied=not denied)
        case All(parts) | AnyOf(parts):
            # De Morgan: of a denied `All` at least one part fails, of a denied `AnyOf` every part.
            if isinstance(wanted, All) is denied:
                return _alternatives(parts, denied=denied)
            return _product(parts, denied=denied)
    if denied:
        return (Region(denied=frozenset({wanted})),)
    return (leaf_region(wanted),)


def _alternatives(parts: tuple[Filter, ...], *, denied: bool) -> tuple[Region, ...] | None:
    found: list[Region] = []
    for part in parts:
        more = _regions(part, denied=denied)
        if more is None or len(found) + len(more) > REGIONS_MAX:
            return None
        found.extend(more)
    return tuple(found)


def _product(parts: tuple[Filter, ...], *, denied: bool) -> tuple[Region, ...] | None:
    found: tuple[Region, ...] = (EVERY_EVENT,)
    for part in parts:
        more = _regions(part, denied=denied)
        if more is None or len(found) * len(more) > REGIONS_MAX:
            return None
        found = tuple(one & other for one in found for other in more)
    return found


@lru_cache(maxsize=REGIONS_CACHED_MAX)
def leaf_region(leaf: Leaf) -> Region:
    """The events that one leaf lets through."""
    match leaf:
        case TopicIs(pattern):
            return Region(patterns=frozenset({pattern}))
        case TopicMatches() | Sql() | XPath():
            return Region(expressions=frozenset({leaf}))
        case TextIs(name, how, text):
            return Region({(name, STRING_FORM): text_range(how, text)}, frozenset({name}))
        case Predicate(name, Operator.EXISTS):
            return Region(names=frozenset({name}))
    kind = predicate_kind(leaf.value, leaf.unit)
    wanted = comparand(leaf)
    if kind is None or wanted is None:
        return NO_EVENT
    return Region({(leaf.name, kind): _range(leaf.operator, wanted)}, frozenset({leaf.name}))


def _range(how: Operator, wanted: float | str | bool) -> Range:
    if isinstance(wanted, bool):
        return flag_range(how, wanted)
    if isinstance(wanted, str):
        return text_range(how, wanted)
    return number_range(how, wanted)


@lru_cache(maxsize=REGIONS_CACHED_MAX)
def inhabited_regions(wanted: Filter) -> tuple[Region, ...] | None:
    """As `regions`, each closed, and without those that are known to be empty."""
    found = regions(wanted)
    if found is None:
        return None
    return tuple(closed for region in found if not is_empty(closed := _closed(region)))


def meet(one: Region, other: Region) -> bool:
    """False only if no event is in both regions."""
    return not is_empty(_closed(one & other))


def is_empty(closed: Region) -> bool:
    """True only if no event is in the region, which has to be closed."""
    if closed.is_impossible or any(bound.is_empty for bound in closed.ranges.values()):
        return True
    pairs = combinations(sorted(closed.patterns, key=str), 2)
    if any(not one.intersects(other) for one, other in islice(pairs, TOPIC_PAIRS_MAX)):
        return True
    if any(_about_topic(each, closed.patterns) is False for each in closed.expressions):
        return True
    return any(_is_within(closed, leaf_region(leaf)) for leaf in closed.denied)


def region_covers(wide: Region, narrow: Region) -> bool:
    """True only if every event in the narrow region, which has to be closed, is in the wide one."""
    return _is_within(narrow, wide) and not any(
        meet(narrow, leaf_region(leaf)) for leaf in wide.denied
    )


def _is_within(narrow: Region, wide: Region) -> bool:
    """Whether a closed region lies in another, leaving out what that one denies."""
    return (
        not wide.is_impossible
        and narrow.names >= wide.names
        and _expressions_within(narrow, wide.expressions)
        and _topics_within(narrow.patterns or frozenset({_ANY_TOPIC}), wide.patterns)
        and all(
            key in narrow.ranges and contains(bound, narrow.ranges[key])
            for key, bound in wide.ranges.items()
        )
    )


def _expressions_within(narrow: Region, wide: frozenset[Expression]) -> bool:
    return narrow.expressions >= wide or all(
        each in narrow.expressions or _about_topic(each, narrow.patterns) is True for each in wide
    )


def _about_topic(expression: Expression, patterns: frozenset[TopicPattern]) -> bool | None:
    """What a regular expression says of the one topic that one of the patterns is; None if there is
    no such topic."""
    if isinstance(expression, TopicMatches):
        for pattern in patterns:
            if ONE not in pattern.levels and MANY not in pattern.levels:
                return compile_topic_regex(expression.expression)(str(pattern))
    return None


def _topics_within(narrow: frozenset[TopicPattern], wide: frozenset[TopicPattern]) -> bool:
    if wide <= narrow:
        return True
    if len(wide) * len(narrow) > TOPIC_PAIRS_MAX:
        return False
    return all(any(pattern.covers(each) for each in narrow) for pattern in wide)


def _closed(region: Region) -> Region:
    """The same events, with what their facets say about each other added."""
    kinds_of: dict[str, set[str]] = {}
    for name, kind in region.ranges:
        kinds_of.setdefault(name, set()).add(kind)
    ranges = dict(region.ranges)
    for name, kinds in kinds_of.items():
        if _never_together(kinds):
            return NO_EVENT
        for kind, bound in _implied_by_text(ranges.get((name, TEXT)), kinds):
            ranges[name, kind] = both(ranges.get((name, kind)), bound)
    # The region itself if nothing is added: mostly so, and tables keep both.
    return region if ranges == region.ranges else replace(region, ranges=ranges)


def _never_together(kinds: set[str]) -> bool:
    """A truth is no number, and a quantity has one unit."""
    dimensions = sum(kind.startswith(BASE_UNITS) for kind in kinds)
    return dimensions > 1 or (FLAG in kinds and (NUMBER in kinds or dimensions > 0))


def _implied_by_text(text: Range | None, kinds: set[str]) -> Iterator[tuple[str, Range]]:
    """What a value that is a text, and one of these, must be as anything else."""
    if not isinstance(text, TextRange):
        return
    yield STRING_FORM, text
    if FLAG in kinds:
        yield FLAG, FlagRange(frozenset(flag for word, flag in _FLAGS if text.has(word)))
    if text.only is None:
        return
    number = number_of(text.only)
    if number is not None:
        yield NUMBER, NumberRange(number, number)
    elif NUMBER in kinds or any(kind.startswith(BASE_UNITS) for kind in kinds):
        yield NUMBER, _NO_NUMBER
