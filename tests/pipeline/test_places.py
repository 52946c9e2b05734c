"""Archives on other file systems: read as a directory is, and set aside what a directory would."""

from __future__ import annotations

import shutil
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.archives import add_fresh, add_sealed
from pipeline.damage import spoil
from pipeline.sameness import assert_same, rows
from tocsin.errors.archive import NoArchive
from tocsin.errors.pipeline import BadPipelineOption
from tocsin.pipeline.job import Job, run
from tocsin.pipeline.locations import KafkaLocation, has_files, is_directory, shown
from tocsin.pipeline.read.archive import Limit, new_records
from tocsin.pipeline.state import State, Window
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.schemas import TABLES


def mounted(spark: SparkSession, directory: Path) -> str:
    """The address of a directory on a file system that is none of this machine, as Hadoop sees it.

    Each has a name of its own: Hadoop remembers the table of mounts of one that it has seen.
    """
    name = f"tocsin{uuid.uuid4().hex}"
    spark._jsc.hadoopConfiguration().set(
        f"fs.viewfs.mounttable.{name}.link./kept", directory.resolve().as_uri()
    )
    return f"viewfs://{name}/kept"


def files(archive: Path) -> list[Path]:
    return sorted(archive.glob("date=*/*.parquet"), key=lambda path: path.name)


def copied(archive: Path, directory: Path, count: int) -> Path:
    """The first files of an archive, and all that is beside them."""
    for path in files(archive)[:count]:
        target = directory / path.relative_to(archive)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for path in archive.glob("_*/"):
        shutil.copytree(path, directory / path.name, dirs_exist_ok=True)
    return directory


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("places") / "archive"
    synthesize(Plan(events=1_500, seed=11, files_of=300), directory, lambda done: None)
    return directory


@pytest.mark.slow
def test_an_archive_elsewhere_makes_the_tables_that_a_directory_makes_bit_by_bit_too(
    ready: SparkSession, archive: Path, tmp_path: Path
) -> None:
    growing, many = tmp_path / "growing", len(files(archive))
    url = mounted(ready, growing)
    run(ready, Job(str(archive), tmp_path / "here"))

    for count in (many - 1, many):
        copied(archive, growing, count)
        assert run(ready, Job(url, tmp_path / "there")).is_new
    again = run(ready, Job(url, tmp_path / "there"))

    assert not again.is_new
    assert len(State(tmp_path / "there").partials()) == 2
    assert rows(tmp_path / "there", "deliveries").num_rows
    for name in TABLES:
        if name != "quarantine":  # which names the file, and that is elsewhere
            assert_same(rows(tmp_path / "here", name), rows(tmp_path / "there", name), name)


@pytest.mark.usefixtures("only_events")
def test_files_elsewhere_that_cannot_be_read_are_set_aside_and_named(
    ready: SparkSession, archive: Path, tmp_path: Path
) -> None:
    hurt = copied(archive, tmp_path / "hurt", 4)
    good, cut, foreign, flipped = files(hurt)
    spoil(good, cut, foreign, flipped)
    (good.parent / ".unfinished.parquet").write_bytes(b"")

    done = run(ready, Job(mounted(ready, hurt), tmp_path / "tables"))

    names = {each.path.rpartition("/")[2] for each in done.bad_files}
    assert names == {cut.name, foreign.name, flipped.name, "notes.parquet"}
    assert all(each.path.startswith("viewfs://") and each.reason for each in done.bad_files)
    aside = rows(tmp_path / "tables", "quarantine").to_pylist()
    assert names <= {row["file"].rpartition("/")[2] for row in aside}
    assert rows(tmp_path / "tables", "events").num_rows > 0


def test_only_files_that_may_have_something_new_are_read_and_fresh_ones_are(
    ready: SparkSession, tmp_path: Path
) -> None:
    add_sealed(tmp_path, 1, 40)
    second = add_sealed(tmp_path, 41, 60)
    fresh = add_fresh(tmp_path, 61, 70)
    url = mounted(ready, tmp_path)

    found = new_records(ready, url, 50, Window())

    assert found is not None
    assert [each.rpartition("/")[2] for each in found.files] == [second.name, fresh.name]
    assert (found.first, found.last) == (51, 70)
    assert found.bytes == second.stat().st_size + fresh.stat().st_size
    assert found.records.count() == 20
    assert new_records(ready, url, 70, Window()) is None


def test_a_stream_takes_some_files_at_a_time_and_one_in_any_case(
    ready: SparkSession, tmp_path: Path
) -> None:
    add_sealed(tmp_path, 1, 40)
    add_sealed(tmp_path, 41, 60)
    add_fresh(tmp_path, 61, 70)
    url = mounted(ready, tmp_path)

    def ends(after: int, rows_max: int) -> int | None:
        found = new_records(ready, url, after, Window(), limit=Limit(rows_max))
        return None if found is None else found.last

    assert [ends(0, 5), ends(0, 60), ends(40, 30), ends(70, 30)] == [40, 60, 70, None]


def test_dates_outside_of_the_window_are_not_even_listed(
    ready: SparkSession, archive: Path, tmp_path: Path
) -> None:
    copied(archive, tmp_path, len(files(archive)))
    day = sorted(path.name for path in tmp_path.glob("date=*"))[-1].removeprefix("date=")
    since = datetime.fromisoformat(day).replace(tzinfo=UTC)

    found = new_records(
        ready, mounted(ready, tmp_path), 0, Window(since, since + timedelta(hours=20))
    )

    assert found is not None
    assert {each.rpartition("/")[0].rpartition("=")[2] for each in found.files} == {day}


def test_what_is_missing_is_said_with_what_to_do(ready: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoArchive, match=r"spark\.jars\.packages=org.apache.hadoop:hadoop-aws:3"):
        new_records(ready, "s3://bucket/archive", 0, Window())
    with pytest.raises(NoArchive, match="there is no directory viewfs://"):
        new_records(ready, mounted(ready, tmp_path / "none"), 0, Window())


def test_an_address_says_what_kind_of_place_it_is() -> None:
    assert is_directory("/data/archive")
    assert is_directory("file:///data/archive")
    assert has_files("s3a://bucket/archive")
    assert not has_files("http://127.0.0.1:8400")
    assert not has_files("kafka://one/topic")


def test_a_password_in_an_address_is_not_shown() -> None:
    assert shown("s3://key:secret@bucket/a?b=c@d") == "s3://bucket/a?b=c@d"
    assert shown("abfs://container@account/path") == "abfs://container@account/path"
    assert shown("/data/a@b") == "/data/a@b"


def test_an_address_of_kafka_is_hosts_and_a_topic() -> None:
    assert KafkaLocation.parse("kafka://one,two:19092/runs.v1") == KafkaLocation(
        "one:9092,two:19092", "runs.v1"
    )
    assert KafkaLocation.parse("kafka://[::1]/t").servers == "[::1]:9092"
    assert KafkaLocation.parse("kafka://[::1]:1/t").servers == "[::1]:1"
    for wrong in ("kafka:///t", "kafka://one", "kafka://one/", "kafka://one/a b", "kafka://a,/t"):
        with pytest.raises(BadPipelineOption, match="kafka://host:9092/topic"):
            KafkaLocation.parse(wrong)
