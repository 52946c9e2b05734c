"""What the log says of links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.broker.runtime import Runtime
from tocsin.errors import RoutingTableFull, TocsinError
from tocsin.services.link.connection import Connection
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.repeated_log import RepeatedLog
from tocsin.wire.link.messages import Ignored

CHANGES_S: Final = 60.0  # of one neighbour's link so many are logged at most,
CHANGES_MAX: Final = 4  # and then the last one, with how many there were


def note_ignored(
    log: RepeatedLog, neighbour: Neighbour, connection: Connection, message: Ignored
) -> None:
    """Write it to the log, and show it with the neighbour."""
    words = f"it has not taken {message.count} entries of this broker"
    neighbour.entry_error = RoutingTableFull(
        f"{words}: {message.reason} [{message.code}]",
        remedy="Events that they are for may not come from there. Raise the limit there.",
    )
    log.note(
        "warning",
        "a neighbour has not taken entries of this broker: events may not come from there",
        (connection.broker,),
        neighbour=connection.broker,
        code=message.code,
        why=message.reason,
        entries=message.count,
    )


class RefusedLinks:
    """Counts connections that were refused. Whoever is refused connects again and again."""

    def __init__(self, log: RepeatedLog) -> None:
        self.count = 0  # since the start
        self._log = log

    def add(self, connection: Connection, error: TocsinError) -> None:
        self.count += 1
        if connection.is_outgoing:
            return  # the dialler says why it ended
        peer = connection.transport.peer
        self._log.note(
            "warning",
            "a link was refused",
            (peer.rpartition(":")[0], connection.broker, error.code),
            peer=peer,
            broker=connection.broker,
            code=error.code,
            why=error.problem,
        )


@dataclass(slots=True)
class _Changes:
    since_s: float
    count: int = 0
    held: dict[str, object] | None = None  # the last one, if it was not logged
    message: str = ""


class LinkChanges:
    """The lines about links that come up and go down. Of one that does so all the time there are
    a few a minute, the last of which says how it is then."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._changes: dict[str, _Changes] = {}  # of neighbours, in the last minute

    def note(self, message: str, neighbour: str, **fields: object) -> None:
        fields = {"neighbour": neighbour, **fields}
        changes = self._changes.setdefault(neighbour, _Changes(self._runtime.elapsed_s()))
        changes.count += 1
        if changes.count <= CHANGES_MAX:
            self._runtime.note("info", message, **fields)
        else:
            changes.message, changes.held = message, fields

    def tick(self, now_s: float) -> None:
        """To be called every second or so while there are neighbours."""
        for neighbour, changes in list(self._changes.items()):
            if now_s - changes.since_s < CHANGES_S:
                continue
            del self._changes[neighbour]
            if changes.held is not None:
                self._runtime.note("info", changes.message, **changes.held, changes=changes.count)
