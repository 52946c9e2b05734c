"""Files of an archive: named by their events, whole or not there, read whoever wrote them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from archive.written import DAY_NS, FACTS_READER, NOON_NS, events, numbers, rewrite, write
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.catalog import GRACE_S, Catalog
from tocsin.archive.file_names import format_range, parse_date, parse_range
from tocsin.archive.parquet_reader import read_piece, read_range
from tocsin.archive.record import SCHEMA, to_batch, to_events
from tocsin.archive.verify import verify
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile


def test_a_name_says_which_events_and_any_other_is_none_of_ours() -> None:
    name = format_range(1, 50_000)

    assert name == "00000000000000000001-00000000000000050000.parquet"
    assert parse_range(name) == (1, 50_000)
    for other in ("part-0.parquet", name + ".tmp", f".{name}", format_range(5, 9)[::-1]):
        assert parse_range(other) is None
    assert parse_range(f"{9:020d}-{5:020d}.parquet") is None
    assert parse_date("date=2026-11-16") == "2026-11-16"
    assert parse_date("date=latest") is None


def test_an_event_comes_back_to_the_byte_and_a_range_is_cut_out(tmp_path: Path) -> None:
    write(tmp_path, 1, 300)
    piece = write(tmp_path, 301, 900)

    whole = [each for batch in read_range(str(tmp_path), through=900) for each in to_events(batch)]
    cut = pa.Table.from_batches(read_piece(piece, ["id"], after=398, through=400))

    assert whole == events(1, 900)
    assert cut.to_pydict() == {"id": ["e399", "e400"]}
    ids = [each for b in read_range(str(tmp_path), ["id"], after=298, through=302) for each in b[0]]
    assert [each.as_py() for each in ids] == ["e299", "e300", "e301", "e302"]
    assert next(read_piece(piece)).schema.equals(SCHEMA)


def test_a_merged_file_takes_the_place_of_its_parts_and_nothing_is_seen_twice(
    tmp_path: Path,
) -> None:
    for first in (1, 101, 201):
        write(tmp_path, first, first + 99)
    catalog = Catalog(tmp_path)
    before = catalog.pieces()
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_bytes=1 << 30, seal_age_s=0))

    waiting = writer.seal_due(time.time() + 1)

    assert waiting == ([], [])
    assert len(before) == 3
    (sealed,) = catalog.pieces()
    assert (sealed.first, sealed.last, sealed.is_fresh) == (1, 300, False)
    assert sorted(each.first for each in catalog.superseded()) == [1, 101, 201]
    assert numbers(tmp_path) == list(range(1, 301))
    writer.remove_superseded(time.time())
    assert len(list(tmp_path.glob("_fresh/*.parquet"))) == 3, "a reader may be about to open them"
    writer.remove_superseded(time.time() + GRACE_S + 1)
    assert list(tmp_path.glob("_fresh/*.parquet")) == []
    with pytest.raises(ArchiveFileGone):
        list(read_piece(before[0]))
    assert verify(str(tmp_path)).ok


def test_a_file_never_spans_two_dates_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    jumping = [*events(1, 10), *events(11, 20, NOON_NS + DAY_NS), *events(21, 30)]
    missing = [each for each in jumping if each.seq not in (10, 15, 30)]
    found = list(segments([to_batch(missing, FACTS_READER)], 1, 30))

    assert [(each.first, each.last, each.count) for each in found] == [
        (1, 10, 9),
        (11, 20, 9),
        (21, 30, 9),
    ]
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0))
    writer.tidy()
    for segment in found:
        writer.write_fresh(segment)
    writer.seal_due(time.time() + 1)
    assert sorted(each.name for each in tmp_path.glob("date=*")) == [
        "date=2026-09-21",
        "date=2026-09-22",
    ]
    assert verify(str(tmp_path)).ok


def test_what_an_older_version_did_not_know_is_null_and_what_a_newer_added_is_left_out(
    tmp_path: Path,
) -> None:
    def older(table: pa.Table) -> pa.Table:
        reported = table["facts"].combine_chunks()
        kept = [reported.type.field(place) for place in range(3)]
        arrays = [reported.field(field.name) for field in kept]
        short = pa.StructArray.from_arrays(arrays, fields=kept, mask=reported.is_null())
        return table.drop_columns(["plan"]).set_column(
            table.schema.get_field_index("facts"), "facts", short
        )

    def newer(table: pa.Table) -> pa.Table:
        wide = table.set_column(0, "seq", table["seq"].cast(pa.int64()))
        return wide.append_column("mood", pa.array(["good"] * len(table)))

    first = rewrite(write(tmp_path, 1, 50), older)
    second = rewrite(write(tmp_path, 51, 100), newer)

    for piece in (first, second):
        (batch,) = read_piece(piece)
        batch.validate(full=True)
        assert batch.schema.equals(SCHEMA)
        assert to_events(batch) == events(piece.first, piece.last)
    assert next(read_piece(first)).column("plan").null_count == 50


def test_a_file_with_the_column_of_before_the_first_release_is_refused_by_name(
    tmp_path: Path,
) -> None:
    def unreleased(table: pa.Table) -> pa.Table:
        return table.rename_columns(["told" if n == "facts" else n for n in table.column_names])

    piece = rewrite(write(tmp_path, 1, 10), unreleased)

    with pytest.raises(BadArchiveFile, match=r"'told' is now named 'facts'.*write it again"):
        next(read_piece(piece))


def test_foreign_files_are_listed_apart_and_a_half_written_one_is_not_seen(tmp_path: Path) -> None:
    piece = write(tmp_path, 1, 10)
    folder = Path(piece.path).parent
    (folder / "notes.txt").write_text("mine")
    (folder / f".{format_range(11, 20)}").write_bytes(b"PAR1")
    overlapping = folder / format_range(5, 15)
    overlapping.write_bytes(Path(piece.path).read_bytes())
    (tmp_path / "readme").write_text("not looked at")

    catalog = Catalog(tmp_path)

    assert [each.last for each in catalog.pieces()] == [10]
    reasons = {Path(each.path).name: each.reason for each in catalog.foreign()}
    assert "name" in reasons["notes.txt"]
    assert "overlap" in reasons[overlapping.name]
    assert verify(str(tmp_path)).ok is False


def test_twenty_thousand_files_are_listed_quickly_and_once(tmp_path: Path) -> None:
    folder = tmp_path / "_fresh"
    folder.mkdir()
    for number in range(20_000):
        (folder / format_range(number * 10 + 1, number * 10 + 10)).touch()
    catalog = Catalog(tmp_path)
    assert len(catalog.pieces()) == 20_000

    listing_s = seconds(lambda: sorted(name.split("-") for name in os.listdir(folder)))
    extra = iter(range(200_000, 300_000, 10))

    def one_more() -> None:
        last = next(extra)
        (folder / format_range(last + 1, last + 10)).touch()
        assert catalog.through() == last + 10

    changed_s = seconds(one_more)
    os.utime(folder, ns=(1, 1))
    catalog.pieces()
    unchanged_s = seconds(catalog.pieces)

    assert changed_s < 20 * listing_s, "a directory that changed is listed once"
    assert unchanged_s < changed_s / 10, "and one that did not is not listed"


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, which others have too; the least of five."""
    found = []
    for _ in range(5):
        begun_s = time.process_time()
        work()
        found.append(time.process_time() - begun_s)
    return min(found)


