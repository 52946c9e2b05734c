"""Whether an archive is still the one that the tables were made of.

A log that was started over numbers its events from one again. That it has fewer than before shows
it at once; when it has caught up, only the events themselves do.
"""

from __future__ import annotations

from tocsin.archive.catalog import Piece
from tocsin.archive.last_event import COLUMNS, LastEvent, events_at
from tocsin.archive.selection import select
from tocsin.errors.pipeline import BadPipelineOption
from tocsin.pipeline.locations import shown
from tocsin.pipeline.source.broker import Broker
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import Share


def started_over(archive: str, last: int, after: int) -> BadPipelineOption:
    """What to say of an archive that ends before the tables do."""
    return _another(f"{shown(archive)} ends with event {last}, and the tables have {after}")


def must_have(archive: str, pieces: list[Piece], last_event: LastEvent | None) -> None:
    """Raises BadPipelineOption if the files have another event under that number.

    What was let go, or cannot be read, says nothing.
    """
    if last_event is None:
        return
    holders = (each for each in pieces if each.first <= last_event.seq <= each.last)
    _must_be_among(
        archive,
        [found for each in holders for found in events_at(each, last_event.seq)],
        last_event,
    )


def broker_must_have(archive: str, last_event: LastEvent | None) -> None:
    """The same, of what a broker gives."""
    if last_event is None:
        return
    options = Options.parse({"path": archive, "holes": "skip", "bad_files": "skip"})
    share = Share(last_event.seq - 1, last_event.seq)
    batches = Broker(options).batches(share, select(COLUMNS))
    _must_be_among(
        archive, [LastEvent(**row) for batch in batches for row in batch.to_pylist()], last_event
    )


def _must_be_among(archive: str, found: list[LastEvent], last_event: LastEvent) -> None:
    """In a damaged archive two records may have one number: the tables have either of them."""
    if found and last_event not in found:
        other = found[0]
        raise _another(
            f"event {last_event.seq} of {shown(archive)} is {other.id!r} of {other.source!r}, "
            f"and the tables have {last_event.id!r} of {last_event.source!r}"
        )


def _another(how: str) -> BadPipelineOption:
    return BadPipelineOption(
        f"{how}: the archive was started over",
        remedy="Make tables of what is there with --rebuild, or name another directory.",
    )
