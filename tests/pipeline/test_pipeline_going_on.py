"""Going on: after a kill, with a window that moves, wherever Hadoop is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from pipeline.archives import BEGAN_NS, NS_PER_S, add_fresh, add_sealed
from pipeline.damage import flip
from pipeline.folded import taken
from pipeline.sameness import rows
from small_disk import small_disk
from tocsin.archive.file_names import DELIVERIES
from tocsin.archive.sample_writer import SampleWriter
from tocsin.errors.pipeline import BadPipelineOption, PipelineFailed
from tocsin.pipeline import job as jobs
from tocsin.pipeline import stream
from tocsin.pipeline.job import Job, run
from tocsin.pipeline.state import CHECKPOINT, State
from tocsin.pipeline.stream import Pace, StreamJob
from tocsin.tables.published import MANIFEST, published, require


def _sample(archive: Path, subscription: str, after_s: int = 0) -> None:
    """One file of how a subscription fared."""
    sampler = SampleWriter(str(archive))
    at_us = (BEGAN_NS + after_s * NS_PER_S) // 1_000
    sampler.add(DELIVERIES, [{"at": at_us, "subscription": subscription}], 0.0)
    sampler.write_all()


def _streamed(spark: SparkSession, job: Job) -> None:
    StreamJob(spark, job, Pace(once=True), lambda progress: None).run()


@pytest.mark.usefixtures("only_events")
def test_what_was_taken_in_before_a_kill_is_in_the_tables_once_the_stream_is_back(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 40)
    job = Job(str(archive), tables)
    taken(ready, job)
    assert published(tables) is None

    _streamed(ready, job)

    assert require(tables).manifest.through == 40
    version = require(tables).version
    _streamed(ready, job)
    assert require(tables).version == version


@pytest.mark.slow
def test_a_window_that_is_over_changes_nothing_when_it_is_asked_for_again(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 40)
    until = datetime.fromtimestamp(BEGAN_NS / NS_PER_S + 41, UTC)
    job = Job(str(archive), tables, until=until)
    made = run(ready, job)
    add_fresh(archive, 41, 50)
    _sample(archive, "later", after_s=86_400)

    again = run(ready, job)

    assert made.is_new
    assert not again.is_new
    assert require(tables).tables["events"].rows == 40
    assert (made.manifest.since, made.manifest.until) == (None, until)


@pytest.mark.slow
def test_a_stream_makes_new_tables_for_samples_alone(
    ready: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "SAMPLES_S", 0.0)
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 40)
    job = Job(str(archive), tables)
    run(ready, job)
    streaming = StreamJob(ready, job, Pace(refresh_s=0.0), lambda progress: None)

    versions = []
    for _ in range(2):
        streaming._refresh_if_due()
        versions.append(require(tables).version)
        _sample(archive, "quiet")

    assert versions == [1, 2]
    assert rows(tables, "deliveries").column("subscription").to_pylist() == ["quiet"]


@pytest.mark.slow
def test_a_disk_that_is_full_under_the_checkpoint_alone_leaves_the_tables_as_they_were(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 40)
    job, state = Job(str(archive), tables), State(tables)
    with small_disk(1) as disk:
        state.directory.mkdir(parents=True)
        (state.directory / CHECKPOINT).symlink_to(disk)
        _streamed(ready, job)
        add_fresh(archive, 41, 50)
        with (disk / "other").open("wb", buffering=0) as other, suppress(OSError):
            while True:
                other.write(b"x" * 4_096)

        with pytest.raises(PipelineFailed, match="No space left") as failed:
            _streamed(ready, job)
        before = require(tables).manifest.through
        (disk / "other").unlink()
        _streamed(ready, job)

    assert "Make room" in failed.value.remedy
    assert before == 40
    assert require(tables).manifest.through == 50
    assert rows(tables, "events").column("seq").to_pylist() == list(range(1, 51))


@pytest.mark.usefixtures("only_events")
def test_tables_that_do_not_say_of_which_window_they_are_are_made_again(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 40)
    job = Job(str(archive), tables, since=datetime(2020, 1, 1, tzinfo=UTC))
    made = run(ready, job)
    before = msgspec.structs.replace(made.manifest, since=None)
    (require(tables).directory / MANIFEST).write_bytes(msgspec.json.encode(before))

    again, then = run(ready, job), run(ready, job)

    assert made.manifest.since == job.since
    assert (again.is_new, again.manifest.since) == (True, job.since)
    assert not then.is_new


@pytest.mark.slow
def test_a_window_that_has_moved_makes_its_own_tables_anew_and_no_others(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 40)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    week = Job(str(archive), tmp_path / "week", since=long_ago, moves=True)
    run(ready, Job(str(archive), tables))
    run(ready, week)

    with pytest.raises(BadPipelineOption, match="--rebuild"):
        run(ready, Job(str(archive), tables, since=long_ago, moves=True))
    later = Job(str(archive), tmp_path / "week", since=long_ago + timedelta(days=1), moves=True)
    moved = run(ready, later)

    assert [each.facts.last for each in State(tables).partials()] == [40]
    assert moved.is_new
    assert rows(tmp_path / "week", "events").num_rows == 40


@pytest.mark.usefixtures("only_events")
def test_any_number_of_damaged_files_costs_one_more_fold(
    ready: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive"
    paths = [add_sealed(archive, first, first + 9) for first in range(1, 60, 10)]
    for path in paths[1:5]:
        flip(path)
    folds: list[int] = []
    real = jobs._fold
    monkeypatch.setattr(jobs, "_fold", lambda *given: (folds.append(1), real(*given))[1])

    done = run(ready, Job(str(archive), tmp_path / "tables"))

    assert sorted(each.path for each in done.bad_files) == sorted(map(str, paths[1:5]))
    assert done.manifest.counts["unread"] == 40
    assert require(tmp_path / "tables").tables["events"].rows == 20
    assert len(folds) == 2


@pytest.fixture
def other_default(ready: SparkSession) -> Iterator[None]:
    """A Hadoop whose paths mean another file system, as near any YARN."""
    settings = ready._jsc.hadoopConfiguration()
    before = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    yield
    settings.set("fs.defaultFS", before)


@pytest.mark.usefixtures("other_default")
@pytest.mark.parametrize("made", [run, pytest.param(_streamed, marks=pytest.mark.slow)])
def test_directories_are_of_this_machine_whatever_hadoop_takes_a_path_for(
    ready: SparkSession, tmp_path: Path, made: Callable[[SparkSession, Job], object]
) -> None:
    archive = tmp_path / "archive of mine"
    add_sealed(archive, 1, 40)

    made(ready, Job(str(archive), tmp_path / "tables"))

    assert require(tmp_path / "tables").tables["events"].rows == 40
