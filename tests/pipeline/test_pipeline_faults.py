"""Bad records, old and new files, kills and full disks: what is lost is named, nothing is half."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.damage import (
    END_S,
    Command,
    add_file,
    as_newer,
    as_older,
    as_table,
    ended,
    message,
    pipeline,
    version_read_whole,
)
from pipeline.sameness import assert_same, rows
from tocsin.archive.verify import verify
from tocsin.cli.pipeline.show import show
from tocsin.cli.report import report
from tocsin.event.instant import NS_PER_S
from tocsin.monitor.values import NAME_CHARS_MAX
from tocsin.pipeline.job import Job, run
from tocsin.pipeline.stream import Pace, Progress, StreamJob
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.published import published, require
from tocsin.tables.schemas import TABLES

MOMENT = datetime(2026, 2, 1, 12, tzinfo=UTC)
MOMENT_TEXT = "2026-02-01T12:00:00Z"
MOMENT_NS = int(MOMENT.timestamp()) * NS_PER_S
LONG = "x" * (1 << 20)
HAND_MADE_USABLE = 8  # an old one, a new one, four of clocks, two of many words
SECONDS_IN_12000 = 316_500_000_000
KILLED_WITHIN_S = 8.0  # some batches, and a new edition or two


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """An archive with every kind of bad record, files of other versions, and what is true of it."""
    archive = tmp_path_factory.mktemp("faults") / "archive"
    plan = Plan(events=3_000, seed=11, broken=0.02, broken_files=True, files_of=500)
    truth = synthesize(plan, archive, lambda done: None)
    seq = truth["last_seq"] + 1
    old = [message(seq, ended("old", MOMENT_TEXT), subject="step-1")]
    seq = add_file(archive, as_older(as_table(old, seq, [MOMENT_NS]), "ExitCode"), seq, version=0)
    new = [message(seq, ended("new", MOMENT_TEXT))]
    seq = add_file(archive, as_newer(as_table(new, seq, [MOMENT_NS])), seq, version=2)
    seq = add_file(archive, _clocks(seq), seq)
    add_file(archive, _megabytes(seq), seq)
    return archive, truth


def _clocks(seq: int) -> Any:
    """Two of publishers whose clocks are years off, two of brokers whose clocks are, and two with
    times that no clock shows."""
    future_ns = int((datetime.now(UTC) + timedelta(days=800)).timestamp()) * NS_PER_S
    switched_on_ns = 5 * NS_PER_S  # where nothing keeps the time, it begins with 1970
    past, ahead = "1970-01-02T00:00:00Z", "2099-01-01T00:00:00Z"
    events = [
        message(seq, ended("past", past), time=past),
        message(seq + 1, ended("ahead", ahead), time=ahead),
        message(seq + 2, ended("early-broker", MOMENT_TEXT)),
        message(seq + 3, ended("late-broker", MOMENT_TEXT)),
        message(seq + 4, ended("no-time", MOMENT_TEXT)),
        message(seq + 5, ended("no-year", MOMENT_TEXT)),
    ]
    impossible_ns = [-NS_PER_S // 1000, SECONDS_IN_12000 * NS_PER_S]
    received_ns = [MOMENT_NS, MOMENT_NS, switched_on_ns, future_ns, *impossible_ns]
    return as_table(events, seq, received_ns)


def _megabytes(seq: int) -> Any:
    """Two with names of a megabyte, and two that say a megabyte where one may."""
    reported = ended("wordy", MOMENT_TEXT)
    events = [
        message(seq, reported, id=LONG),
        message(seq + 1, reported, topic=LONG),
        message(seq + 2, {**reported, "ErrorMessage": LONG * 3, "Command": LONG}),
        message(seq + 3, {**reported, "ActivityId": LONG}),
    ]
    return as_table(events, seq, [MOMENT_NS] * len(events))


def expected_aside(truth: dict[str, Any]) -> Counter[str]:
    """Why how many records cannot be used, by what was broken."""
    broken = truth["broken"]
    no_object = ("not_json", "not_utf8", "not_an_object")
    return Counter(
        {
            "it should be a message, and its data is not a JSON object": sum(
                broken[kind] for kind in no_object
            ),
            "its RunId is too long or not printable": broken["bad_run"],
            "it has no sequence number": broken["seq_repeats"],
            **{f"it has no {name}": broken[f"null_{name}"] for name in ("id", "source", "type")},
            **{f"it has no time ({name})": broken[f"null_{name}"] for name in ("received", "at")},
            "its time (received) is out of range": 2,
            "its id is too long to be one": 1,
            "its topic is too long": 1,
        }
    )


def aside(tables: Path) -> Counter[str]:
    return Counter(rows(tables, "quarantine")["reason"].to_pylist())


@pytest.fixture(scope="module")
def made(
    ready: SparkSession,
    hurt: tuple[Path, dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The tables of that archive."""
    tables = tmp_path_factory.mktemp("made")
    run(ready, Job(str(hurt[0]), tables))
    return tables


