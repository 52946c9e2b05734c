"""`tocsin archive replay`: archived events published again, as fast as they came or faster."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.last_event import last_event
from tocsin.archive.parquet_reader import read_piece
from tocsin.archive.record import EVENT_COLUMNS, to_events
from tocsin.archive.retention import day_of
from tocsin.cli.progress import Progress
from tocsin.cli.render import plural, say, show_json
from tocsin.client.batch_sender import BATCH_BYTES_MAX, BATCH_EVENTS_MAX, Batch, BatchSender, Stored
from tocsin.client.durations import seconds
from tocsin.client.transport.connection import Connection
from tocsin.errors import BadSetting, SomeFailed, TocsinError
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile
from tocsin.event import stored
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import matches
from tocsin.event.instant import NS_PER_S
from tocsin.wire.cloudevents.write import structured

READ_ROWS: Final = 5_000
SAVE_S: Final = 1.0  # between two writings of how far we came; what is sent twice is stored once
NAP_S: Final = 0.5  # so that the bar moves and Ctrl-C works while nothing is due
FAILURES_SHOWN_MAX: Final = 20
_SPEED: Final = re.compile(r"(\d+(?:\.\d+)?)x?")
_NUMBER: Final = re.compile(r"\s*[\d.]+\s*")


@dataclass(frozen=True, slots=True)
class ReplayFilter:
    """Which of the archive's events are published again."""

    after: int = 0
    through: int = 2**63 - 1
    since_ns: int | None = None
    until_ns: int | None = None
    filter: Filter | None = None

    def holds(self, each: stored.Stored) -> bool:
        if self.since_ns is not None and each.received_ns < self.since_ns:
            return False
        if self.until_ns is not None and each.received_ns >= self.until_ns:
            return False
        return self.filter is None or matches(self.filter, each.event)

    def may_be_in(self, piece: Piece) -> bool:
        if piece.last <= self.after or piece.first > self.through:
            return False
        day = day_of(piece)
        if day is None:
            return True
        begins_ns = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * NS_PER_S
        ends_ns = begins_ns + 86_400 * NS_PER_S
        if self.since_ns is not None and ends_ns <= self.since_ns:
            return False
        return self.until_ns is None or begins_ns < self.until_ns


def read_speed(text: str) -> float | None:
    """How many times as fast as it came: 1, 10x, 0.5x; None for `max`."""
    if text == "max":
        return None
    found = _SPEED.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise BadSetting(f"--speed {text!r} is not a speed", remedy="Write 1x, 10x, 0.5x or max.")
    return float(found[1])


def read_moment_ns(text: str, option: str) -> int:
    """A moment: 2026-03-01, 2026-03-01T12:00:00Z, or so long ago as in 10m."""
    if not is_ago(text):
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1e6) * 1_000
    try:
        ago_s = None if _NUMBER.fullmatch(text) else seconds(text)  # a bare one may be a year
    except BadSetting:
        ago_s = None
    if ago_s is None:
        raise BadSetting(
            f"{option} {text!r} is not a time",
            remedy="Write 2026-03-01, 2026-03-01T12:00:00Z, or how long ago: 10m, 2h, 7d.",
        )
    return time.time_ns() - int(ago_s * NS_PER_S)


