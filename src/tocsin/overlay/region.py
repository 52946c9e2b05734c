"""Region: a conjunction as a box, one bound for each attribute and kind of value that it names.

A bound of numbers is a closed interval of doubles; `< 5` ends at the double before 5, so nothing is
lost or added. A text is compared for equality alone (paper 001, section 4). Kinds are those of
facets, and TIME for times of the day; values of different kinds never meet.

Advertisements, requests and the current values of a resource are all regions, so there are two
relations between them: `covers` and `overlaps`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Generic, Protocol, TypeVar

from tocsin.event.event import Value
from tocsin.event.facets import facets
from tocsin.overlay.time_of_day import DAY_S, NO_ZONES, read_time_of_day

TIME = "t"  # seconds of the day in UTC; see `time_of_day`

RegionKey = tuple[str, str]
"""(attribute, kind)."""

Bound = tuple[float, float] | str

UNBOUNDED = (-inf, inf)


@dataclass(frozen=True, slots=True)
class Region:
    """Every bound holds. Without any bound it is everything."""

    bounds: Mapping[RegionKey, Bound] = field(default_factory=dict)
    empty_because: str = ""  # why nothing can be in it

    @property
    def is_empty(self) -> bool:
        return bool(self.empty_because)


def covers(wide: Region, narrow: Region) -> bool:
    """True if everything in `narrow` is in `wide`: what names fewer attributes is wider."""
    if narrow.is_empty:
        return True
    if wide.is_empty:
        return False
    inner = narrow.bounds
    for key, bound in wide.bounds.items():  # no generator: whole tables are compared by it
        if key not in inner or not _contains(bound, inner[key]):
            return False
    return True


def overlaps(request: Region, advertisement: Region) -> bool:
    """True if the advertisement has every attribute of the request, and the ranges meet."""
    if request.is_empty or advertisement.is_empty:
        return False
    offered = advertisement.bounds
    return all(
        key in offered and _meet(bound, offered[key]) for key, bound in request.bounds.items()
    )


def admits(region: Region, values: Mapping[str, Value]) -> bool:
    """True if the values are in the region; an attribute that they lack is not."""
    return any(overlaps(region, row) for row in day_rows(point(values)))


def point(values: Mapping[str, Value]) -> Region:
    """The values as a region without extent. A value may be of several kinds, as facets are."""
    bounds: dict[RegionKey, Bound] = {}
    for (name, kind), value in facets(values).items():
        if isinstance(value, str):
            bounds[name, kind] = value
            time = read_time_of_day(value, NO_ZONES)
            if time is not None:
                bounds[name, TIME] = (time.utc_s, time.utc_s)
        else:
            bounds[name, kind] = (float(value), float(value))
    return Region(bounds)


def day_rows(offered: Region) -> tuple[Region, ...]:
    """What is offered, as rows that a request is compared with one by one.

    One row, unless there are times of the day in it: a request that passes midnight ends on the
    second day (`time_of_day`), so what is offered is there on both days.
    """
    rows = [offered]
    for key, bound in offered.bounds.items():
        if key[1] != TIME or isinstance(bound, str):
            continue
        low, high = bound
        shifts = [(low + DAY_S, high + DAY_S)]
        if high >= DAY_S:
            shifts.append((low - DAY_S, high - DAY_S))
        rows += [Region({**row.bounds, key: shift}) for row in rows for shift in shifts]
    return tuple(rows)


def _contains(wide: Bound, narrow: Bound) -> bool:
    if isinstance(wide, str) or isinstance(narrow, str):
        return wide == narrow
    return wide[0] <= narrow[0] and narrow[1] <= wide[1]


def _meet(one: Bound, other: Bound) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one[0] <= other[1] and other[0] <= one[1]


def is_bound(kind: str, bound: Bound) -> bool:
    """True for a bound that something may be in."""
    if isinstance(bound, str):
        return kind == "s"
    low, high = bound
    return kind != "s" and not isnan(low) and not isnan(high) and low <= high


Key = TypeVar("Key", bound=Hashable)


class Regions(Protocol[Key]):
    """A table of regions. An index answers exactly as `RegionTable` does."""

    def __len__(self) -> int: ...

    def add(self, key: Key, region: Region, group: str = "") -> None:
        """Keeps the region; one of the same key is replaced and becomes the youngest."""

    def remove(self, key: Key) -> None:
        """Forgets the region; nothing happens if there is none."""

    def covering(self, region: Region) -> Iterator[Key]:
        """Those that cover the region, the oldest first. Nothing may change while they are read."""

    def overlapping(self, request: Region) -> list[Key]:
        """Advertisements are kept: which of them the request overlaps, the oldest first."""

    def groups_overlapping(self, request: Region) -> set[str]:
        """The groups of those advertisements."""

    def requests_overlapping(self, advertisement: Region) -> list[Key]:
        """Requests are kept: which of them overlap the advertisement, the oldest first."""

    def admitting(self, values: Mapping[str, Value]) -> list[Key]:
        """Requests are kept: which of them admit the values, the oldest first."""


class RegionTable(Generic[Key]):
    """The definition of each query: a scan of everything."""

    def __init__(self) -> None:
        self._rows: dict[Key, tuple[Region, str]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, key: Key, region: Region, group: str = "") -> None:
        self._rows.pop(key, None)
        self._rows[key] = (region, group)

    def remove(self, key: Key) -> None:
        self._rows.pop(key, None)

    def covering(self, region: Region) -> Iterator[Key]:
        return (key for key, (wide, _) in self._rows.items() if covers(wide, region))

    def overlapping(self, request: Region) -> list[Key]:
        return [key for key, (offered, _) in self._rows.items() if overlaps(request, offered)]

    def groups_overlapping(self, request: Region) -> set[str]:
        return {group for offered, group in self._rows.values() if overlaps(request, offered)}

    def requests_overlapping(self, advertisement: Region) -> list[Key]:
        return [key for key, (asked, _) in self._rows.items() if overlaps(asked, advertisement)]

    def admitting(self, values: Mapping[str, Value]) -> list[Key]:
        return [key for key, (asked, _) in self._rows.items() if admits(asked, values)]
