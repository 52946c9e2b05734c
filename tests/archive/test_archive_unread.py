"""Files that the machine does not read: they may be sound, and stay where they are."""

from __future__ import annotations

import errno
import pickle
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.archives import add_fresh, add_sealed
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits
from tocsin.archive.catalog import Piece
from tocsin.archive.file_names import format_range
from tocsin.archive.last_event import events_at, last_event
from tocsin.archive.parquet_reader import read_footer, read_piece, read_range
from tocsin.archive.verify import verify
from tocsin.cli.archive.show import verify_archive
from tocsin.errors.archive import LOOK_AROUND, ArchiveFileNotRead
from unreadable_file import fail_to_read


def numbers(directory: Path) -> list[int]:
    batches = read_range(directory, ["seq"], through=2**62)
    return [seq for batch in batches for seq in batch.column("seq").to_pylist()]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EIO, "Error reading bytes from file"), "Input/output error"),
        (OSError(errno.EMFILE, "Failed to open local file"), "Too many open files"),
        (PermissionError(errno.EACCES, "Failed to open local file"), "Permission denied"),
        (OSError(errno.ESTALE, "Error reading bytes from file"), "Stale file handle"),
        (OSError(errno.ENOMEM, "Error reading bytes from file"), "Cannot allocate memory"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), "not enough memory"),
    ],
)
def test_a_file_that_the_machine_does_not_read_is_no_bad_file_and_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    add_fresh(tmp_path, 1, 10)
    path = str(add_fresh(tmp_path, 11, 20))
    unread = Piece(11, 20, path, True, 0)
    fail_to_read(monkeypatch, path, error)

    for read in (
        lambda: list(read_piece(unread)),
        lambda: read_footer(unread),
        lambda: numbers(tmp_path),
    ):
        with pytest.raises(ArchiveFileNotRead, match=words) as caught:
            read()
        assert caught.value.path == path
        assert path in str(pickle.loads(pickle.dumps(caught.value)))

    assert last_event(unread) is None
    assert events_at(unread, 15) == []
    monkeypatch.undo()
    assert not (tmp_path / "_damaged").exists()
    assert numbers(tmp_path) == list(range(1, 21))


def test_around_a_fresh_file_that_is_not_read_the_others_are_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_fresh(tmp_path, 1, 10)
    path = str(add_fresh(tmp_path, 11, 20))
    add_fresh(tmp_path, 21, 30)
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0))
    fail_to_read(monkeypatch, path, OSError(errno.EIO, "Error reading bytes from file"))

    waiting = writer.seal_due(time.time() + 1)
    sealed = sorted(each.name for each in tmp_path.glob("date=*/*.parquet"))
    monkeypatch.undo()
    later = writer.seal_due(time.time() + 1)

    assert ([each.path for each in waiting.unread], waiting.damaged) == ([path], [])
    assert sealed == [format_range(1, 10), format_range(21, 30)]
    assert later == ([], [])
    assert numbers(tmp_path) == list(range(1, 31))
    assert verify(str(tmp_path)).ok


def test_one_that_fails_while_it_is_sealed_waits_and_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_fresh(tmp_path, 1, 10)
    path = str(add_fresh(tmp_path, 11, 20))
    writer = ArchiveWriter(str(tmp_path), SealLimits())
    assert writer.seal_due(time.time()) == ([], [])  # their ends are known now
    fail_to_read(monkeypatch, path, OSError(errno.EIO, "Error reading bytes from file"))

    waiting = writer.seal_due(time.time() + 7_200)

    assert ([each.path for each in waiting.unread], waiting.damaged) == ([path], [])
    assert list(tmp_path.glob("date=*/*")) == []


def test_a_time_that_no_clock_shows_is_damage_and_verifying_goes_on(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 10)
    path = add_sealed(tmp_path, 11, 20)
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index("received")
    far = pa.array([2**60] * 10, pa.int64()).cast(table.schema.field(place).type)
    metadata = table.schema.metadata
    table = table.set_column(place, table.schema.field(place), far)
    pq.write_table(table.replace_schema_metadata(metadata), path)

    report = verify(str(tmp_path))

    (finding,) = report.findings
    assert (finding.level, finding.where) == ("damage", str(path))
    assert "out of range" in finding.what
    assert report.events == 10


def test_verifying_goes_on_after_a_file_that_was_not_read_and_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_fresh(tmp_path, 1, 10)
    path = str(add_fresh(tmp_path, 11, 20))
    damaged = add_fresh(tmp_path, 21, 30)
    damaged.write_bytes(damaged.read_bytes()[:-10])
    fail_to_read(monkeypatch, path, OSError(errno.EIO, "Error reading bytes from file"))

    report = verify(str(tmp_path))
    code = verify_archive(str(tmp_path), as_json=False)

    reported = {each.where: (each.level, each.what, each.remedy) for each in report.findings}
    assert reported[path] == ("unread", "it was not read: Input/output error", LOOK_AROUND)
    assert reported[str(damaged)][0] == "damage"
    assert (report.ok, report.events, report.files) == (False, 10, 3)
    assert code == 1
    assert f"unread: {path}: it was not read: Input/output error" in capsys.readouterr().out


def test_what_was_not_read_is_no_damage_and_all_is_not_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(add_fresh(tmp_path, 1, 10))
    fail_to_read(monkeypatch, path, PermissionError(errno.EACCES, "Failed to open local file"))

    code = verify_archive(str(tmp_path), as_json=False)

    assert code == 1
    assert capsys.readouterr().err.strip().endswith("not everything was read")


def test_a_link_that_leads_to_itself_is_no_damage(tmp_path: Path) -> None:
    loop = tmp_path / format_range(1, 10)
    loop.symlink_to(loop)

    with pytest.raises(ArchiveFileNotRead, match="Too many levels of symbolic links"):
        list(read_piece(Piece(1, 10, str(loop), True, 0)))
