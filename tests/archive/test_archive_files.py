"""Files of an archive: named by their events, whole or not there, read whoever wrote them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.filling import Filler, SealLimits, stretches
from tocsin.archive.letting_go import KeepLimits, let_go
from tocsin.archive.members import Teller
from tocsin.archive.naming import DELIVERIES, format_range, parse_date, parse_range
from tocsin.archive.parquet import read_piece, read_range
from tocsin.archive.record import SCHEMA, to_batch, to_events
from tocsin.archive.samples import DELIVERIES_SCHEMA
from tocsin.archive.sampling import Sampler
from tocsin.archive.verifying import verify
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.ontology import built_in

NOON_NS = 1_790_000_000_000_000_000
DAY_NS = 86_400_000_000_000
TELLER = Teller(built_in())


def events(first: int, last: int, received_ns: int = NOON_NS) -> list[Stored]:
    return [
        Stored(
            seq,
            received_ns + seq * 1_000,
            Event(
                id=f"e{seq}",
                source="/t",
                type="t",
                topic="a/b",
                data=b'{"RunId":"r","CpuSeconds":"%d"}' % seq,
            ),
        )
        for seq in range(first, last + 1)
    ]


def write(directory: Path, first: int, last: int, received_ns: int = NOON_NS) -> Piece:
    filler = Filler(str(directory), SealLimits())
    filler.tidy()
    batch = to_batch(events(first, last, received_ns), TELLER)
    for stretch in stretches([batch], first, last):
        filler.write_fresh(stretch)
    return next(each for each in filler.catalog.pieces() if each.first == first)


def numbers(directory: Path, through: int = 2**62) -> list[int]:
    batches = read_range(str(directory), ["seq"], through=through)
    return [seq for batch in batches for seq in batch.column("seq").to_pylist()]


def rewrite(piece: Piece, change: Any) -> Piece:
    """The same file with another table in it."""
    table = pq.read_table(piece.path, partitioning=None)
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, piece.path)
    return piece


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
    filler = Filler(str(tmp_path), SealLimits(seal_bytes=1 << 30, seal_age_s=0))

    damaged = filler.seal_due(time.time() + 1)

    assert damaged == []
    assert len(before) == 3
    (sealed,) = catalog.pieces()
    assert (sealed.first, sealed.last, sealed.is_fresh) == (1, 300, False)
    assert sorted(each.first for each in catalog.superseded()) == [1, 101, 201]
    assert numbers(tmp_path) == list(range(1, 301))
    filler.remove_superseded(time.time())
    assert len(list(tmp_path.glob("_fresh/*.parquet"))) == 3, "a reader may be about to open them"
    filler.remove_superseded(time.time() + 61)
    assert list(tmp_path.glob("_fresh/*.parquet")) == []
    with pytest.raises(ArchiveFileGone):
        list(read_piece(before[0]))
    assert verify(str(tmp_path)).ok


def test_a_file_never_spans_two_dates_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    jumping = [*events(1, 10), *events(11, 20, NOON_NS + DAY_NS), *events(21, 30)]
    missing = [each for each in jumping if each.seq not in (10, 15, 30)]
    found = list(stretches([to_batch(missing, TELLER)], 1, 30))

    assert [(each.first, each.last, each.count) for each in found] == [
        (1, 10, 9),
        (11, 20, 9),
        (21, 30, 9),
    ]
    filler = Filler(str(tmp_path), SealLimits(seal_age_s=0))
    filler.tidy()
    for stretch in found:
        filler.write_fresh(stretch)
    filler.seal_due(time.time() + 1)
    assert sorted(each.name for each in tmp_path.glob("date=*")) == [
        "date=2026-09-21",
        "date=2026-09-22",
    ]
    assert verify(str(tmp_path)).ok


def test_what_an_older_version_did_not_know_is_null_and_what_a_newer_added_is_left_out(
    tmp_path: Path,
) -> None:
    def older(table: pa.Table) -> pa.Table:
        told = table["told"].combine_chunks()
        kept = [told.type.field(place) for place in range(3)]
        arrays = [told.field(field.name) for field in kept]
        short = pa.StructArray.from_arrays(arrays, fields=kept, mask=told.is_null())
        return table.drop_columns(["plan"]).set_column(
            table.schema.get_field_index("told"), "told", short
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


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-10]), "cannot be read"),
        (lambda path: path.write_bytes(path.read_bytes()[:2000]), "cannot be read"),
        (lambda path: path.write_bytes(b""), "cannot be read"),
        (lambda path: path.write_text("seq,id\n1,x\n" * 100), "cannot be read"),
        (lambda path: pq.write_table(pa.table({"seq": [1]}), path), "not written by a Tocsin"),
    ],
)
def test_a_bad_file_is_one_error_that_names_it(tmp_path: Path, spoil: Any, words: str) -> None:
    good = write(tmp_path, 1, 40)
    bad = write(tmp_path, 41, 80)
    spoil(Path(bad.path))

    with pytest.raises(BadArchiveFile, match=words) as caught:
        list(read_piece(bad))

    assert caught.value.path == bad.path
    assert sum(batch.num_rows for batch in read_piece(good)) == 40
    report = verify(str(tmp_path))
    assert not report.ok
    assert [each.where for each in report.findings] == [bad.path]


def test_nulls_other_types_and_other_numbers_are_told_as_damage(tmp_path: Path) -> None:
    def without(name: str) -> Any:
        return lambda table: table.drop_columns([name])

    def nulls(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("id")
        return table.set_column(place, pa.field("id", pa.string()), pa.nulls(len(table), "string"))

    def other_type(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("seq")
        return table.set_column(place, "seq", pa.array(["x"] * len(table)))

    spoilt = {"no column 'topic'": without("topic"), "has nulls": nulls, "be read": other_type}
    for number, (words, change) in enumerate(spoilt.items()):
        piece = rewrite(write(tmp_path, number * 10 + 1, number * 10 + 10), change)
        with pytest.raises(BadArchiveFile, match=words):
            list(read_piece(piece))
    renamed = write(tmp_path, 101, 110)
    path = renamed.path.replace("101", "100")
    os.rename(renamed.path, path)
    with pytest.raises(BadArchiveFile, match="other events"):
        list(read_piece(Piece(100, 110, path, True, 0)))


def test_any_flipped_bytes_are_told_or_change_nothing(tmp_path: Path) -> None:
    piece = write(tmp_path, 1, 200)
    path = Path(piece.path)
    sound = path.read_bytes()
    told = 0
    for place in range(4, len(sound) - 8, max(1, len(sound) // 150)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        try:
            found = [each for batch in read_piece(piece) for each in to_events(batch)]
            assert len(found) == 200
        except BadArchiveFile:
            told += 1

    assert told > 50


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

    begun_s = time.perf_counter()
    for extra in range(20):
        last = 200_000 + extra * 10
        (folder / format_range(last + 1, last + 10)).touch()
        assert catalog.through() == last + 10
    poll_s = (time.perf_counter() - begun_s) / 20
    os.utime(folder, ns=(1, 1))
    catalog.pieces()
    begun_s = time.perf_counter()
    catalog.pieces()
    unchanged_s = time.perf_counter() - begun_s

    assert poll_s < 0.2, "a directory that changed"
    assert unchanged_s < 0.05, "and one that did not"


def test_a_hole_is_told_with_its_numbers(tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    gone = write(tmp_path, 11, 20)
    write(tmp_path, 21, 30)
    os.unlink(gone.path)

    report = verify(str(tmp_path))

    assert not report.ok
    assert "11 to 20 are missing" in report.findings[0].what
    assert report.events == 20


def test_a_damaged_fresh_file_says_what_is_to_be_written_anew_until_it_is(tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    bad = write(tmp_path, 11, 20)
    write(tmp_path, 21, 30)
    Path(bad.path).write_bytes(b"PAR1 and no more")
    filler = Filler(str(tmp_path), SealLimits(seal_age_s=0))

    damaged = filler.seal_due(time.time() + 1)
    again = filler.seal_due(time.time() + 1)
    write(tmp_path, 11, 20)
    filler.replaced(bad, [(11, 20)])
    none_left = filler.seal_due(time.time() + 1)

    assert [each.first for each in damaged] == [11]
    assert again == damaged
    assert none_left == []
    assert not (tmp_path / "_damaged").exists()
    assert len(list(tmp_path.glob("date=*/*.parquet"))) == 1, "the others waited for it"
    assert numbers(tmp_path) == list(range(1, 31))
    assert verify(str(tmp_path)).ok


def test_what_was_set_aside_is_damage_as_far_as_no_file_covers_it(tmp_path: Path) -> None:
    bad = write(tmp_path, 1, 30)
    filler = Filler(str(tmp_path), SealLimits())
    filler.replaced(bad, [(16, 30)])
    write(tmp_path, 16, 30)
    write(tmp_path, 31, 40)

    lost = verify(str(tmp_path))
    write(tmp_path, 1, 15)
    restored = verify(str(tmp_path))

    (finding,) = lost.findings
    assert finding.level == "damage"
    assert "events 1 to 15 are in no other file" in finding.what
    assert finding.where == str(tmp_path / "_damaged" / Path(bad.path).name)
    assert restored.ok
    assert [each.level for each in restored.findings] == ["note"]


def test_a_sealed_file_goes_before_a_fresh_one_that_has_some_of_its_events(tmp_path: Path) -> None:
    write(tmp_path, 31, 90)
    Filler(str(tmp_path), SealLimits(seal_age_s=0)).seal_due(time.time() + 1)
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


def test_the_oldest_go_by_size_and_by_age_and_the_last_never(tmp_path: Path) -> None:
    for day in range(4):
        write(tmp_path, day * 100 + 1, day * 100 + 100, NOON_NS + day * DAY_NS)
    filler = Filler(str(tmp_path), SealLimits(seal_age_s=0))
    filler.seal_due(time.time() + 1)
    filler.remove_superseded(time.time() + 100)
    catalog = Catalog(tmp_path)
    size = catalog.pieces()[0].bytes
    much = KeepLimits(retain_age_s=1e9, retain_bytes=1 << 40)

    years_on_s = NOON_NS / 1e9 + 1e9
    let_go(catalog, years_on_s, KeepLimits(3_600, 1 << 40), by_age=True)
    after_one_look = catalog.pieces()
    let_go(catalog, NOON_NS / 1e9, KeepLimits(1e9, 2 * size + 10), by_age=False)
    by_size = catalog.pieces()
    for _ in range(5):
        let_go(catalog, years_on_s, KeepLimits(3_600, 1), by_age=True)
    let_go(catalog, years_on_s, much, by_age=True)

    assert [each.first for each in after_one_look] == [101, 201, 301], "one date at a time"
    assert [each.first for each in by_size] == [201, 301]
    assert [each.first for each in catalog.pieces()] == [301]
    assert sorted(each.name for each in tmp_path.glob("date=*")) == ["date=2026-09-24"]


def test_what_is_let_go_does_not_come_back_from_what_it_was_merged_from(tmp_path: Path) -> None:
    for day in range(2):
        for first in (day * 100 + 1, day * 100 + 51):
            write(tmp_path, first, first + 49, NOON_NS + day * DAY_NS)
    filler = Filler(str(tmp_path), SealLimits(seal_age_s=0))
    filler.seal_due(time.time() + 1)
    aside = tmp_path / "_damaged"
    aside.mkdir()
    for first in (1, 141):
        (aside / format_range(first, first + 20)).touch()

    let_go(filler.catalog, time.time(), KeepLimits(1e9, 1), by_age=False)

    assert numbers(tmp_path) == list(range(101, 201))
    assert sorted(each.name for each in tmp_path.glob("_fresh/*")) == [
        format_range(101, 150),
        format_range(151, 200),
    ]
    assert [each.name for each in aside.iterdir()] == [format_range(141, 161)]


def test_a_file_written_lately_is_not_old_whatever_the_clock_said(tmp_path: Path) -> None:
    write(tmp_path, 1, 10, received_ns=DAY_NS)
    write(tmp_path, 11, 20, received_ns=20 * DAY_NS)
    write(tmp_path, 21, 30)
    write(tmp_path, 31, 40, NOON_NS + DAY_NS)
    filler = Filler(str(tmp_path), SealLimits(seal_age_s=0))
    filler.seal_due(time.time() + 1)
    filler.remove_superseded(time.time() + 100)
    samples = tmp_path / DELIVERIES
    for date in ("1970-01-02", "1970-01-21"):
        (samples / f"date={date}").mkdir(parents=True)
    a_year_s = 365 * 86_400.0
    old_s = time.time() - 2 * a_year_s
    os.utime(next(tmp_path.glob("date=1970-01-21/*.parquet")), (old_s, old_s))
    os.utime(samples / "date=1970-01-21", (old_s, old_s))

    let_go(filler.catalog, time.time(), KeepLimits(a_year_s, 1 << 40), by_age=True)

    assert [each.first for each in filler.catalog.pieces()] == [1, 21, 31]
    assert [each.name for each in samples.iterdir()] == ["date=1970-01-02"]


def test_samples_are_gathered_into_files_by_date(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path))
    at_us = NOON_NS // 1_000
    rows = [
        {"at": at_us + day * DAY_NS // 1_000, "subscription": f"s{day}", "delivered": day}
        for day in (0, 0, 1)
    ]

    sampler.add(DELIVERIES, rows[:1], now_s=0.0)
    sampler.write_due(now_s=599.0)
    assert list(tmp_path.rglob("*.parquet")) == []
    sampler.add(DELIVERIES, rows[1:], now_s=599.0)
    sampler.write_due(now_s=600.0)
    sampler.add(DELIVERIES, rows[:1], now_s=601.0)
    sampler.write_all()

    files = sorted(tmp_path.rglob("*.parquet"))
    assert [each.parent.name for each in files] == ["date=2026-09-21"] * 2 + ["date=2026-09-22"]
    table = pq.read_table(files[0], partitioning=None)
    assert table.schema.equals(DELIVERIES_SCHEMA)
    assert table["subscription"].to_pylist() == ["s0", "s0"]


def test_a_disk_that_is_full_between_two_dates_doubles_no_sample(tmp_path: Path) -> None:
    sampler = Sampler(str(tmp_path))
    at_us = NOON_NS // 1_000
    rows = [{"at": at_us + day * DAY_NS // 1_000, "subscription": f"s{day}"} for day in range(3)]
    sampler.add(DELIVERIES, rows, now_s=0.0)
    blocked = tmp_path / DELIVERIES / "date=2026-09-22"
    blocked.parent.mkdir()
    blocked.write_text("a file where a directory should be")

    with pytest.raises(OSError, match="date=2026-09-22"):
        sampler.write_all()
    blocked.unlink()
    sampler.write_all()
    sampler.write_all()

    files = sorted(tmp_path.rglob("*.parquet"))
    found = [pq.read_table(each, partitioning=None)["subscription"].to_pylist() for each in files]
    assert found == [["s0"], ["s1"], ["s2"]]


def test_engines_that_know_nothing_of_tocsin_see_each_sealed_event_once(tmp_path: Path) -> None:
    write(tmp_path, 1, 60)
    write(tmp_path, 61, 90, NOON_NS + DAY_NS)
    Filler(str(tmp_path), SealLimits(seal_age_s=0)).seal_due(time.time() + 1)
    write(tmp_path, 91, 95)
    (tmp_path / ".lock").touch()
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")

    frame = pandas.read_parquet(tmp_path, columns=["seq", "type"])
    counted = duckdb.sql(
        f"SELECT count(*), max(told.CpuSeconds) FROM read_parquet('{tmp_path}/date=*/*.parquet')"
    ).fetchall()

    assert sorted(frame["seq"]) == list(range(1, 91))
    assert counted == [(90, 90.0)]
