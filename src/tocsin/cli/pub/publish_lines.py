"""`tocsin pub -`: lines of input to a broker, with the numbers of those that were bad."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from tocsin.cli.failure import error_text
from tocsin.cli.progress import Progress
from tocsin.cli.pub.line_events import Line, LineEvents, blocks
from tocsin.cli.render import plural, say, show_json
from tocsin.client.batch_sender import Batch, BatchSender, Stored
from tocsin.client.transport.connection import Connection
from tocsin.errors import BadEvent, BadEventSignature, SomeFailed, TocsinError

if TYPE_CHECKING:
    from tocsin.client.event_signer import EventSigner

FAILURES_SHOWN_MAX = 20
INTERRUPTED_S = 2.0  # how long an interrupt waits for the last response


class _Count:
    """Counts of the lines so far."""

    def __init__(self, progress: Progress, *, keep_going: bool) -> None:
        self.stored = 0
        self.failed = 0
        self.last = 0
        self._progress = progress
        self.keep_going = keep_going

    def settle(self, batch: Batch, result: Stored | TocsinError) -> None:
        if isinstance(result, Stored):
            self.stored += len(batch.events)
            self.last = max(self.last, result.last)
        else:
            self.bad(batch.numbers[0], result)
        self._progress.advance(len(batch.events))

    def bad(self, number: int, error: TocsinError) -> None:
        """A line that cannot be published; raises unless --keep-going."""
        if not self.keep_going:
            raise BadEvent(
                f"line {number}: {error.problem}",
                remedy=f"{error.remedy} Use --keep-going to skip bad lines.",
            )
        self.failed += 1
        if self.failed <= FAILURES_SHOWN_MAX:
            say(f"line {number}: {error_text(error).removeprefix('tocsin: ')}")


def publish_lines(
    source: BinaryIO,
    broker: str | None,
    defaults: dict[str, Any],
    *,
    patience_s: float,
    keep_going: bool,
    as_json: bool,
    signer: EventSigner | None = None,
) -> int:
    """Publish every line of `source`; the exit code."""
    make = LineEvents(defaults, signer)
    with Connection(broker) as connection, Progress("events") as progress:
        count = _Count(progress, keep_going=keep_going)
        # No broker at the start is an error at once; one that goes away is waited for.
        connection.request("GET", "/livez").value()
        sender = BatchSender(connection, count.settle, patience_s=patience_s)
        try:
            for block in blocks(source):
                _publish_block(block, make, sender, count)
            sender.drain()
        except TocsinError:
            say(f"{plural(count.stored, 'event')} stored before this:")
            raise
        except KeyboardInterrupt:
            _print_interrupted(sender, count)
            raise
    if as_json:
        show_json({"stored": count.stored, "failed": count.failed, "last": count.last})
    else:
        say(f"{plural(count.stored, 'event')} stored")
    if count.failed:
        raise SomeFailed(
            f"{plural(count.failed, 'line')} could not be published",
            remedy="Correct what is named above and publish it again.",
        )
    return 0


def _publish_block(block: list[Line], make: LineEvents, sender: BatchSender, count: _Count) -> None:
    """Send the events of the lines; a bad line is reported when those above it are settled."""
    batch, bad = Batch([], []), list[tuple[int, TocsinError]]()
    for line in block:
        try:
            batch.events.append(make.event(line.text))
            batch.numbers.append(line.number)
        except (BadEvent, BadEventSignature) as error:
            bad.append((line.number, error))
            if not count.keep_going:
                break
    if batch.events:
        sender.offer(batch)
    if bad or not block:
        sender.drain()
    for number, why in bad:
        count.bad(number, why)


def _print_interrupted(sender: BatchSender, count: _Count) -> None:
    with suppress(TocsinError):
        sender.shorten_timeouts(INTERRUPTED_S)
    left = sender.unsettled
    more = f"; {left:,} more may or may not be stored" if left else ""
    say(f"interrupted: {plural(count.stored, 'event')} stored{more}")
