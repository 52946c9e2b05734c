"""What happens in the life of a grid, and stops no table: clocks, holes, files that are cut off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipeline.damage import add_file, as_table, ended, message
from pipeline.sameness import assert_same, rows
from tocsin.archive.file_names import DELIVERIES, format_range
from tocsin.errors.archive import NoArchive
from tocsin.errors.pipeline import BadPipelineOption, NoTables
from tocsin.event.instant import NS_PER_S
from tocsin.pipeline.job import Done, Job, run
from tocsin.pipeline.partials.partial import NOT_ITS_NUMBER
from tocsin.pipeline.state import CHECKPOINT, STATE, State
from tocsin.pipeline.stream import Pace, Progress, StreamJob
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.published import MANIFEST, require

MOMENT = datetime(2026, 2, 1, 12, tzinfo=UTC)
MOMENT_NS = int(MOMENT.timestamp()) * NS_PER_S


def _at(seconds: float) -> str:
    return (MOMENT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _add(archive: Path, first: int, *messages: dict[str, str], moment_ns: int = MOMENT_NS) -> int:
    """A file of these messages, received then. Returns the number after its last."""
    archive.mkdir(exist_ok=True)
    events = [message(first + n, pairs) for n, pairs in enumerate(messages)]
    return add_file(archive, as_table(events, first, [moment_ns] * len(events)), first)


def _numbered(path: Path, *seqs: int) -> None:
    """The file again, with these numbers."""
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index("seq")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(seqs)), path)


def _step(number: int, **more: str) -> dict[str, str]:
    whose = {"RunId": "r", "WorkflowName": "w", "ActivityId": f"a{number}", "ActivityType": "a"}
    return {**whose, **more}


def _streamed(spark: SparkSession, archive: Path) -> None:
    job = Job(str(archive), archive.with_name("tables"))
    StreamJob(spark, job, Pace(once=True), lambda progress: None).run()


def _made(spark: SparkSession, archive: Path) -> Done:
    return run(spark, Job(str(archive), archive.with_name("tables")))


def test_attempts_without_an_end_and_clocks_that_disagree_stop_no_table(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    whose = _step(0)
    began = {"ActivityExecuting": _at(10)}
    late = _step(1, ActivityType="b")
    _add(
        archive,
        1,
        {**whose, "Attempt": "1", "ActivityExecuting": _at(0)},
        {**whose, "Attempt": "2", **began},
        {**whose, "Attempt": "2", "ActivitySucceeded": _at(20)},
        {**late, **began},
        {**late, "ActivitySucceeded": _at(8), "Duration": "3"},
    )
    _made(ready, archive)
    kinds = {
        each["activity"]: each for each in rows(tmp_path / "tables", "activity_stats").to_pylist()
    }
    assert kinds["a"]["count"] == 2
    assert kinds["b"]["mean_s"] == 3.0


@pytest.mark.usefixtures("only_events")
def test_numbers_that_no_file_has_are_counted_and_what_lies_broken_beside_is_named(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    _add(archive, 1, *(ended(f"run-{n}", _at(n)) for n in range(5)))
    _add(archive, 11, *(ended(f"run-{n}", _at(n)) for n in range(10, 12)))
    cut = archive / "_deliveries" / "date=2026-02-01" / "1.parquet"
    cut.parent.mkdir(parents=True)
    cut.write_bytes(b"PAR1 and no more")
    assert _made(ready, archive).manifest.counts["missing"] == 5
    assert str(cut) in {each["file"] for each in rows(tables, "quarantine").to_pylist()}
    _add(archive, 20, ended("run-20", _at(20)))  # retention was faster than the next run
    assert _made(ready, archive).manifest.counts["missing"] == 5 + 7
    assert require(tables).tables["events"].rows == 8


@pytest.mark.usefixtures("only_events")
def test_an_archive_that_was_started_over_is_not_taken_for_the_one_before(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    _add(archive, 1, *(ended(f"run-{n}", _at(n)) for n in range(5)))
    _made(ready, archive)
    for path in archive.glob("date=*/*.parquet"):
        path.unlink()
    _add(archive, 1, ended("another", _at(0)))
    with pytest.raises(BadPipelineOption, match="started over"):
        _made(ready, archive)


@pytest.mark.usefixtures("only_events")
@pytest.mark.parametrize("made", [_made, pytest.param(_streamed, marks=pytest.mark.slow)])
def test_a_number_beyond_its_file_is_believed_by_nobody(
    ready: SparkSession, tmp_path: Path, made: Callable[[SparkSession, Path], object]
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    _add(archive, 1, *(ended(f"run-{n}", _at(n)) for n in range(3)))
    (path,) = archive.glob("date=*/*.parquet")
    _numbered(path, 1, 2**62, 3)
    made(ready, archive)
    assert require(tables).manifest.through == 3
    _add(archive, 4, *(ended(f"run-{n}", _at(n)) for n in range(4, 7)))
    _numbered(path.with_name(format_range(4, 6)), 4, 2, 6)
    made(ready, archive)
    assert require(tables).tables["events"].rows == 4
    assert rows(tables, "quarantine")["reason"].to_pylist() == [NOT_ITS_NUMBER] * 2


@pytest.mark.usefixtures("only_runs")
def test_a_clock_that_was_ahead_once_hides_nothing_that_came_after(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    _add(archive, 1, ended("before", _at(0)))
    begun = datetime.now(UTC)
    ahead_ns = MOMENT_NS + 4_000 * 86_400 * NS_PER_S  # the times of a broker never go back
    _add(archive, 2, ended("after", _at(1)), _step(0, ActivityExecuting=_at(2)), moment_ns=ahead_ns)
    as_of = _made(ready, archive).manifest.as_of
    assert as_of is not None
    assert begun <= as_of <= datetime.now(UTC)
    assert {row["run"]: row["state"] for row in rows(tables, "runs").to_pylist()}["r"] == "running"
    assert rows(tables, "quarantine").num_rows == 0


@pytest.mark.slow
def test_a_foreign_file_is_named_once_whenever_it_comes(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    named = []
    for number in range(1, 4):
        _add(archive, number, ended(f"run-{number}", _at(number)))
        (archive / "date=2026-02-01" / f"notes-{min(number, 2)}.parquet").write_bytes(b"mine")
        named.append([Path(each.path).name for each in _made(ready, archive).bad_files])
    assert named == [["notes-1.parquet"], ["notes-2.parquet"], []]
    assert rows(tables, "quarantine").num_rows == 2


@pytest.mark.usefixtures("only_events")
def test_what_is_kept_is_not_forgotten_for_an_archive_that_is_not_there(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    _add(archive, 1, ended("run", _at(0)))
    _made(ready, archive)
    archive.rename(tmp_path / "elsewhere")
    with pytest.raises(NoArchive):
        run(ready, Job(str(archive), tables, rebuild=True))
    assert [each.facts.last for each in State(tables).partials()] == [1]


@pytest.mark.slow
def test_what_nobody_told_before_is_added_where_somebody_does(
    ready: SparkSession, tmp_path: Path
) -> None:
    """Of what no message tells, the job keeps nothing, not even a column."""
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    last = _add(archive, 1, *(_step(n, ActivityExecuting=_at(n), Host="h") for n in range(20)))
    assert _made(ready, archive).is_new
    last = _add(
        archive,
        last,
        _step(3, ActivityFailed=_at(30), ExitCode="3", ErrorMessage="no", Container="c"),
        {"RunId": "r", "EngineName": "e", "Cost": "2.5", "WorkflowCompleted": _at(99)},
    )
    assert _made(ready, archive).is_new
    assert len(State(tables).partials()) == 2
    _add(archive, last, *(_step(n, ActivitySucceeded=_at(40), MemoryPeak="7") for n in range(20)))
    assert _made(ready, archive).is_new
    assert len(State(tables).partials()) == 1  # that many are made one

    run(ready, Job(str(archive), tmp_path / "at once"))

    for name in ("activities", "runs", "failures"):
        assert_same(rows(tables, name), rows(tmp_path / "at once", name), name)
    third = next(each for each in rows(tables, "activities").to_pylist() if each["id"] == "a3")
    assert (third["host"], third["container"], third["exit_code"]) == ("h", "c", 3)


@pytest.mark.usefixtures("only_runs")
def test_a_clock_that_is_ahead_lets_no_other_run_be_lost(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, now = tmp_path / "archive", datetime.now(UTC)
    archive.mkdir()
    begun = [{"RunId": run, "WorkflowStarted": now.isoformat()} for run in ("here", "ahead")]
    received = [int((now + timedelta(hours=hours)).timestamp()) * NS_PER_S for hours in (0, 12)]
    events = [message(number, pairs) for number, pairs in enumerate(begun, 1)]
    add_file(archive, as_table(events, 1, received), 1)

    as_of = _made(ready, archive).manifest.as_of

    assert as_of is not None
    assert now <= as_of <= datetime.now(UTC)
    states = {each["run"]: each["state"] for each in rows(tmp_path / "tables", "runs").to_pylist()}
    assert states == {"here": "running", "ahead": "running"}


@pytest.mark.usefixtures("only_events")
def test_a_checkpoint_that_was_cut_short_costs_a_stream_nothing(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    after = _add(archive, 1, _step(0, ActivitySucceeded=_at(1)))
    _streamed(ready, archive)
    checkpoint = tmp_path / "tables" / STATE / CHECKPOINT
    for path in (checkpoint / "offsets").iterdir():
        path.write_bytes(b"")
    _add(archive, after, _step(1, ActivitySucceeded=_at(2)))

    _streamed(ready, archive)

    steps = rows(tmp_path / "tables", "events")["activity"].to_pylist()
    assert sorted(steps) == ["a0", "a1"]


@pytest.mark.slow
def test_tables_whose_manifest_is_lost_are_made_anew(ready: SparkSession, tmp_path: Path) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    _add(archive, 1, _step(0, ActivitySucceeded=_at(1)))
    _made(ready, archive)
    (require(tables).directory / MANIFEST).write_bytes(b"")
    with pytest.raises(NoTables, match="--rebuild"):
        _made(ready, archive)

    run(ready, Job(str(archive), tables, rebuild=True))

    assert require(tables).tables["activities"].rows == 1


@pytest.mark.usefixtures("only_events")
def test_a_page_that_was_damaged_on_disk_is_no_other_number(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    synthesize(Plan(events=1_000, seed=5, files_of=300), archive, lambda done: None)
    path = sorted(archive.glob("date=*/*.parquet"))[1]
    group = pq.ParquetFile(path).metadata.row_group(0)
    places = {group.column(n).path_in_schema: n for n in range(group.num_columns)}
    chunk = group.column(places["seq"])
    content = bytearray(path.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin + chunk.total_compressed_size - 3] ^= 1
    path.write_bytes(content)

    done = _made(ready, archive)

    first, last = (int(each) for each in path.stem.split("-"))
    assert [each.path for each in done.bad_files] == [str(path)]
    assert done.manifest.counts["unread"] == last - first + 1


@pytest.mark.slow
def test_samples_alone_make_a_new_version_and_only_those_of_the_window_count(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    synthesize(Plan(events=1_000, seed=5), archive, lambda done: None)
    kept = sorted((archive / DELIVERIES).glob("*/*.parquet"))
    late = kept[-1].rename(tmp_path / kept[-1].name)
    first = _made(ready, archive)
    late.rename(kept[-1])
    second = _made(ready, archive)
    before = Job(str(archive), tmp_path / "none", until=datetime(2001, 1, 1, tzinfo=UTC))
    none = run(ready, before)

    assert (first.is_new, second.is_new, _made(ready, archive).is_new) == (True, True, False)
    assert second.manifest.tables["deliveries"].rows > 0
    assert none.manifest.tables["deliveries"].rows == 0


def test_of_an_archive_without_events_there_is_one_version(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    assert [_made(ready, archive).is_new for _ in range(2)] == [True, False]


@pytest.mark.usefixtures("only_event_tables")
def test_a_stream_that_is_told_to_stop_ends_after_the_batch_under_way(
    ready: SparkSession, tmp_path: Path
) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    for number in range(3):
        _add(archive, 1 + 2 * number, *(ended(f"run-{number}-{n}", _at(n)) for n in range(2)))
    arrived: list[Progress] = []

    def stop_at_the_first(progress: Progress) -> None:
        arrived.append(progress)
        stream.stop()

    pace = Pace(trigger_s=0.1, rows_max=2)
    stream = StreamJob(ready, Job(str(archive), tables), pace, stop_at_the_first)
    stream.run()

    assert [(each.kind, each.through) for each in arrived] == [("batch", 2), ("tables", 2)]
    _streamed(ready, archive)
    assert sorted(rows(tables, "events")["run"].to_pylist()) == [
        f"run-{number}-{n}" for number in range(3) for n in range(2)
    ]