def test_bad_records_are_set_aside_with_their_reason_and_all_others_are_there(
    hurt: tuple[Path, dict[str, Any]], made: Path
) -> None:
    _, truth = hurt
    usable = sum(truth["broken"][kind] for kind in ("no_run", "bad_time", "bad_number", "huge"))

    manifest = require(made).manifest

    assert aside(made) == expected_aside(truth)
    assert manifest.counts["set_aside"] == expected_aside(truth).total()
    assert manifest.counts["duplicates"] == truth["duplicates"]
    assert rows(made, "events").num_rows == truth["events_once"] + usable + HAND_MADE_USABLE
    assert all(len(each or "") <= 200 for each in rows(made, "quarantine")["id"].to_pylist())


def test_a_time_that_no_clock_shows_keeps_nobody_from_looking_at_what_was_set_aside(
    hurt: tuple[Path, dict[str, Any]], made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(made, "quarantine", limit=10_000, json=True)
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    page = report(made, out=None, now=MOMENT)
    found = {each.what for each in verify(str(hurt[0])).findings}

    never = "its time (received) is out of range"
    assert [each["received"] for each in shown if each["reason"] == never] == [None] * 2
    assert never in page
    assert "it has an event received at a time that is out of range" in found


def test_files_of_other_versions_and_clocks_years_off_are_read(made: Path) -> None:
    steps = {row["run"]: row for row in rows(made, "activities").to_pylist()}
    late = {row["run"]: row["late_s"] for row in rows(made, "events").to_pylist()}

    names = ("old", "new", "past", "ahead", "early-broker", "late-broker")
    assert {steps[name]["state"] for name in names} == {"succeeded"}
    assert (steps["old"]["exit_code"], steps["new"]["exit_code"]) == (None, 0)
    assert late["past"] == 0  # its clock is off by 50 years, and it was not sent 50 years ago
    assert require(made).manifest.counts["clock_off"] >= 1
    assert late["ahead"] == 0
    times = [row["received"] for row in rows(made, "events").to_pylist()]
    as_of = max(each for each in times if each < datetime.now(UTC))
    assert require(made).manifest.as_of == as_of  # one clock that is ahead makes nobody late
    assert not {"no-time", "no-year"} & set(steps)


def test_megabytes_of_text_do_not_become_names(made: Path) -> None:
    wordy = [row for row in rows(made, "activities").to_pylist() if row["run"] == "wordy"]

    assert len(wordy) == 2
    assert max(len(row["id"]) for row in wordy) == NAME_CHARS_MAX
    assert max(len(row["error"] or "") for row in wordy) < len(LONG)


@pytest.mark.slow
def test_a_stream_sets_the_same_records_aside(
    ready: SparkSession, hurt: tuple[Path, dict[str, Any]], made: Path, tmp_path: Path
) -> None:
    reported: list[Progress] = []

    StreamJob(ready, Job(str(hurt[0]), tmp_path), Pace(once=True), reported.append).run()

    assert aside(tmp_path) == aside(made)
    assert all(each.age_s is None or each.age_s >= 0 for each in reported)
    assert_same(rows(made, "activities"), rows(tmp_path, "activities"), "activities")


def killed_stream(
    archive: Path, tables: Path, more: Sequence[Path], chance: Random, *, alone: bool
) -> int:
    """A stream that is killed while it works on more files; what stands can be read all the time.

    Returns how often a version was read.
    """
    options = ("--archive", str(archive), "--tables", str(tables), "--rows", "1200")
    pace = ("--trigger", "0.2", "--refresh", "0.5")
    readings = 0
    with pipeline("stream", *options, *pace, errors=tables.with_suffix(".err")) as command:
        deadline_s = time.monotonic() + END_S
        if published(tables):  # else it has enough to do
            for path in more:
                path.rename(archive / path.parent.name / path.name)
        while not published(tables) or (more and not is_at_work(command, tables)):
            assert command.process.poll() is None, command.errors()
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        for path in filter(Path.exists, more):
            path.rename(archive / path.parent.name / path.name)
        until_s = time.monotonic() + chance.uniform(0.2, KILLED_WITHIN_S)
        while time.monotonic() < until_s:
            readings += version_read_whole(tables) > 0
            time.sleep(0.1)
        command.kill(alone=alone)
    assert version_read_whole(tables) > 0
    return readings


def is_at_work(command: Command, tables: Path) -> bool:
    return bool(command.lines or list(tables.glob("_state/partials/.tmp-*")))


def held_back(archive: Path, directory: Path, shares: int) -> list[list[Path]]:
    """All files but the first two, moved away, in so many shares."""
    files = sorted(archive.glob("date=*/*.parquet"), key=lambda path: path.name)[2:]
    moved = []
    for path in files:
        target = directory / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        moved.append(path.rename(target))
    bounds = [len(moved) * number // shares for number in range(shares + 1)]
    return [moved[low:high] for low, high in pairwise(bounds)]


def after_kills(spark: SparkSession, directory: Path, kills: int, seed: int) -> int:
    """Tables by a plain run, and by a stream that is killed so often.

    Returns how often a version was read meanwhile.
    """
    archive, tables = directory / "archive", directory / "tables"
    synthesize(Plan(events=3_000, seed=seed, files_of=500), archive, lambda done: None)
    run(spark, Job(str(archive), directory / "plain"))
    chance, readings = Random(seed), 0

    for number, more in enumerate(held_back(archive, directory / "later", kills)):
        readings += killed_stream(archive, tables, more, chance, alone=number % 2 == 1)
    options = ("--archive", str(archive), "--tables", str(tables), "--once")
    with pipeline("stream", *options, errors=directory / "last.err") as command:
        complaints = command.errors()
        assert command.process.returncode == 0, complaints

    return readings


def assert_same_tables(directory: Path) -> None:
    plain, tables = directory / "plain", directory / "tables"
    for name in TABLES:
        if name != "quarantine":  # which names the file, if Spark read it itself
            assert_same(rows(plain, name), rows(tables, name), name)
    assert aside(tables) == aside(plain)
    assert not list(tables.glob("_state/partials/.tmp-*"))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_stream_killed_twice_loses_and_doubles_nothing(
    ready: SparkSession, tmp_path: Path
) -> None:
    readings = after_kills(ready, tmp_path, kills=2, seed=12)

    assert readings > 0
    assert_same_tables(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_a_stream_killed_many_times_loses_and_doubles_nothing(
    ready: SparkSession, tmp_path: Path
) -> None:
    readings = after_kills(ready, tmp_path, kills=8, seed=13)

    assert readings > 0
    assert_same_tables(tmp_path)
