"""`tocsin pipeline` as it is typed: what makes no sense is refused in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sample_tables import START
from table_files import publish
from tocsin.cli.archive.replay import is_ago
from tocsin.cli.main import run
from tocsin.cli.pipeline.actions import _moment
from tocsin.cli.pipeline.session import started
from tocsin.errors import BadSetting
from tocsin.errors.pipeline import PipelineFailed
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan


def spawned(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as one that starts Spark must be."""
    command = [sys.executable, "-m", "tocsin", "pipeline", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tocsin(capfd: pytest.CaptureFixture[str]) -> Called:
    """Runs the command in this process; its exit code, output and errors."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        try:
            code = run(["pipeline", *map(str, arguments)])
        except SystemExit as ended:  # of the parser
            code = int(ended.code or 0)
        written = capfd.readouterr()
        return code, written.out, written.err

    return call


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--archive", "s3a://there", "--tables", ""), "--tables is empty"),
        (("run", "--archive", ""), "--archive is empty"),
        (("run", "--archive", "s3a://there", "--publish", ""), "--publish is empty"),
        (("report", "--html", ""), "--html is empty"),
        (("report", "--html", "/"), "--html / is a directory"),
        (
            ("stream", "--archive", "s3a://there", "--refresh", "nan"),
            "--refresh must be a number above zero",
        ),
        (
            ("run", "--archive", "s3a://there", "--since", "1d", "--until", "2d"),
            "is not before --until 2d",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_line(
    tocsin: Called, arguments: tuple[str, ...], words: str
) -> None:
    code, _, errors = tocsin(*arguments)

    assert code == 2, errors
    assert words in errors
    assert "Traceback" not in errors


def test_an_error_of_spark_at_its_start_names_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from tocsin.pipeline.spark import session as sessions

    def fails(*arguments: object, **options: object) -> None:
        raise OSError("Could not parse Master URL: 'local[x]'")

    monkeypatch.setattr(sessions, "session", fails)

    with pytest.raises(PipelineFailed) as raised:
        started(Namespace(master="local[x]", conf=[]), "work", {})

    assert "Spark does not start with --master local[x]: " in raised.value.problem
    assert "Could not parse Master URL" in raised.value.problem
    assert "\n" not in raised.value.problem
    assert "--master" in raised.value.remedy


@pytest.mark.slow
@pytest.mark.java
def test_a_bad_master_is_reported_in_one_line(tmp_path: Path) -> None:
    synthesize(Plan(events=1_000, seed=1), tmp_path / "archive", lambda done: None)
    places = ("--archive", tmp_path / "archive", "--tables", tmp_path / "tables")

    refused = spawned("run", *places, "--master", "local[x]")

    assert refused.returncode == 1
    assert "Spark does not start with --master local[x]" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("action", ["show", "report", "quality"])
def test_tables_that_are_no_directory_are_reported_in_one_line(
    tocsin: Called, tmp_path: Path, action: str
) -> None:
    file = tmp_path / "file"
    file.touch()

    code, _, errors = tocsin(action, "--tables", file)

    assert code == 5, errors
    assert f"the tables in {file} cannot be read" in errors
    assert "Not a directory" in errors
    assert "Traceback" not in errors


def test_tables_are_listed_with_the_window_that_they_are_of(tocsin: Called, tmp_path: Path) -> None:
    publish(tmp_path, {}, since=START, until=START + timedelta(days=7, seconds=1))

    _, _, shown = tocsin("show", "--tables", tmp_path)
    _, listed, _ = tocsin("show", "--tables", tmp_path, "--json")

    assert shown.strip().endswith(
        "through event 48,213,377, "
        "of what was received from 2026-01-01 00:00 to 2026-01-08 00:00:01 UTC"
    )
    assert json.loads(listed)["since"] == "2026-01-01T00:00:00Z"


@pytest.mark.slow
def test_quality_lists_every_check_and_which_rows_break_one(tmp_path: Path) -> None:
    synthesize(Plan(events=1_000, seed=1), tmp_path / "archive", lambda done: None)
    tables = ("--tables", tmp_path / "tables")
    made = spawned("run", "--archive", tmp_path / "archive", *tables)
    assert made.returncode == 0, made.stderr

    sound = spawned("quality", *tables)
    (path,) = (tmp_path / "tables" / "runs").glob("*.parquet")
    runs = pq.read_table(path, partitioning=None)
    place = runs.schema.get_field_index("state")
    states = ["dancing", *runs["state"].to_pylist()[1:]]
    pq.write_table(runs.set_column(place, runs.schema.field(place), [states]), path)
    broken = spawned("quality", *tables)

    assert (sound.returncode, "BROKEN" in sound.stdout) == (0, False)
    assert broken.returncode == 1
    assert broken.stdout.count("BROKEN") == 1
    assert "state='dancing'" in broken.stdout + broken.stderr


@pytest.mark.parametrize("text", ["90", "2026", "1.5"])
def test_a_bare_number_is_no_moment(text: str) -> None:
    with pytest.raises(BadSetting, match="is not a time"):
        _moment(text, "--since")


def test_what_the_calendar_does_not_know_is_so_long_ago() -> None:
    moments = ("20260301", "2026-03-01", "2026-03-01T12:00:00Z")
    ago = ("30d", "12 h", "1h30m", "7D", "PT12H")
    assert [is_ago(text) for text in (*moments, *ago)] == [False] * 3 + [True] * 5


@pytest.mark.parametrize("text", ["12h", "1h30m", "PT12H", "90 min"])
def test_hours_ago_begin_with_the_hour(text: str) -> None:
    moment = _moment(text, "--since")

    assert moment is not None
    assert (moment.minute, moment.second, moment.microsecond) == (0, 0, 0)


@pytest.mark.parametrize("text", ["30d", "30 days", "7D", "P7D"])
def test_days_ago_begin_with_the_day(text: str) -> None:
    moment = _moment(text, "--since")

    assert moment is not None
    assert (moment.hour, moment.minute, moment.second) == (0, 0, 0)