def is_ago(text: str) -> bool:
    """True if it is not a moment of the calendar: then it is how long ago, or nothing."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return True
    return False


class Pace:
    """When each event is due, by the time that passed between them when they came."""

    def __init__(
        self,
        speed: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._begun: tuple[int, float] | None = None
        self._reached_ns = 0

    def wait_s(self, received_ns: int) -> float:
        """How long until it is due; a clock that was set back then is not waited for."""
        if self._speed is None:
            return 0.0
        if self._begun is None:
            self._begun = received_ns, self._clock()
            self._reached_ns = received_ns
        self._reached_ns = max(self._reached_ns, received_ns)
        first_ns, begun_s = self._begun
        return begun_s + (self._reached_ns - first_ns) / NS_PER_S / self._speed - self._clock()

    def wait_for(self, received_ns: int) -> None:
        while (left_s := self.wait_s(received_ns)) > 0:
            self._sleep(min(left_s, NAP_S))


class ResumeFile:
    """How far a replay came, in a file, if one was named."""

    def __init__(self, path: str | None, archive: str) -> None:
        self._path = path
        self._archive = os.path.abspath(archive)
        self._saved_s = time.monotonic()

    def read(self) -> int:
        """The last event that was published; 0 at the beginning."""
        if self._path is None or not os.path.exists(self._path):
            return 0
        try:
            kept: Any = json.loads(Path(self._path).read_text())
            through, archive = int(kept["through"]), str(kept["archive"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadSetting(
                f"{self._path} is not a valid resume file: {error}",
                remedy="Delete it to start from the beginning, or name another file.",
            ) from None
        if archive != self._archive:
            raise BadSetting(
                f"{self._path} belongs to a replay of {archive}", remedy="Name another file."
            )
        return through

    def save(self, through: int, *, at_once: bool = False) -> None:
        now_s = time.monotonic()
        if self._path is None or not (at_once or now_s >= self._saved_s + SAVE_S):
            return
        self._saved_s = now_s
        unfinished = f"{self._path}.tmp"
        try:
            Path(unfinished).write_text(json.dumps({"archive": self._archive, "through": through}))
            os.replace(unfinished, self._path)
        except OSError as error:
            raise BadSetting(
                f"--resume {self._path} cannot be written: {error.strerror or error}",
                remedy="Name a file in a directory that is there.",
            ) from error


class Replay:
    """One replay under way."""

    def __init__(self, directory: str, wanted: ReplayFilter, *, keep_going: bool) -> None:
        self._catalog = Catalog(directory)
        # What is there now, and no more: into the broker that fills this archive, a replay would
        # else go on for ever with what it has published itself.
        self._wanted = replace(wanted, through=min(wanted.through, self._catalog.through()))
        self._keep_going = keep_going
        self.published = 0
        self.failed = 0
        self.through = wanted.after

    @property
    def total(self) -> int:
        """About how many sequence numbers there are to go through."""
        return sum(
            min(piece.last, self._wanted.through) - max(piece.first - 1, self._wanted.after)
            for piece in self._pieces(self._wanted.after)
        )

    def _pieces(self, after: int) -> Iterator[Piece]:
        return (
            piece
            for piece in self._catalog.pieces()
            if piece.last > after and self._wanted.may_be_in(piece)
        )

    def events(self) -> Iterator[stored.Stored]:
        """All that may be wanted, in order, also while files are merged meanwhile."""
        after = self._wanted.after
        while (piece := next(self._pieces(after), None)) is not None:
            try:
                columns, through = EVENT_COLUMNS, self._wanted.through
                for batch in read_piece(
                    piece, columns, after=after, through=through, rows=READ_ROWS
                ):
                    for each in to_events(batch):
                        after = each.seq
                        yield each
            except ArchiveFileGone:
                if any(each.path == piece.path for each in self._catalog.pieces()):
                    raise  # it is listed, and cannot be opened: a link into nowhere
                continue
            except BadArchiveFile as error:
                self.cannot(error)
            after = piece.last

    def is_of(self, connection: Connection) -> bool:
        """Whether the archive ends with what the broker has under that number in its log."""
        pieces = self._catalog.pieces()
        ending = last_event(pieces[-1]) if pieces else None
        if ending is None:
            return False
        page = connection.request("GET", f"/events?after={ending.seq - 1}&limit=1").value()
        stored = list(zip(page["sequences"], page["events"], strict=True))
        return [(seq, each["source"], each["id"]) for seq, each in stored] == [ending]

    def cannot(self, error: TocsinError) -> None:
        """Something cannot be published; raises unless --keep-going."""
        if not self._keep_going:
            raise error
        self.failed += 1
        if self.failed <= FAILURES_SHOWN_MAX:
            say(f"{error.problem} [{error.code}]")

    def settle(self, batch: Batch, result: Stored | TocsinError) -> None:
        if isinstance(result, TocsinError):
            self.cannot(result)
        else:
            self.published += len(batch.events)
        self.through = batch.numbers[-1]

    def run(
        self, sender: BatchSender, pace: Pace, resume_file: ResumeFile, progress: Progress
    ) -> None:
        batch, size, total = Batch([], []), 0, self.total
        for done, each in enumerate(self.events()):
            if not self._wanted.holds(each):
                continue
            waits = pace.wait_s(each.received_ns) > 0
            if batch.events and (
                waits or len(batch.events) >= BATCH_EVENTS_MAX or size >= BATCH_BYTES_MAX
            ):
                sender.offer(batch)
                batch, size = Batch([], []), 0
                resume_file.save(self.through)
                progress.reach(done, total)
            if waits:
                sender.drain()
                pace.wait_for(each.received_ns)
            written = structured(each.event)
            batch.events.append(written)
            batch.numbers.append(each.seq)
            size += len(written)
        if batch.events:
            sender.offer(batch)
        sender.drain()


def replay(
    directory: str,
    wanted: ReplayFilter,
    *,
    broker: str | None,
    speed: float | None,
    resume: str | None,
    patience_s: float,
    keep_going: bool,
    as_json: bool,
) -> int:
    """Publish what is wanted again; the exit code."""
    resume_file = ResumeFile(resume, directory)
    gone_on = max(wanted.after, resume_file.read())
    work = Replay(directory, replace(wanted, after=gone_on), keep_going=keep_going)
    with Connection(broker) as connection, Progress("events") as progress:
        connection.request("GET", "/livez").value()  # an absent broker is reported at once
        # A file that cannot be written is reported before it is needed.
        resume_file.save(gone_on, at_once=True)
        if work.is_of(connection):
            say(
                f"this is the archive of the broker at {connection.address} itself: it stores its "
                "events again, except for the latest, which it knows to be duplicates"
            )
        sender = BatchSender(connection, work.settle, patience_s=patience_s)
        try:
            work.run(sender, Pace(speed), resume_file, progress)
        except BaseException:
            resume_file.save(work.through, at_once=True)
            hint = "" if resume else f"; --from-seq {work.through + 1} goes on"
            say(f"{plural(work.published, 'event')} published{hint}")
            raise
    resume_file.save(work.through, at_once=True)
    if as_json:
        show_json({"published": work.published, "failed": work.failed, "through": work.through})
    else:
        say(f"{plural(work.published, 'event')} published, up to {work.through}")
    if work.failed:
        raise SomeFailed(
            f"{plural(work.failed, 'time')} a file or an event could not be published",
            remedy="`tocsin archive verify` shows what is wrong with the archive.",
        )
    return 0
