"""Tables that are made anew while somebody reads them: the reader reads the new ones."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from table_files import NOW, publish
from tocsin.cli.pipeline.show import show
from tocsin.cli.report import report
from tocsin.errors.pipeline import NoTables
from tocsin.tables.published import CURRENT, MANIFEST, VERSIONS, read_table, require

Read = Callable[[Path], object]


def renew(tables: Path) -> None:
    """Another version stands, and the one that stood is gone."""
    before = (tables / CURRENT).resolve()
    after = tables / VERSIONS / f"{int(before.name) + 1:06d}"
    before.rename(after)
    (tables / CURRENT).unlink()
    (tables / CURRENT).symlink_to(Path(VERSIONS) / after.name)


def renew_while_reading(monkeypatch: pytest.MonkeyPatch, tables: Path, times: int) -> list[int]:
    """So often a new version is made after the files were listed, and before they are opened.
    Returns what is still to come."""
    left, dataset = [*range(times)], ds.dataset

    def opened(source: Any, **options: Any) -> ds.Dataset:
        if isinstance(source, list) and left:
            left.pop()
            renew(tables)
        return dataset(source, **options)

    monkeypatch.setattr(ds, "dataset", opened)
    return left


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return publish(tmp_path / "tables", {"runs": [{"run": "r1", "state": "done"}]})


READERS: dict[str, Read] = {
    "show": lambda tables: show(tables, "runs", json=True, columns="run"),
    "report": lambda tables: report(tables, now=NOW),
}


def test_show_begins_again_with_the_version_that_stands_then(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = renew_while_reading(monkeypatch, tables, times=1)

    show(tables, "runs", json=True, columns="run")

    assert left == []
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"run": "r1"}]


def test_a_report_begins_again_with_the_version_that_stands_then(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = report(tables, now=NOW)
    left = renew_while_reading(monkeypatch, tables, times=1)

    page = report(tables, now=NOW)

    assert left == []
    assert page == expected


@pytest.mark.parametrize("name", READERS)
def test_if_tables_are_gone_again_the_remedy_is_to_retry_and_not_to_start_over(
    tables: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    left = renew_while_reading(monkeypatch, tables, times=9)

    with pytest.raises(NoTables, match="ask again") as caught:
        READERS[name](tables)

    assert len(left) == 9 - 2
    assert "--rebuild" not in str(caught.value)


def test_what_is_listed_and_gone_is_reported_the_same_by_every_reader(tables: Path) -> None:
    found = require(tables)
    (found.directory / "runs" / "part-00000.parquet").unlink()

    for read in (*READERS.values(), lambda tables: read_table(found, "runs")):
        with pytest.raises(NoTables, match="ask again") as caught:
            read(tables)
        assert "--rebuild" not in str(caught.value)

    os.unlink(found.directory / MANIFEST)
    with pytest.raises(NoTables, match="ask again") as caught:
        require(tables)
    assert "--rebuild" not in str(caught.value)


@pytest.mark.parametrize("name", READERS)
def test_for_a_disk_that_fails_the_remedy_is_not_to_start_over(
    tables: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: object, **_options: object) -> ds.Dataset:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "part-00000.parquet")

    monkeypatch.setattr(ds, "dataset", fails)

    with pytest.raises(NoTables, match=r"Input/output error.*permissions and the disk"):
        READERS[name](tables)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_table_is_to_be_made_again(tables: Path, name: str) -> None:
    (require(tables).directory / "runs" / "part-00000.parquet").write_bytes(b"PAR1 and no more")

    with pytest.raises(NoTables, match=r"table runs cannot be read.*pipeline run --rebuild"):
        READERS[name](tables)
