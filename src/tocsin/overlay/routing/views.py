"""RoutingView: the tables of a router as plain data, for `/overlay` and for people."""

from __future__ import annotations

import msgspec

from tocsin.overlay.routing.cover_index import Entry
from tocsin.overlay.routing.links import Phase
from tocsin.overlay.routing.state import RouterState
from tocsin.overlay.routing.table import RoutingTable


class EntryView(msgspec.Struct, frozen=True):
    """One row of a routing table."""

    origin: str
    id: str
    filter: str
    last_hop: str  # empty: this broker
    sent_to: tuple[str, ...]
    covered_by: tuple[tuple[str, str], ...]  # origin and id
    reached: tuple[tuple[str, int], ...]  # brokers where it holds, and since when as known here


class NeighbourView(msgspec.Struct, frozen=True):
    """A broker that is or was connected to this one."""

    broker: str
    state: str  # connecting, up or down
    gone_ns: int | None
    behind: tuple[str, ...]
    advertisements: int
    subscriptions: int


class RoutingView(msgspec.Struct, frozen=True):
    """Neighbours, the subscription routing table (SRT) and the publication routing table (PRT)."""

    broker: str
    covering: bool
    neighbours: tuple[NeighbourView, ...]
    advertisements: tuple[EntryView, ...]
    advertisements_total: int
    subscriptions: tuple[EntryView, ...]
    subscriptions_total: int
    forgotten: tuple[str, ...]


def view_of(state: RouterState, rows_max: int | None = None) -> RoutingView:
    """With at most so many rows of each table; None for all."""
    return RoutingView(
        broker=state.own.broker,
        covering=state.options.covering,
        neighbours=tuple(_neighbour(state, each) for each in sorted(state.neighbours)),
        advertisements=_rows(state, state.advertisements, rows_max),
        advertisements_total=len(state.advertisements.entries),
        subscriptions=_rows(state, state.subscriptions, rows_max),
        subscriptions_total=len(state.subscriptions.entries),
        forgotten=tuple(sorted(state.forgotten)),
    )


def _neighbour(state: RouterState, neighbour: str) -> NeighbourView:
    link = state.link_of.get(neighbour)
    how = "down" if link is None else "up" if link.phase is Phase.COMPLETE else "connecting"
    return NeighbourView(
        broker=neighbour,
        state=how,
        gone_ns=state.neighbours[neighbour].gone_ns,
        behind=tuple(sorted(state.reach.behind(neighbour))),
        advertisements=len(state.advertisements.rows_from(neighbour)),
        subscriptions=len(state.subscriptions.rows_from(neighbour)),
    )


def _rows(state: RouterState, table: RoutingTable, most: int | None) -> tuple[EntryView, ...]:
    return tuple(_row(state, table, entry) for entry in table.rows(most))


def _row(state: RouterState, table: RoutingTable, entry: Entry) -> EntryView:
    of_subscriptions = table is state.subscriptions
    sent_to = (
        link.neighbour
        for link in state.up_links()
        if entry.key in (link.sent_subscriptions if of_subscriptions else link.sent_advertisements)
    )
    return EntryView(
        origin=entry.key[0],
        id=entry.key[1],
        filter=entry.text,
        last_hop=entry.hop,
        sent_to=tuple(sorted(sent_to)),
        covered_by=tuple(sorted(wide.key for wide in entry.covered_by.values())),
        reached=tuple(sorted(entry.reached.items())),
    )
