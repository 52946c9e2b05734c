"""What the log says of links."""

from __future__ import annotations

from typing import Final

from tocsin.broker.runtime import Runtime
from tocsin.errors import RoutingTableFull, TocsinError
from tocsin.services.link.connection import Connection
from tocsin.services.link.neighbour import Neighbour
from tocsin.wire.link.messages import Ignored

NOTE_AGAIN_S: Final = 600.0
REASONS_MAX: Final = 1_000  # in that time; anybody may come by many names


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


class RefusedLinks:
    """Counts connections that were refused; the log has a line for each peer and reason, and
    another if it goes on: whoever is refused connects again and again."""

    def __init__(self, runtime: Runtime) -> None:
        self.count = 0  # since the start
        self._runtime = runtime
        self._noted_s: dict[tuple[str, str, str], float] = {}  # oldest first

    def add(self, connection: Connection, error: TocsinError) -> None:
        self.count += 1
        if connection.is_outgoing:
            return  # the dialler says why it ended
        host = connection.transport.peer.rpartition(":")[0]
        if self._is_due((host, connection.broker, error.code)):
            self._runtime.note(
                "warning",
                "a link was refused",
                peer=connection.transport.peer,
                broker=connection.broker,
                code=error.code,
                why=error.problem,
            )

    def _is_due(self, reason: tuple[str, str, str]) -> bool:
        now_s = self._runtime.elapsed_s()
        while self._noted_s:
            oldest = next(iter(self._noted_s))
            if now_s - self._noted_s[oldest] <= NOTE_AGAIN_S:
                break
            del self._noted_s[oldest]
        if reason in self._noted_s or len(self._noted_s) >= REASONS_MAX:
            return False
        self._noted_s[reason] = now_s
        return True