def test_a_sealed_file_goes_before_a_fresh_one_that_has_some_of_its_events(tmp_path: Path) -> None:
    write(tmp_path, 31, 90)
    ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0)).seal_due(time.time() + 1)
    fresh = write(tmp_path, 1, 15)
    over = tmp_path / "_fresh" / format_range(16, 45)
    over.write_bytes(Path(fresh.path).read_bytes())
    within = tmp_path / "_fresh" / format_range(5, 15)
    within.write_bytes(Path(fresh.path).read_bytes())

    catalog = Catalog(tmp_path)

    assert [(each.first, each.last) for each in catalog.pieces()] == [(1, 15), (31, 90)]
    assert [each.path for each in catalog.foreign()] == [str(over)]
    assert sorted(each.first for each in catalog.superseded()) == [5, 31]
    assert catalog.through() == 90


def test_engines_that_know_nothing_of_tocsin_see_each_sealed_event_once(tmp_path: Path) -> None:
    write(tmp_path, 1, 60)
    write(tmp_path, 61, 90, NOON_NS + DAY_NS)
    ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0)).seal_due(time.time() + 1)
    write(tmp_path, 91, 95)
    (tmp_path / ".lock").touch()
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")

    frame = pandas.read_parquet(tmp_path, columns=["seq", "type"])
    counted = duckdb.sql(
        f"SELECT count(*), max(facts.CpuSeconds) FROM read_parquet('{tmp_path}/date=*/*.parquet')"
    ).fetchall()

    assert sorted(frame["seq"]) == list(range(1, 91))
    assert counted == [(90, 90.0)]
