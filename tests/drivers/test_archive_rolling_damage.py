"""Rolling over damage: what the log still has is written anew, and the rest is told once."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from drivers.rolled_log import Log, crash_at
from tocsin.archive.file_names import format_range
from tocsin.archive.verify import verify
from tocsin.errors import DiskFull
from tocsin.errors.archive import ArchiveOfAnotherLog
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.store.directory import LOG_NAME
from unreadable_file import fail_to_read


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    found = Log(tmp_path / "data")
    yield found
    found.store.close()


def test_a_damaged_fresh_file_is_taken_from_the_log_again(log: Log) -> None:
    log.write(30)
    log.roll()
    (fresh,) = (log.archive / "_fresh").glob("*.parquet")
    fresh.write_bytes(fresh.read_bytes()[:-50])
    log.write(5)

    rolled = log.roll(now_s=time.time() + 7_200)

    assert rolled.damaged == (str(fresh),)
    assert log.archived() == log.written


def spoil_first_fresh(log: Log) -> Path:
    fresh = min((log.archive / "_fresh").glob("*.parquet"))
    fresh.write_bytes(fresh.read_bytes()[:-50])
    return fresh


@pytest.mark.parametrize("trimmed_to", [0, 10])
@pytest.mark.parametrize("step", range(10))
def test_a_crash_while_a_damaged_file_is_written_anew_is_made_good_at_the_next_roll(
    log: Log, step: int, trimmed_to: int
) -> None:
    log.write(30)
    log.roll()
    log.write(20)
    log.roll()
    spoil_first_fresh(log)
    if trimmed_to:
        log.store.write(Batch(trim_to=trimmed_to))
    soon_s = time.time() + 7_200

    with crash_at(step):
        log.roll(now_s=soon_s)
    if trimmed_to:
        log.store.write(Batch(trim_to=trimmed_to + 5))
    for _ in range(2):
        log.roll(now_s=soon_s)

    found = [each.seq for each in log.archived()]
    first = found[0]
    assert found == list(range(first, 51))
    assert first in ((11, 16) if trimmed_to else (1,)), "as the log was before or after the crash"
    reported = [each.what for each in verify(str(log.archive)).findings if each.level == "damage"]
    missing = f"it was damaged, and events 1 to {first - 1} are in no other file"
    assert reported == ([missing] if trimmed_to else [])


def test_files_that_are_not_read_hold_up_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(30)
    log.roll()
    (fresh,) = (log.archive / "_fresh").glob("*.parquet")
    fail_to_read(monkeypatch, str(fresh), OSError(errno.EIO, "Error reading bytes from file"))
    log.write(5)

    rolled = log.roll(now_s=time.time() + 7_200)
    monkeypatch.undo()
    later = log.roll(now_s=time.time() + 7_200)

    assert (rolled.through, rolled.damaged, rolled.unread) == (35, (), (str(fresh),))
    assert later.unread == ()
    assert log.archived() == log.written


def test_a_full_disk_hides_no_damaged_file(log: Log) -> None:
    log.write(30)
    log.roll()
    log.write(20)
    log.roll()
    fresh = spoil_first_fresh(log)

    with pytest.raises(DiskFull):
        log.roll(free_bytes_min=1 << 60)
    in_between = verify(str(log.archive))
    rolled = log.roll()

    assert not in_between.ok
    assert rolled.damaged == (str(fresh),)
    assert log.archived() == log.written


def test_what_is_written_anew_ends_where_the_damaged_file_did(log: Log) -> None:
    log.write(30)
    log.roll()
    log.write(60)
    log.roll()
    later = max((log.archive / "_fresh").glob("*.parquet"))
    sealed = log.archive / "date=2026-09-21" / later.name
    sealed.parent.mkdir()
    later.rename(sealed)
    spoil_first_fresh(log)
    log.store.write(Batch(trim_to=15))

    rolled = log.roll()

    assert rolled.through == 90
    assert [each.name for each in (log.archive / "_fresh").iterdir()] == [format_range(16, 30)]
    assert [each.seq for each in log.archived()] == list(range(16, 91))
    (finding,) = verify(str(log.archive)).findings
    assert "events 1 to 15 are in no other file" in finding.what


def test_what_the_log_cannot_give_at_its_end_is_counted_once_however_often_we_start(
    log: Log,
) -> None:
    log.write(50)
    log.roll()
    log.write(10)
    with contextlib.closing(apsw.Connection(str(log.directory / LOG_NAME))) as database:
        database.execute("UPDATE events SET crc = crc + 1 WHERE seq > 50")

    starts = [log.roll() for _ in range(3)]
    log.write(5)
    last = log.roll()
    after = log.roll()

    assert [(each.through, each.left_out) for each in starts] == [(60, 0)] * 3
    assert (last.through, last.left_out) == (65, 10)
    assert after.left_out == 0
    assert [each.seq for each in log.archived()] == [*range(1, 51), *range(61, 66)]
    report = verify(str(log.archive))
    assert report.ok
    assert "10 of its sequence numbers have no event" in report.findings[0].what


@pytest.mark.parametrize("is_damaged", [True, False])
def test_another_log_is_known_also_when_the_last_file_is_not_read(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    log.write(30)
    log.roll()
    log.write(20)
    log.roll()
    last = max((log.archive / "_fresh").glob("*.parquet"))
    if is_damaged:
        last.write_bytes(last.read_bytes()[:-50])
    else:
        fail_to_read(monkeypatch, str(last), PermissionError(errno.EACCES, "Failed to open"))
    other = Log(tmp_path / "other", log.archive)
    events = (Event(id=f"other-{n}", source="/t", type="t", topic="a") for n in range(1, 61))
    other.store.write(Batch(events=[Stored(n, 1, each) for n, each in enumerate(events, 1)]))

    with pytest.raises(ArchiveOfAnotherLog, match="event 30 differs"):
        other.roll()
    other.store.close()
    assert log.roll().through == 50
