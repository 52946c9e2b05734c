"""An archive that lives: files are merged, events go on coming, another log takes its place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.archives import BEGAN_NS, NS_PER_S, add_fresh, add_sealed, seal
from pipeline.damage import as_table, ended, message
from pipeline.sameness import rows
from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.last_event import LastEvent
from tocsin.errors.archive import ArchiveFileNotRead
from tocsin.errors.pipeline import BadPipelineOption, PipelineFailed
from tocsin.pipeline import job as jobs
from tocsin.pipeline.job import Job, run
from tocsin.pipeline.new_records import NewRecords
from tocsin.pipeline.read import archive as reading
from tocsin.pipeline.read.archive import Limit, new_records
from tocsin.pipeline.read.bad_files import BadFileSearch
from tocsin.pipeline.read.same_archive import must_have
from tocsin.pipeline.state import State, Window
from tocsin.pipeline.stream import Pace, Progress, StreamJob
from tocsin.tables.published import require


def _rewritten(path: Path, table: pa.Table) -> None:
    """The file with other content, and what it says of itself."""
    metadata = pq.read_schema(path).metadata
    pq.write_table(table.replace_schema_metadata(metadata), path)


def _with_column(path: Path, name: str, values: list[object], kind: pa.DataType) -> None:
    """The file with other values in a column."""
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index(name)
    _rewritten(path, table.set_column(place, pa.field(name, kind), pa.array(values, kind)))


@pytest.mark.usefixtures("only_events")
def test_files_that_are_merged_while_they_are_folded_are_listed_again(
    ready: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive"
    add_fresh(archive, 1, 20)
    add_fresh(archive, 21, 40)
    real = jobs._fold
    folds: list[object] = []

    def merged_first(*given: Any) -> None:
        if not folds:
            seal(archive)
        folds.append(given)
        real(*given)

    monkeypatch.setattr(jobs, "_fold", merged_first)
    done = run(ready, Job(str(archive), tmp_path / "tables"))

    assert len(folds) == 2
    assert done.bad_files == ()
    assert sorted(rows(tmp_path / "tables", "events").column("seq").to_pylist()) == [*range(1, 41)]


def test_what_will_not_be_merged_any_more_is_folded_first_if_it_is_much(
    ready: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sealed(tmp_path, 1, 20)
    add_fresh(tmp_path, 21, 40)

    def taken(after: int, limit: Limit) -> tuple[int, int, bool]:
        found = new_records(ready, str(tmp_path), after, Window(), limit=limit)
        assert found is not None
        return found.first, found.last, found.is_all

    lasting = Limit(is_lasting=True)
    assert taken(0, lasting) == (1, 40, True)
    monkeypatch.setattr(reading, "LASTING_BYTES_MIN", 1)
    assert taken(0, lasting) == (1, 20, False)
    assert taken(20, lasting) == (21, 40, True)
    assert taken(0, Limit()) == (1, 40, True)


def _over(path: Path, cause: str) -> PySparkException:
    """What Spark says when it gives up over a file."""
    return PySparkException(
        f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {path}.\n"
        "\tat org.apache.parquet.hadoop.ParquetFileReader.open(ParquetFileReader.java:1)\n"
        f"{cause.format(path=path)}"
    )


@pytest.mark.parametrize(
    ("cause", "is_its_own"),
    [
        ("Caused by: java.io.FileNotFoundException: File {path} does not exist", False),
        ("Caused by: org.apache.hadoop.security.AccessControlException: denied: {path}", False),
        ("Caused by: java.lang.OutOfMemoryError: Java heap space", False),
        ("Caused by: java.lang.IllegalArgumentException: Wrong FS: hdfs://{path}", False),
        ("", False),
        ("Caused by: org.apache.parquet.io.ParquetDecodingException: can not read", True),
        ("Caused by: java.lang.UnsupportedOperationException", True),
    ],
)
def test_only_what_is_in_a_file_sets_it_aside_if_we_can_read_it(
    tmp_path: Path, cause: str, is_its_own: bool
) -> None:
    path = add_sealed(tmp_path, 1, 40)
    pieces = tuple(Catalog(tmp_path).pieces())
    search = BadFileSearch(cast(SparkSession, None), str(tmp_path), Window())
    found = NewRecords(cast(DataFrame, None), 1, 40, pieces)

    for expected in ([], [str(path)]):
        if not is_its_own:
            with pytest.raises(PySparkException):
                search.exclude_bad_file(found, _over(path, cause))
            continue
        search.exclude_bad_file(found, _over(path, cause))
        assert [each.path for each in search.without] == expected
    assert bool(search.without) == is_its_own


@pytest.mark.usefixtures("only_events")
@pytest.mark.parametrize("is_only_spark", [True, False])
def test_in_an_outage_no_file_is_set_aside(
    ready: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_only_spark: bool
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    path = add_sealed(archive, 1, 40)

    def away(*_given: object) -> None:
        raise _over(path, "Caused by: java.io.FileNotFoundException: File {path} does not exist")

    def away_as_well(piece: Piece, source: object = None) -> None:
        raise ArchiveFileNotRead(piece.path, "Input/output error")

    with monkeypatch.context() as outage:
        outage.setattr(jobs, "_fold", away)
        if not is_only_spark:
            outage.setattr(reading, "read_through", away_as_well)
        with pytest.raises(PipelineFailed, match="FAILED_READ_FILE"):
            run(ready, Job(str(archive), tables))
    done = run(ready, Job(str(archive), tables))

    assert done.bad_files == ()
    assert require(tables).tables["events"].rows == 40


@pytest.mark.slow
def test_a_file_whose_content_only_spark_cannot_read_is_set_aside(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 20)
    path = add_sealed(archive, 21, 40)
    _with_column(path, "run", [["a list"]] * 20, pa.list_(pa.string()))

    done = run(ready, Job(str(archive), tables))

    assert [each.path for each in done.bad_files] == [str(path)]
    assert done.manifest.counts["unread"] == 20
    assert require(tables).tables["events"].rows == 20


@pytest.mark.usefixtures("only_event_tables")
def test_once_ends_with_what_was_there_however_much_comes_meanwhile(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    add_sealed(archive, 1, 20)
    reported: list[Progress] = []

    def more_comes(progress: Progress) -> None:
        reported.append(progress)
        assert len(reported) < 8, "it does not end"
        if progress.kind == "batch":
            add_sealed(archive, progress.through + 1, progress.through + 20)

    for _ in range(2):  # the second has a checkpoint
        StreamJob(ready, Job(str(archive), tables), Pace(once=True), more_comes).run()

    assert reported[-1].kind == "tables"
    assert require(tables).manifest.through == reported[-2].through


def test_an_archive_is_known_by_its_events_as_far_as_it_has_them(tmp_path: Path) -> None:
    add_sealed(tmp_path, 11, 20)
    pieces, here = Catalog(tmp_path).pieces(), str(tmp_path)

    must_have(here, pieces, None)
    must_have(here, pieces, LastEvent(15, "/engine", "e15"))
    must_have(here, pieces, LastEvent(9, "/engine", "let go"))
    with pytest.raises(BadPipelineOption, match=r"event 15 .*'e15'.*'other'.*started over"):
        must_have(here, pieces, LastEvent(15, "/engine", "other"))


def test_of_two_events_under_one_number_the_tables_may_have_either(tmp_path: Path) -> None:
    path = add_sealed(tmp_path, 1, 3)
    _with_column(path, "seq", [1, 3, 3], pa.int64())
    pieces = Catalog(tmp_path).pieces()

    for id in ("e2", "e3"):
        must_have(str(tmp_path), pieces, LastEvent(3, "/engine", id))
    with pytest.raises(BadPipelineOption, match="started over"):
        must_have(str(tmp_path), pieces, LastEvent(3, "/engine", "e1"))


@pytest.mark.slow
def test_another_archive_in_its_place_is_refused_when_it_has_as_many(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    path = add_sealed(archive, 1, 20)
    run(ready, Job(str(archive), tables))
    add_sealed(archive, 21, 30)
    was = path.read_bytes()
    others = [message(n, ended("run-1", "2026-09-21T14:00:00Z")) for n in range(1, 21)]
    _rewritten(path, as_table(others, 1, [BEGAN_NS + n * NS_PER_S for n in range(1, 21)]))

    with pytest.raises(BadPipelineOption, match=r"event 20 .*'made-20'.*'e20'.*started over"):
        run(ready, Job(str(archive), tables))
    assert State(tables).through() == 20
    path.write_bytes(was)

    assert run(ready, Job(str(archive), tables)).manifest.through == 30


@pytest.mark.slow
def test_a_record_without_its_time_is_set_aside_also_where_a_time_is_asked_for(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    path = add_sealed(archive, 1, 20)
    times = pq.read_table(path, columns=["received"], partitioning=None).column(0)
    _with_column(path, "received", [None, *times.to_pylist()[1:]], times.type)

    since, until = datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    run(ready, Job(str(archive), tables, since=since, until=until))

    assert require(tables).tables["events"].rows == 19
    (aside,) = rows(tables, "quarantine").to_pylist()
    assert "received" in aside["reason"]
