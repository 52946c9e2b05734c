"""Following: from which event to which a stream reads next."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.errors.spark import EventsGone
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import Place


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a place goes, and how far a stream may read: `through` is never beyond `head`."""

    through: int
    head: int


def begin(place: Place, options: Options) -> int:
    """The event after which a stream without a checkpoint begins."""
    return place.extent().first - 1 if options.after is None else options.after


def reach(place: Place, options: Options) -> Reach:
    head = place.extent().head
    return Reach(head if options.through is None else min(head, options.through), head)


def next_end(place: Place, after: int, through: int, rows: int | None) -> int:
    """Where the batch ends that begins after an event: at the end of a file, if it can."""
    if through <= after:
        return after
    if rows is None or through - after <= rows:
        return through
    return place.whole_until(after, after + rows)


def must_be_those_read_before(options: Options, after: int, head: int) -> None:
    if head < after:
        raise EventsGone(
            f"{options.path} ends at event {head}, and this query has already "
            f"read through {after}: these are other events than before",
            remedy="Start on them with a new checkpoint (`pipeline stream --rebuild`), or name "
            "the old place.",
        )
