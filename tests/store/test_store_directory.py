"""Who may work in a data directory, and what is said when nobody can."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from store_samples import CHILD_ENVIRONMENT, append, log_of

from tocsin.errors import CorruptLog, DataDirectoryInUse, DataDirectoryUnusable, TocsinError
from tocsin.store.reader import Reader
from tocsin.store.store import Store


def test_a_missing_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"

    Store.open(directory).close()

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_second_store_of_the_same_process_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path)

    with pytest.raises(DataDirectoryInUse) as refused:
        Store.open(tmp_path)

    assert str(os.getpid()) in refused.value.problem
    assert str(tmp_path) in refused.value.problem
    store.close()


def test_a_second_process_is_refused_and_told_who_holds_the_directory(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    program = "import sys; from tocsin.store.store import Store; Store.open(sys.argv[1])"

    second = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=CHILD_ENVIRONMENT,
        capture_output=True,
        text=True,
    )

    assert "DataDirectoryInUse" in second.stderr
    assert f"process {os.getpid()} " in second.stderr
    append(store, 1)
    store.close()


def test_a_closed_store_lets_go_of_the_directory(tmp_path: Path) -> None:
    Store.open(tmp_path).close()

    Store.open(tmp_path).close()


def test_a_store_that_could_not_be_opened_lets_go_of_the_directory(tmp_path: Path) -> None:
    log_of(tmp_path).write_bytes(b"not a database at all" * 500)
    with pytest.raises(CorruptLog):
        Store.open(tmp_path)
    log_of(tmp_path).unlink()

    Store.open(tmp_path).close()


def test_a_file_in_the_place_of_the_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirectoryUnusable, match="file"):
        Store.open(tmp_path / "file")
    with pytest.raises(DataDirectoryUnusable, match="Not a directory"):
        Store.open(tmp_path / "file" / "below")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a place that takes no files")
def test_a_place_that_cannot_be_written_is_said() -> None:
    with pytest.raises(DataDirectoryUnusable):
        Store.open("/proc/tocsin")
    with pytest.raises(DataDirectoryUnusable):
        Store.open("/proc/self")


def test_a_log_that_is_a_directory_is_said(tmp_path: Path) -> None:
    log_of(tmp_path).mkdir()

    with pytest.raises(DataDirectoryUnusable, match="cannot be opened"):
        Store.open(tmp_path)


def test_a_log_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    apsw.Connection(str(log_of(tmp_path))).execute("PRAGMA user_version=99")
    before = log_of(tmp_path).read_bytes()

    with pytest.raises(DataDirectoryUnusable, match="newer Tocsin"):
        Store.open(tmp_path)
    with pytest.raises(DataDirectoryUnusable, match="newer Tocsin"):
        Reader.open(tmp_path)

    assert log_of(tmp_path).read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    apsw.Connection(str(log_of(tmp_path))).execute("CREATE TABLE events (name TEXT)")

    with pytest.raises(DataDirectoryUnusable, match="did not make"):
        Store.open(tmp_path)


def test_tables_changed_by_hand_are_said(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    apsw.Connection(str(log_of(tmp_path))).execute("ALTER TABLE cursors RENAME TO places")

    with pytest.raises(CorruptLog, match="not as Tocsin made them"):
        Store.open(tmp_path)


def test_reading_a_directory_without_a_log_is_said(tmp_path: Path) -> None:
    with pytest.raises(TocsinError, match="cannot be opened"):
        Reader.open(tmp_path)

    assert list(tmp_path.iterdir()) == []
