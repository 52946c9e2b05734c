"""Where `tocsin pipeline` is told that archives and tables are: what cannot be is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.console.pipeline_asking import tables_directory
from tocsin.errors.pipeline import BadPipelineOption


def test_tables_are_in_a_directory_of_this_machine_however_it_is_written() -> None:
    assert tables_directory("file:///data/tables") == Path("/data/tables")
    assert tables_directory("tables") == Path("tables")


@pytest.mark.parametrize("place", ["s3://bucket/t", "s3a://k:hush@bucket/t", "file://there/t"])
def test_tables_elsewhere_are_refused_and_it_is_said_how_they_get_there(place: str) -> None:
    with pytest.raises(BadPipelineOption, match=r"this machine.* --publish") as caught:
        tables_directory(place)

    assert "hush" not in str(caught.value)


def test_tables_elsewhere_are_refused_in_the_settings_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOCSIN_PIPELINE__TABLES", "s3://bucket/t")

    with pytest.raises(BadPipelineOption, match=r"pipeline\.tables .*this machine"):
        tables_directory(None)
