"""Does one filter cover another, do they meet, can one ever match? (paper 001)

The answers are safe. `covers` says yes only if every event that passes the narrow filter passes the
wide one; `intersects` and `never_matches` say that there is no such event only if there is none.
For conjunctions with one interval for each attribute they are exact. A conjunction is covered by
each of its parts, and an alternative by the whole, however large they are; else, where a filter is
too much (SQL, XPath, regular expressions, or more than REGIONS_MAX alternatives), they give the
answer that costs only an opportunity.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.event.filter import All, AnyOf, Filter
from tocsin.matching.regions import inhabited_regions, meet, region_covers, regions


def covers(wide: Filter, narrow: Filter) -> bool:
    """True only if every event that passes `narrow` also passes `wide`."""
    if _shows_covering(wide, narrow):
        return True
    outer, inner = regions(wide), inhabited_regions(narrow)
    if outer is None or inner is None:
        return False
    return all(any(region_covers(each, region) for each in outer) for region in inner)


def _shows_covering(wide: Filter, narrow: Filter) -> bool:
    """Whether it can be read off: the narrow one asks all that the wide one asks, or more; or is
    one of its alternatives."""
    if wide == narrow or set(_parts(wide, All)) <= set(_parts(narrow, All)):
        return True
    return set(_parts(narrow, AnyOf)) <= set(_parts(wide, AnyOf))


def _parts(wanted: Filter, kind: type[All | AnyOf]) -> Iterator[Filter]:
    """What `wanted` joins in this way, however deep; or itself, if it joins in no such way."""
    if isinstance(wanted, kind):
        for part in wanted.parts:
            yield from _parts(part, kind)
    else:
        yield wanted


def intersects(one: Filter, other: Filter) -> bool:
    """False only if no event passes both."""
    ours, theirs = inhabited_regions(one), inhabited_regions(other)
    if ours is None or theirs is None:
        return not (never_matches(one) or never_matches(other))
    return any(meet(each, another) for each in ours for another in theirs)


def never_matches(wanted: Filter) -> bool:
    """True only if no event can pass: its conditions contradict each other."""
    return inhabited_regions(wanted) == ()
