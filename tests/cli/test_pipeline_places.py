"""Where `tocsin pipeline` is told that archives and tables are: what cannot be is refused."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tocsin.cli.pipeline.actions import archive_place, tables_directory
from tocsin.cli.pipeline.session import session_for
from tocsin.errors.pipeline import BadPipelineOption
from tocsin.pipeline.job import Job


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


@pytest.mark.parametrize(
    "place",
    [
        "http://me:hush@broker:8400",
        "https://hush@broker",
        "http://me:hu/hush@broker:8400",
        "s3a://key:hush@bucket/archive",
        "kafka://me:hush@one:9092/topic",
        "abfs://container:hush@account.dfs.core.windows.net/archive",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(place: str) -> None:
    with pytest.raises(BadPipelineOption, match=r"--archive .* Leave it out.*--conf") as caught:
        archive_place(place)

    assert "hush" not in str(caught.value)
    assert "hu/" not in str(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        "http://broker:8400",
        "https://[::1]:8400",
        "s3a://bucket/date=2026/a:b@c",
        "abfs://container@account.dfs.core.windows.net:443/archive",
        "hdfs://me@head:8020/archive",
        "file:///a:b@c",
        "kafka://one:9092,two:9092/topic",
    ],
)
def test_an_address_without_a_password_is_taken_as_it_is(place: str) -> None:
    assert archive_place(place) == place


def test_of_a_setting_that_is_none_only_the_name_is_reported(tmp_path: Path) -> None:
    asked = Namespace(action="run", master="local[1]", conf=["hadoop.fs.s3a.secret.key=hush"])

    with pytest.raises(BadPipelineOption, match=r"hadoop\.fs\.s3a\.secret\.key") as caught:
        session_for(asked, Job("s3a://there", tmp_path))

    assert "hush" not in str(caught.value)
