"""What the source `tocsin` plans and reads, asked as Spark asks it, without a Spark session."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pipeline.archives import add_fresh, add_sealed, batch_of, seal
from pipeline.reading import batch_reader, numbers, source, stream_reader
from tocsin.archive.catalog import Piece
from tocsin.archive.record import SCHEMA
from tocsin.archive.selection import select
from tocsin.errors.archive import ArchiveFileNotRead, BadArchiveFile, NoArchive
from tocsin.errors.spark import BadSourceOption, EventsGone
from tocsin.pipeline.source.plan import holes, share_out


def test_the_schema_is_that_of_the_archive_or_the_part_that_was_asked_for(tmp_path: Path) -> None:
    whole, part = source(tmp_path), source(tmp_path, Columns="facts.Host, seq,facts.ExitCode")

    assert to_arrow_schema(whole.schema(), timezone="UTC").equals(SCHEMA)
    assert (
        part.schema().simpleString()
        == "struct<facts:struct<ExitCode:bigint,Host:string>,seq:bigint>"
    )


def test_sealed_and_fresh_files_are_read_once_whichever_way_they_are_shared_out(
    tmp_path: Path,
) -> None:
    add_sealed(tmp_path, 1, 250)
    for first in range(251, 291, 10):
        add_fresh(tmp_path, first, first + 9)

    for rows in (7, 25, 100, 1_000):
        reader = batch_reader(tmp_path, rows_per_partition=rows, rows_per_batch=16)
        assert sorted(numbers(reader)) == list(range(1, 291))
        assert len(reader.partitions()) >= 290 // (2 * rows)
    assert numbers(batch_reader(tmp_path, after=100, through=255)) == list(range(101, 256))
    assert numbers(batch_reader(tmp_path, after=290)) == []
    assert pa.Table.from_batches(
        [b for share in reader.partitions() for b in reader.read(share)], SCHEMA
    ).equals(pa.Table.from_batches([batch_of(1, 290)]))


def test_a_file_that_is_merged_between_plan_and_read_is_found_where_it_went(
    tmp_path: Path,
) -> None:
    for first in range(1, 51, 10):
        add_fresh(tmp_path, first, first + 9)
    reader = batch_reader(tmp_path, after=5, through=45)
    planned = reader.partitions()

    seal(tmp_path)

    read = [n for share in planned for b in reader.read(share) for n in b.column("seq").to_pylist()]
    assert read == list(range(6, 46))
    add_fresh(tmp_path, 51, 60)
    seal(tmp_path, keep_fresh=True)  # as a crash leaves it: both are there
    assert numbers(batch_reader(tmp_path)) == list(range(1, 61))


def test_members_of_told_are_read_alone_and_older_files_have_nulls(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 30)
    wanted = select(["seq", "facts.ExitCode", "facts.Host"])

    reader = batch_reader(tmp_path, columns="seq,facts.ExitCode,facts.Host", after=10, through=20)
    (batch,) = [b for share in reader.partitions() for b in reader.read(share)]

    assert batch.schema.equals(wanted)
    assert batch.column("facts").to_pylist() == [
        {"ExitCode": seq % 2 if seq % 3 == 0 else None, "Host": None} for seq in range(11, 21)
    ]
    own = from_arrow_schema(select(["facts.ExitCode"]))
    (alone,) = list(source(tmp_path, after=29).reader(own).read(reader.partitions()[0]))
    assert alone.schema.names == ["facts"]


def test_a_stream_goes_on_from_its_offset_and_ends_where_it_was_told(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 100)
    reader = stream_reader(tmp_path, rows_per_trigger=30, through=170)

    start = reader.initialOffset()
    assert start == {"seq": 0}
    assert reader.getDefaultReadLimit() == ReadMaxRows(30)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert end == {"seq": 30}
    assert numbers(reader, reader.partitions(start, end)) == list(range(1, 31))
    assert reader.latestOffset(end, ReadAllAvailable()) == {"seq": 100}
    assert reader.reportLatestOffset() == {"seq": 100}
    add_fresh(tmp_path, 101, 200)
    assert reader.latestOffset({"seq": 100}, ReadAllAvailable()) == {"seq": 170}
    assert reader.latestOffset({"seq": 170}, ReadAllAvailable()) == {"seq": 170}
    assert reader.partitions({"seq": 170}, {"seq": 170}) == []

    now = stream_reader(tmp_path)
    now.prepareForTriggerAvailableNow()
    add_fresh(tmp_path, 201, 210)
    assert now.latestOffset({"seq": 0}, ReadAllAvailable()) == {"seq": 200}


def test_a_hole_is_told_and_passed_over_only_when_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for first in (1, 11, 21):
        add_sealed(tmp_path, first, first + 9)
    next(tmp_path.glob("date=*/*11-*.parquet")).unlink()

    with pytest.raises(EventsGone, match=r"events 11 to 20 are not in .*after=20.*holes=skip"):
        batch_reader(tmp_path).partitions()
    with pytest.raises(EventsGone, match="events 11 to 20"):
        stream_reader(tmp_path).partitions({"seq": 5}, {"seq": 25})
    skipping = numbers(batch_reader(tmp_path, holes="skip"))
    assert skipping == [*range(1, 11), *range(21, 31)]
    assert "events 11 to 20 are not in" in caplog.text

    next(tmp_path.glob("date=*/*01-*.parquet")).unlink()  # let go, as the oldest are
    assert numbers(batch_reader(tmp_path)) == list(range(21, 31))
    assert stream_reader(tmp_path).initialOffset() == {"seq": 20}
    assert numbers(batch_reader(tmp_path, after=0)) == list(range(21, 31))
    with pytest.raises(EventsGone, match="events 6 to 20"):
        batch_reader(tmp_path, after=5).partitions()


def test_an_archive_that_was_started_over_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 30)

    going_on, now = stream_reader(tmp_path), stream_reader(tmp_path)
    now.prepareForTriggerAvailableNow()

    for reader in (going_on, now):
        assert reader.latestOffset({"seq": 30}, ReadAllAvailable()) == {"seq": 30}
        with pytest.raises(EventsGone, match=r"ends at event 30.*read through 99"):
            reader.latestOffset({"seq": 99}, ReadAllAvailable())


def test_a_bad_file_is_named_with_what_to_do_or_passed_over_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_sealed(tmp_path, 1, 50)
    bad = add_sealed(tmp_path, 51, 100)
    bad.write_bytes(bad.read_bytes()[:-100])
    add_sealed(tmp_path, 101, 120)
    (bad.parent / "notes.parquet").write_bytes(b"PAR1")

    with pytest.raises(BadArchiveFile, match=r"Restore it from a backup") as caught:
        numbers(batch_reader(tmp_path))

    assert str(bad) in str(caught.value)
    assert "bad_files=skip" in "".join(caught.value.__notes__)
    assert numbers(batch_reader(tmp_path, badFiles="SKIP")) == [*range(1, 51), *range(101, 121)]
    assert f"a file was passed over: {bad}" in caplog.text
    assert "notes.parquet: its name" in caplog.text


def test_a_file_that_the_machine_does_not_read_is_named_and_not_passed_over(
    tmp_path: Path,
) -> None:
    add_sealed(tmp_path, 1, 50)
    path = add_sealed(tmp_path, 51, 100)
    reader = batch_reader(tmp_path, bad_files="skip")
    shares = reader.partitions()
    path.unlink()
    path.symlink_to(path)

    with pytest.raises(ArchiveFileNotRead, match="symbolic links") as caught:
        [batch for share in shares for batch in reader.read(share)]

    assert str(path) in str(caught.value)


def test_a_record_without_what_it_must_have_spoils_its_file_unless_it_is_kept(
    tmp_path: Path,
) -> None:
    path = add_sealed(tmp_path, 1, 20)
    whole = pq.read_table(path, partitioning=None)
    place = whole.schema.get_field_index("type")
    types = pa.array([None, *whole["type"].to_pylist()[1:]])
    pq.write_table(
        whole.set_column(place, "type", types).replace_schema_metadata(whole.schema.metadata), path
    )

    with pytest.raises(BadArchiveFile, match=r"column 'type' has nulls.*nulls=keep"):
        numbers(batch_reader(tmp_path))
    own = from_arrow_schema(pa.schema([("type", pa.string()), ("seq", pa.int64())]))
    with pytest.raises(BadArchiveFile, match="column 'type' has nulls"):
        numbers(source(tmp_path).reader(own))

    kept = batch_reader(tmp_path, nulls="keep")
    found = pa.Table.from_batches([b for s in kept.partitions() for b in kept.read(s)])
    assert found["type"].null_count == 1
    assert found.num_rows == 20
    assert source(tmp_path, nulls="keep").schema()["type"].nullable


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colums": "seq"}, r"no option 'colums'.*Did you mean columns"),
        ({"columns": "seq,runn"}, r"no column 'runn'; did you mean run"),
        ({"columns": "facts.ExitCod"}, r"no member of facts 'ExitCod'"),
        ({"after": "-1"}, r"after is '-1'.*from 0"),
        ({"after": 5, "through": 4}, r"through is 4, before after"),
        ({"rows_per_batch": "many"}, r"rows_per_batch is 'many'"),
        ({"bad_files": "ignore"}, r"Choose one of fail, skip"),
        ({"path": ""}, r"needs to know where"),
        ({"path": "http://"}, r"names no host"),
        ({"path": "http://me:secret@broker"}, r"^the address of the broker has a user"),
    ],
)
def test_a_wrong_option_is_refused_with_what_it_can_be(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(BadSourceOption, match=words):
        batch_reader(**{"path": tmp_path, **options})


def test_a_schema_of_ones_own_must_be_a_part_of_the_archives(tmp_path: Path) -> None:
    with pytest.raises(BadSourceOption, match=r"schema has seq as string"):
        source(tmp_path).reader(from_arrow_schema(pa.schema([("seq", pa.string())])))
    with pytest.raises(BadSourceOption, match=r"no column 'wind'"):
        source(tmp_path).reader(from_arrow_schema(pa.schema([("wind", pa.string())])))
    with pytest.raises(NoArchive, match="there is no directory"):
        batch_reader(tmp_path / "none").partitions()
    assert numbers(batch_reader(tmp_path)) == []


RANGES = st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=12)


@given(ranges=RANGES, rows=st.integers(1, 40), data=st.data())
def test_shares_and_holes_together_are_every_event_once(
    ranges: list[tuple[int, bool]], rows: int, data: st.DataObject
) -> None:
    pieces, first = [], 1
    for size, is_there in ranges:
        if is_there:
            pieces.append(Piece(first, first + size - 1, f"f{first}", False, 1))
        first += size
    after = data.draw(st.integers(0, first))
    through = data.draw(st.integers(after, first + 5))
    within = [each for each in pieces if each.last > after and each.first <= through]

    shares = list(share_out(within, after, through, rows))

    read = [
        seq
        for share in shares
        for piece in share.pieces
        for seq in range(max(piece.first, share.after + 1), min(piece.last, share.through) + 1)
    ]
    missing = [n for low, high in holes(within, after, through) for n in range(low, high + 1)]
    assert sorted(read + missing) == list(range(after + 1, through + 1))
