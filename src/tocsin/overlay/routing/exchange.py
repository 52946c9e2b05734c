"""Exchange: on a new link the whole tables are sent, in pieces, each table until its Synced.

Whoever runs the router asks for the next piece when the connection has taken the one before it: a
table may be larger than what may wait for one neighbour. Changes meanwhile are sent as they come,
so an entry that was changed or sent by then is found to be so when its turn comes.
"""

from __future__ import annotations

from typing import Literal

from tocsin.overlay.routing.effects import PieceSent, Send
from tocsin.overlay.routing.links import Link, Remaining
from tocsin.overlay.routing.places import send_places
from tocsin.overlay.routing.state import RouterState
from tocsin.overlay.routing.updates import send_advertisements, send_subscriptions
from tocsin.wire.link.messages import Synced

TableName = Literal["advertisements", "subscriptions"]


def send_table(state: RouterState, link: Link, name: TableName) -> None:
    """All of it, after the tables that are still being sent; the first piece now."""
    table = state.advertisements if name == "advertisements" else state.subscriptions
    table.uncover_all()
    link.remaining.append(Remaining(name, sorted(table.entries)))
    if len(link.remaining) == 1:
        send_next_piece(state, link)


def send_next_piece(state: RouterState, link: Link) -> None:
    """As many entries as one piece may have; with the last one of a table, its end."""
    while link.remaining:
        remaining = link.remaining[0]
        most = state.options.piece_entries_max or len(remaining.keys)
        piece = remaining.keys[remaining.sent : remaining.sent + most]
        remaining.sent += len(piece)
        if remaining.table == "advertisements":
            send_advertisements(state, link, piece)
        else:
            send_subscriptions(state, link, piece)
        if remaining.sent < len(remaining.keys):
            state.effects.append(PieceSent(link.number))
            return
        link.remaining.popleft()
        state.effects.append(Send(link.number, Synced(remaining.table)))
        if remaining.table == "advertisements":
            send_places(state, link, [*link.sent_behind, *state.reach.known()])
