"""RoutingOptions: what an operator may choose about routing, and how large tables may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tocsin.event.filter import Filter
from tocsin.event.instant import NS_PER_S

PIECE_ENTRIES = 500  # with the longest filters 16 MB, mostly 50 kB

CheckEntry = Callable[[int, str, Filter], None]
"""Raises for an entry that may not come over this link into this table: it is left out, and what
its neighbour said before by that name goes."""


def take_any_entry(link: int, table: str, filter: Filter) -> None:
    """Every neighbour may say anything."""


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """The settings of one broker's router."""

    covering: bool = True
    """Leave out what a wider entry covers. Off, every entry goes everywhere; the events are the
    same."""
    advertises: tuple[str, ...] = ("",)
    """Filters of what may be published at this broker; the empty text is everything."""
    subscriptions_max: int = 1_000_000  # of all brokers, with about 4 KB each
    advertisements_max: int = 20_000  # two for each broker of the largest overlay
    entry_bytes_max: int = 128 << 20
    """Of both tables as they are sent: with long filters, memory is full before the rows are."""
    # What comes over one link, so that no neighbour can fill a table that all share: some 200 MB of
    # memory at most. Of the filters as they are sent, a byte costs about 25 once it is read.
    subscriptions_per_neighbour_max: int = 50_000
    advertisements_per_neighbour_max: int = 5_000
    entry_bytes_per_neighbour_max: int = 8 << 20
    brokers_max: int = 10_000
    brokers_per_neighbour_max: int = 5_000
    """Behind one neighbour: what it names past that is left out."""
    piece_entries_max: int | None = None
    """Of the tables on a new link, sent at once; the next when the connection has taken these.
    None: all."""
    cycle_grace_ns: int = 2 * NS_PER_S
    """A cycle that two links closed at once is cut after this: what looks like one for a moment is
    mostly a broker that changed its place."""
    report_reached: bool = True
    """Tell where a subscription comes from which brokers it has reached."""
    forget_after_ns: int = 7 * 24 * 3_600 * NS_PER_S
    """A neighbour that has been away for so long is forgotten, everywhere."""
