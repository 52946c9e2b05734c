"""The job: incremental, idempotent, whole or not at all, and not stopped by what is broken."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.damage import add_file, spoil
from pipeline.folded import taken
from pipeline.sameness import ORDER, assert_same, rows
from tocsin.errors.pipeline import BadPipelineOption, PipelineBusy, QualityFailed
from tocsin.pipeline import build, quality
from tocsin.pipeline.job import Job, already_made, run
from tocsin.pipeline.partials.merged_state import PARTS_MAX, due
from tocsin.pipeline.source import register
from tocsin.pipeline.state import Partial, PartialFacts, State
from tocsin.pipeline.stream import Pace, Progress, StreamJob
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.published import published, require
from tocsin.tables.schemas import TABLES

EVENTS = 3_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some thousand events in several files."""
    directory = tmp_path_factory.mktemp("job") / "archive"
    synthesize(Plan(events=EVENTS, seed=3, files_of=500), directory, lambda done: None)
    return directory


@pytest.fixture(scope="module")
def at_once(ready: SparkSession, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the whole archive, made in one go."""
    tables = tmp_path_factory.mktemp("at-once")
    run(ready, Job(str(archive), tables))
    return tables


def files(archive: Path) -> list[Path]:
    return sorted(archive.glob("date=*/*.parquet"), key=lambda path: path.name)


def part_of(archive: Path, directory: Path, count: int) -> Path:
    """An archive with the first files of another only."""
    for path in files(archive)[:count]:
        target = directory / path.relative_to(archive)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for name in ("_deliveries", "_deadletters", "_discoveries"):
        if (archive / name).exists() and not (directory / name).exists():
            shutil.copytree(archive / name, directory / name)
    return directory


@contextmanager
def one_sample_more(archive: Path) -> Iterator[None]:
    """Meanwhile the archive has something that the tables do not have."""
    sample = archive / "_deliveries" / "date=2026-01-01" / "1.parquet"
    shutil.copy(next((archive / "_deliveries").rglob("*.parquet")), sample)
    try:
        yield
    finally:
        sample.unlink()


def test_running_it_again_changes_nothing(
    ready: SparkSession, archive: Path, at_once: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in at_once.rglob("*") if path.is_file()}

    done = run(ready, Job(str(archive), at_once))

    assert not done.is_new
    assert before == {
        path: path.stat().st_mtime_ns for path in at_once.rglob("*") if path.is_file()
    }


def test_that_there_is_nothing_new_is_known_without_spark(
    archive: Path, at_once: Path, tmp_path: Path
) -> None:
    done = already_made(Job(str(archive), at_once))

    assert done is not None
    assert not done.is_new
    assert done.manifest == require(at_once).manifest
    assert already_made(Job(str(archive), at_once, rebuild=True)) is None
    assert already_made(Job(str(archive), tmp_path / "none")) is None
    with pytest.raises(BadPipelineOption, match="are made of"):
        already_made(Job(str(archive), at_once, since=datetime(2026, 1, 2, tzinfo=UTC)))


def test_what_came_since_is_known_without_spark(archive: Path, at_once: Path) -> None:
    with one_sample_more(archive):
        assert already_made(Job(str(archive), at_once)) is None
    assert already_made(Job(str(archive), at_once)) is not None

    last = files(archive)[-1]
    kept = last.rename(archive / "_away")
    try:
        with pytest.raises(BadPipelineOption):  # it ends before the tables do
            already_made(Job(str(archive), at_once))
    finally:
        kept.rename(last)


def test_wrong_clocks_are_not_lateness(at_once: Path, archive: Path) -> None:
    truth = json.loads((archive / "_truth.json").read_text())
    counts = require(at_once).manifest.counts
    late = pc.sum(pc.greater(rows(at_once, "events")["late_s"], 600.0)).as_py() or 0

    assert late == counts["late"] <= truth["late"]
    assert counts["clock_off"] > 10 * truth["late"]  # hosts of another zone, or years behind


def test_the_archive_to_try_things_with_is_read_whole(ready: SparkSession, archive: Path) -> None:
    assert register(ready).read.format("tocsin").load(str(archive)).count() == EVENTS


def test_what_came_in_parts_makes_the_same_tables_as_all_at_once(
    ready: SparkSession, archive: Path, at_once: Path, tmp_path: Path
) -> None:
    growing, tables = tmp_path / "growing", tmp_path / "tables"
    many = len(files(archive))

    taken(ready, Job(str(part_of(archive, growing, many - 1)), tables))
    run(ready, Job(str(part_of(archive, growing, many)), tables))

    assert len(State(tables).partials()) == 2  # the later one is small, and stands beside
    for name in TABLES:
        if name != "quarantine":  # which names the file, and that is elsewhere
            assert_same(rows(at_once, name), rows(tables, name), name)


def test_the_stream_makes_the_same_tables(
    ready: SparkSession, archive: Path, at_once: Path, tmp_path: Path
) -> None:
    pace = Pace(once=True, rows_max=1_600)
    reported: list[Progress] = []

    StreamJob(ready, Job(str(archive), tmp_path), pace, reported.append).run()
    StreamJob(ready, Job(str(archive), tmp_path), pace, reported.append).run()

    kinds = [each.kind for each in reported]
    assert (kinds.count("tables"), kinds[-1]) == (1, "tables")
    assert kinds.count("batch") > 1
    for name in TABLES:
        if name != "quarantine":
            assert_same(rows(at_once, name), rows(tmp_path, name), name)


@pytest.mark.usefixtures("only_events")
def test_files_that_cannot_be_read_are_set_aside_and_named(
    ready: SparkSession, archive: Path, tmp_path: Path
) -> None:
    hurt = part_of(archive, tmp_path / "hurt", 4)
    good, cut, foreign, flipped = files(hurt)
    spoil(good, cut, foreign, flipped)

    done = run(ready, Job(str(hurt), tmp_path / "tables"))

    assert {Path(each.path).name for each in done.bad_files} == {
        cut.name,
        foreign.name,
        flipped.name,
        "notes.parquet",
    }
    aside = rows(tmp_path / "tables", "quarantine").to_pylist()
    assert {
        Path(row["file"]).name for row in aside if row["seq"] is None and row["id"] is None
    } >= {
        cut.name,
        foreign.name,
        flipped.name,
    }
    assert all(row["reason"] for row in aside)
    assert rows(tmp_path / "tables", "events").num_rows > 0


@pytest.mark.slow
def test_a_stream_names_the_files_it_passes_over_once(
    ready: SparkSession, archive: Path, tmp_path: Path
) -> None:
    hurt, tables = part_of(archive, tmp_path / "hurt", 4), tmp_path / "tables"
    _, cut, _, last = files(hurt)
    for path in (cut, last):
        path.write_bytes(path.read_bytes()[:-500])
    pace = Pace(once=True, rows_max=600)

    for _ in range(2):
        StreamJob(ready, Job(str(hurt), tables), pace, lambda reported: None).run()

    aside = rows(tables, "quarantine").to_pylist()
    named = [row["file"] for row in aside if row["reason"].startswith("it cannot be read")]
    assert sorted(named) == [str(cut), str(last)]


def _parts(*events: int) -> list[Partial]:
    return [
        Partial(Path(str(place)), PartialFacts(place, place, counts={"events": count}))
        for place, count in enumerate(events)
    ]


@pytest.mark.parametrize(
    ("events", "places"),
    [
        ((), []),
        ((5,), []),
        ((10, 4, 4), []),
        ((10, 6, 5), [0, 1, 2]),
        ((1_000, *(1 for _ in range(PARTS_MAX - 1))), []),
        ((1_000, *(1 for _ in range(PARTS_MAX))), [*range(1, PARTS_MAX + 1)]),
        ((1_000, 50, *(1 for _ in range(PARTS_MAX - 1))), [*range(2, PARTS_MAX + 1)]),
        (tuple(2**n for n in range(PARTS_MAX, -1, -1)), [PARTS_MAX - 1, PARTS_MAX]),
    ],
)
def test_parts_become_one_when_the_later_outgrow_an_earlier_and_small_ones_among_themselves(
    events: tuple[int, ...], places: list[int]
) -> None:
    assert [each.facts.first for each in due(_parts(*events))] == places


@pytest.mark.usefixtures("only_events")
def test_events_that_come_again_in_a_later_part_are_known_by_all_earlier_parts(
    ready: SparkSession, archive: Path, tmp_path: Path
) -> None:
    copied = part_of(archive, tmp_path / "copied", 2)
    first, second = files(copied)
    tables = tmp_path / "tables"
    run(ready, Job(str(copied), tables))
    before = rows(tables, "events").num_rows
    again = pq.ParquetFile(first).read()
    last = int(second.stem[-20:])
    moved = pc.add(again["seq"], last)
    add_file(copied, again.set_column(again.schema.get_field_index("seq"), "seq", moved), last + 1)

    run(ready, Job(str(copied), tables))

    assert len(State(tables).partials()) == 2
    assert rows(tables, "events").num_rows == before


def test_a_failed_check_publishes_nothing_and_says_which_rows(
    ready: SparkSession,
    archive: Path,
    at_once: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = tmp_path / "tables"
    shutil.copytree(at_once, tables, symlinks=True)
    before = require(tables).version
    odd = quality.Check("runs", "every run is called r", "run <> 'r'", ("run",))
    monkeypatch.setattr(quality, "CHECKS", (odd,))

    with (
        pytest.raises(QualityFailed, match=r"table runs: .* every run is called r: .*run='"),
        one_sample_more(archive),
    ):
        run(ready, Job(str(archive), tables))

    assert require(tables).version == before
    assert not list((tables / ".versions").glob(".tmp-*"))


def test_other_engines_read_a_whole_version_and_nothing_else(at_once: Path) -> None:
    for name in TABLES:
        (count,) = duckdb.sql(f"SELECT count(*) FROM '{at_once}/{name}/*.parquet'").fetchall()[0]
        assert count == rows(at_once, name).num_rows
        assert (at_once / name / "_SUCCESS").exists()
        assert (at_once / name / "_manifest.json").exists()


@pytest.mark.slow
def test_what_is_broken_off_leaves_the_tables_as_they_were(
    ready: SparkSession, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing, tables = part_of(archive, tmp_path / "growing", 2), tmp_path / "tables"
    run(ready, Job(str(growing), tables))
    before = rows(tables, "activities")
    part_of(archive, growing, 4)
    monkeypatch.setattr(build, "findings", lambda tables: _give_up())

    with pytest.raises(KeyboardInterrupt):
        run(ready, Job(str(growing), tables))

    assert_same(before, rows(tables, "activities"), "activities")
    monkeypatch.undo()
    assert run(ready, Job(str(growing), tables)).is_new


def _give_up() -> list[quality.Finding]:
    raise KeyboardInterrupt


def test_another_window_needs_other_tables(
    ready: SparkSession, archive: Path, at_once: Path
) -> None:
    with pytest.raises(BadPipelineOption, match="made of"):
        run(ready, Job(str(archive), at_once, since=datetime(2026, 1, 2, tzinfo=UTC)))


def test_two_pipelines_do_not_write_the_same_tables(
    ready: SparkSession, archive: Path, at_once: Path
) -> None:
    with State(at_once).held(), pytest.raises(PipelineBusy):
        run(ready, Job(str(archive), at_once))


def test_an_empty_place_has_no_tables(tmp_path: Path) -> None:
    assert published(tmp_path) is None
    assert ORDER.keys() == TABLES.keys()
