"""Damage in an archive: each kind is told, with its file and its numbers, and nothing else is."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.written import events, numbers, rewrite, write
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits
from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.parquet_reader import read_piece
from tocsin.archive.record import to_events
from tocsin.archive.verify import verify
from tocsin.errors.archive import BadArchiveFile


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
    reported = 0
    for place in range(4, len(sound) - 8, max(1, len(sound) // 150)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        try:
            found = [each for batch in read_piece(piece) for each in to_events(batch)]
            assert found == events(1, 200)
        except BadArchiveFile:
            reported += 1

    assert reported > 50


def test_a_hole_is_told_with_its_numbers(tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    gone = write(tmp_path, 11, 20)
    write(tmp_path, 21, 30)
    os.unlink(gone.path)

    report = verify(str(tmp_path))

    assert not report.ok
    assert "11 to 20 are missing" in report.findings[0].what
    assert report.events == 20


def test_a_file_that_is_merged_while_all_are_looked_at_is_no_damage(tmp_path: Path) -> None:
    for first in range(1, 50, 10):
        write(tmp_path, first, first + 9)
    fresh = list((tmp_path / "_fresh").glob("*.parquet"))
    looks: list[int] = []

    def merge_meanwhile(done: int, total: int) -> None:
        looks.append(done)
        if len(looks) == 2:
            ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0)).seal_due(time.time() + 1)
            for path in fresh:
                path.unlink()

    report = verify(str(tmp_path), merge_meanwhile)

    assert report.ok
    assert (report.first, report.last, report.events) == (1, 50, 50)
    assert report.files == len(list(tmp_path.glob("date=*/*.parquet")))


def test_a_file_that_is_listed_and_not_there_is_damage_and_holds_nobody_up(tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    gone = write(tmp_path, 11, 20)
    catalog = Catalog(str(tmp_path))
    stale = catalog.pieces()
    os.unlink(gone.path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Catalog, "pieces", lambda self: stale)  # as a file system may that lags
        report = verify(str(tmp_path))

    assert [(each.where, each.what) for each in report.findings] == [
        (gone.path, "it is no longer there")
    ]
    assert report.events == 10


def test_a_damaged_fresh_file_says_what_is_to_be_written_anew_until_it_is(tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    bad = write(tmp_path, 11, 20)
    write(tmp_path, 21, 30)
    Path(bad.path).write_bytes(b"PAR1 and no more")
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0))

    damaged = writer.seal_due(time.time() + 1)
    again = writer.seal_due(time.time() + 1)
    write(tmp_path, 11, 20)
    writer.replaced(bad, [(11, 20)])
    none_left = writer.seal_due(time.time() + 1)

    assert [each.first for each in damaged.damaged] == [11]
    assert again == damaged
    assert none_left == ([], [])
    assert not (tmp_path / "_damaged").exists()
    assert len(list(tmp_path.glob("date=*/*.parquet"))) == 1, "the others waited for it"
    assert numbers(tmp_path) == list(range(1, 31))
    assert verify(str(tmp_path)).ok


def test_what_was_set_aside_is_damage_as_far_as_no_file_covers_it(tmp_path: Path) -> None:
    bad = write(tmp_path, 1, 30)
    writer = ArchiveWriter(str(tmp_path), SealLimits())
    writer.replaced(bad, [(16, 30)])
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
