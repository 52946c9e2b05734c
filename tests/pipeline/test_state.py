"""What is kept for the tables belongs to one archive, one window and one version of its form."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tocsin.errors.pipeline import BadPipelineOption
from tocsin.pipeline.state import FORMAT, WINDOW, PartialFacts, State, Window


def _kept(tables: Path, window: Window) -> State:
    state = State(tables)
    with state.held():
        state.agree_on(window)
        with state.new_place() as place:
            state.keep(place, PartialFacts(1, 10))
    return state


def test_tables_of_one_archive_are_not_made_of_another(tmp_path: Path) -> None:
    state = _kept(tmp_path, Window(archive="one"))
    state.agree_on(Window(archive="one"))
    with pytest.raises(BadPipelineOption, match="--anew"):
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
        assert "--anew" in str(refused.value.remedy)
