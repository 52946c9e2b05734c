"""What is kept for the tables belongs to one archive, one window and one version of its form."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tocsin.errors.pipeline import BadPipelineOption
from tocsin.pipeline.state import FORMAT, WINDOW, PartialFacts, State, Window, write_whole


def _kept(tables: Path, window: Window) -> State:
    state = State(tables)
    with state.held():
        state.agree_on(window)
        with state.new_directory() as place:
            state.keep(place, PartialFacts(1, 10))
    return state


def test_tables_of_one_archive_are_not_made_of_another(tmp_path: Path) -> None:
    state = _kept(tmp_path, Window(archive="one"))
    state.agree_on(Window(archive="one"))
    with pytest.raises(BadPipelineOption, match="--rebuild"):
        state.agree_on(Window(archive="two"))


def test_what_another_version_kept_is_not_read(tmp_path: Path) -> None:
    state = _kept(tmp_path, Window(archive="one"))
    path = state.directory / WINDOW
    had = msgspec.json.decode(path.read_bytes())
    assert had["format"] == FORMAT
    for written in ({**had, "format": FORMAT + 1}, {"archive": "one"}):
        path.write_bytes(msgspec.json.encode(written))
        with pytest.raises(BadPipelineOption, match="another version") as refused:
            state.agree_on(Window(archive="one"))
        assert "--rebuild" in str(refused.value.remedy)


def test_only_a_window_that_moves_and_its_own_archive_are_started_over(tmp_path: Path) -> None:
    then, now = (datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2))
    moved = Window(now, archive="one", moves=True)

    state = _kept(tmp_path / "moving", Window(then, archive="one", moves=True))
    everything = _kept(tmp_path / "everything", Window(archive="one"))

    assert state.has_moved(moved)
    assert not state.has_moved(Window(then, archive="one", moves=True))
    assert not state.has_moved(Window(now, archive="two", moves=True))
    assert not state.has_moved(Window(now, archive="one"))
    assert not everything.has_moved(moved)
    with pytest.raises(BadPipelineOption, match="--rebuild"):
        everything.agree_on(moved)


def test_what_was_started_over_is_known_as_another(tmp_path: Path) -> None:
    state = _kept(tmp_path, Window(archive="one"))
    before = state.id
    state.agree_on(Window(archive="one"))
    assert state.id == before
    state.forget()
    state.agree_on(Window(archive="one"))
    assert state.id not in ("", before)


def test_what_was_left_unfinished_is_removed_wherever_it_is(tmp_path: Path) -> None:
    state = _kept(tmp_path, Window(archive="one"))
    (part,) = state.partials()
    keys = part.directory / "keys"
    keys.mkdir()
    (keys / "part-1.parquet").touch()
    left = [each / ".tmp-1" for each in (state.directory, state.partials_directory, keys)]
    for path in left:
        path.touch()

    with state.held():
        assert [path for path in left if path.exists()] == []
        assert (keys / "part-1.parquet").exists()


def test_of_what_could_not_be_written_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "facts.json", b"{}")

    assert list(tmp_path.iterdir()) == []
