"""Loss: does a log lack what was acknowledged, and how it goes on if that is accepted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import apsw
import msgspec

from tocsin.errors import LogIncomplete
from tocsin.store.directory import LOG_NAME
from tocsin.store.files import database_bytes, reading
from tocsin.store.mark import HighWater, read_mark
from tocsin.store.record import LogMarks, seal
from tocsin.store.schema import (
    LOST_KEY,
    REPLACE_KEPT,
    REPLACE_MARKS,
    connect_reader,
    corrupt,
    has_tables,
    lost_ranges,
    read_marks,
)
from tocsin.store.wal import WalScan, scan_wal

WAL_SUFFIX = "-wal"
# How many events one frame can hold at most: a row takes some forty bytes of a page.
EVENTS_PER_FRAME_MAX = 256


@dataclass(frozen=True, slots=True)
class Loss:
    """The log ends with event `after`, and had come as far as `through`."""

    after: int
    through: int
    commits: int
    why: str
    is_expected: bool
    """The last broker did not wait for the disk (`log.synchronous`): a power cut may do this."""

    @property
    def words(self) -> str:
        if self.through <= self.after:
            missing = "no event is missing, but a subscription, a cursor or a dead letter is"
        elif self.after + 1 == self.through:
            missing = f"event {self.through} is missing"
        else:
            missing = f"events {self.after + 1} to {self.through} are missing"
        return f"it lacks what was acknowledged: {missing} ({self.why})"

    def marks(self, have: LogMarks) -> LogMarks:
        """How the log goes on: with numbers that nobody was given before."""
        trimmed_to = have.trimmed_to if have.last_seq > have.trimmed_to else self.through
        return replace(have, trimmed_to=trimmed_to, last_seq=self.through, commits=self.commits + 1)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What there is to see before SQLite opens the log, which may clean it away."""

    mark: HighWater | None
    wal: WalScan
    wal_bytes: int
    log_bytes: int


def gather(path: str, vfs: str | None) -> Evidence:
    with reading(path + WAL_SUFFIX, vfs) as (read, wal_bytes):
        wal = scan_wal(read, wal_bytes)
    return Evidence(read_mark(path, vfs), wal, wal_bytes, database_bytes(path, vfs))


def find_loss(seen: Evidence, have: LogMarks, *, is_synced: bool) -> Loss | None:
    """What the log lacks that has these marks. `is_synced`: how it is written, if no mark says."""
    mark, wal = seen.mark, seen.wal
    if not wal.bad_frame and (mark is None or mark.commits <= have.commits):
        return None
    through, commits = have.last_seq, have.commits + wal.commits_after
    if mark is not None:
        through = max(through, mark.last_seq)
    if mark is None or mark.commits < commits:
        # The mark is older than what shows in the write-ahead log, and nothing says how many
        # events that had. So as many as it can have had: a number may be left out, never reused.
        through += wal.frames_after * EVENTS_PER_FRAME_MAX
    else:
        commits = mark.commits
    return Loss(
        after=have.last_seq,
        through=through,
        commits=commits,
        why=_why(seen),
        is_expected=not (is_synced if mark is None else mark.is_synced),
    )


def _why(seen: Evidence) -> str:
    if not seen.log_bytes:
        return f"there is no {LOG_NAME}"
    if seen.wal.bad_frame:
        bad = seen.wal.bad_frame
        return f"{LOG_NAME}-wal is damaged at frame {bad} of {bad + seen.wal.frames_after - 1}"
    if not seen.wal_bytes:
        return f"{LOG_NAME}-wal was deleted, or {LOG_NAME} is an older copy"
    return f"{LOG_NAME}-wal is damaged, or {LOG_NAME} is an older copy"


def refused(path: str, loss: Loss) -> LogIncomplete:
    return LogIncomplete(
        f"{path}: {loss.words}",
        remedy=(
            "Restore a copy of the data directory. Or copy it as it is, and go on without what is "
            f"missing: `tocsin serve --accept-loss`; the next event gets number {loss.through + 1}."
        ),
    )


def accept(connection: apsw.Connection, path: str, loss: Loss, have: LogMarks) -> LogMarks:
    """Go on without what is lost, and remember which numbers those were."""
    for (verdict,) in connection.execute("PRAGMA quick_check(1)").fetchall():
        if verdict != "ok":
            raise corrupt(path, f"what is left of it does not fit together ({verdict})")
    marks = loss.marks(have)
    ranges = [*lost_ranges(connection), (loss.after + 1, loss.through)]
    value = msgspec.json.encode([each for each in ranges if each[0] <= each[1]])
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(REPLACE_MARKS, marks.row())
    connection.execute(REPLACE_KEPT, (LOST_KEY, value, seal(LOST_KEY, value)))
    connection.execute("COMMIT")
    return marks


def loss_in(directory: Path | str) -> Loss | None:
    """What a log lacks that no broker holds. Changes nothing."""
    path = str(Path(directory) / LOG_NAME)
    seen = gather(path, None)
    have = LogMarks()
    if seen.log_bytes:
        connection = connect_reader(path)
        try:
            have = read_marks(connection, path) if has_tables(connection) else have
        finally:
            connection.close()
    return find_loss(seen, have, is_synced=True)
