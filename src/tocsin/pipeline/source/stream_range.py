"""Following: from which event to which a stream reads next."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.errors.spark import EventsGone
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import EventSource


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a source goes, and how far a stream may read: `through` is never beyond `head`."""

    through: int
    head: int


def begin(source: EventSource, options: Options) -> int:
    """The event after which a stream without a checkpoint begins."""
    return source.extent().first - 1 if options.after is None else options.after


def reach(source: EventSource, options: Options) -> Reach:
    head = source.extent().head
    return Reach(head if options.through is None else min(head, options.through), head)


def next_end(source: EventSource, after: int, through: int, rows: int | None) -> int:
    """Where the batch ends that begins after an event: at the end of a file, if it can."""
    if through <= after:
        return after
    if rows is None or through - after <= rows:
        return through
    return source.whole_until(after, after + rows)


def must_be_those_read_before(options: Options, after: int, head: int) -> None:
    if head < after:
        raise EventsGone(
            f"{options.path} ends at event {head}, and this query has already "
            f"read through {after}: these are other events than before",
            remedy="Start on them with a new checkpoint (`pipeline stream --rebuild`), or name "
            "the old place.",
        )
