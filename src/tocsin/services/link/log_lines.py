"""What the log says of links."""

from __future__ import annotations

from tocsin.broker.runtime import Runtime
from tocsin.errors import RoutingTableFull, TocsinError
from tocsin.services.link.connection import Connection
from tocsin.services.link.neighbour import Neighbour
from tocsin.wire.link.messages import Ignored


def note_ignored(
    runtime: Runtime, neighbour: Neighbour, connection: Connection, message: Ignored
) -> None:
    """Write it to the log, and show it with the neighbour."""
    if message.count < 2 * connection.ignored_there:
        return  # it is said of the first, the second, the fourth, ...
    connection.ignored_there = max(1, message.count)
    words = f"it has not taken {message.count} entries of this broker"
    neighbour.entry_error = RoutingTableFull(
        f"{words}: {message.reason} [{message.code}]",
        remedy="Events that they are for may not come from there. Raise the limit there.",
    )
    runtime.note(
        "warning",
        "a neighbour has not taken entries of this broker: events may not come from there",
        neighbour=connection.broker,
        code=message.code,
        why=message.reason,
        entries=message.count,
    )


def note_refused(runtime: Runtime, connection: Connection, error: TocsinError) -> None:
    """Of those that this broker opened, the dialler says why they ended."""
    if not connection.is_outgoing:
        runtime.note(
            "warning",
            "a link was refused",
            peer=connection.transport.peer,
            broker=connection.broker,
            code=error.code,
            why=error.problem,
        )
