"""RunNumbers: which of the runs with one id a message belongs to, kept from batch to batch."""

from __future__ import annotations

from typing import Any, Final

import apsw

from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.monitor.fold import ParsedMessage, Row, RunMessage
from tocsin.monitor.generations import Generation, Generations, boundary_of, named

_COLUMNS: Final = "number, opened_ns, opened_last_ns, created_ns, started_ns, ended_ns, heard_ns"
_SELECT: Final = f"SELECT {_COLUMNS} FROM generations WHERE id = ? ORDER BY number"
_PUT: Final = "INSERT OR REPLACE INTO generations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class RunNumbers:
    """The runs of the ids that a batch speaks of. One object for each batch: see `write`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, Generations] = {}
        self._changed: set[str] = set()

    def run_of(self, parsed: ParsedMessage, message: RunMessage) -> str:
        """The id of the run that the message belongs to."""
        known = self._generations(parsed.run)
        turn = None if message.derived else boundary_of(parsed, message)
        if turn is None:
            return named(parsed.run, known.number_at(parsed.order_ns))
        self._changed.add(parsed.run)
        return named(parsed.run, known.take(turn))

    def write(self) -> None:
        """Keep what has changed. Within the transaction of the batch."""
        self._connection.executemany(
            _PUT,
            [
                (run_id, each.number, named(run_id, each.number), *_columns(each))
                for run_id in sorted(self._changed)
                for each in self._known[run_id].known
            ],
        )

    def _generations(self, run_id: str) -> Generations:
        found = self._known.get(run_id)
        if found is None:
            rows: list[Any] = self._connection.execute(_SELECT, (run_id,)).fetchall()
            known = [Generation(*row) for row in rows] or self._of_before(run_id)
            found = self._known[run_id] = Generations(known)
        return found

    def _of_before(self, run_id: str) -> list[Generation]:
        """A run that was folded before its beginning and end were kept apart from it."""
        found: list[Any] = self._connection.execute(
            "SELECT row FROM runs WHERE id = ?", (run_id,)
        ).fetchall()
        return [_read_off(decode_row(row)) for (row,) in found]


def _columns(each: Generation) -> tuple[int | None, ...]:
    return (
        each.opened_ns,
        each.opened_last_ns,
        each.created_ns,
        each.started_ns,
        each.ended_ns,
        each.received_ns,
    )


def _read_off(row: Row) -> Generation:
    opened = [row[name] for name in ("created", "started") if name in row]
    last = [row[name] for name in ("created", "started_last") if name in row]
    return Generation(
        1,
        min(opened, default=None),
        max(last, default=None),
        row.get("created"),
        row.get("started_last"),
        row.get("ended"),
        row.get("last_received", 0),
    )
