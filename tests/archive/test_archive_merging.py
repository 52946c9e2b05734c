"""Samples of a date that is over are merged: no crash, damage or delay loses one or doubles it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.written import DAY_NS, NOON_NS
from tocsin.archive import sample_compaction as merging
from tocsin.archive.file_names import DELIVERIES, DISCOVERIES, date_of, format_date
from tocsin.archive.retention import is_past
from tocsin.archive.sample_compaction import GRACE_S, SETTLED_S, merge_due
from tocsin.archive.sample_writer import SampleWriter
from tocsin.archive.samples import SCHEMAS, SampleFile, superseded
from tocsin.archive.verify import verify

DAY_S = DAY_NS / 1e9
NOON_US = NOON_NS // 1_000
DATE = date_of(NOON_US)
NEXT_DAY_S = NOON_NS / 1e9 + DAY_S


def later_s() -> float:
    """When every date of these tests is over, and what was merged just now was so long ago."""
    return max(time.time() + 2 * GRACE_S, NEXT_DAY_S + 60 * DAY_S)


def keep(archive: Path, *names: str, at_us: int = NOON_US, kind: str = DELIVERIES) -> None:
    """One file, as a broker writes it."""
    sampler = SampleWriter(str(archive))
    column = "subscription" if kind == DELIVERIES else "model"
    rows = [{"at": at_us + place, column: name} for place, name in enumerate(names)]
    sampler.add(kind, rows, now_s=0.0)
    sampler.write_all()


def folder_of(archive: Path, kind: str = DELIVERIES) -> Path:
    return archive / kind / format_date(DATE)


def files(archive: Path, kind: str = DELIVERIES) -> list[str]:
    return sorted(each.name for each in folder_of(archive, kind).iterdir())


def samples(archive: Path, kind: str = DELIVERIES) -> list[str]:
    """What a reader finds who goes by the names, in options."""
    parsed = [each for name in files(archive, kind) if (each := SampleFile.parse(name))]
    left_out = superseded(parsed)
    column = "subscription" if kind == DELIVERIES else "model"
    found = [
        pq.read_table(folder_of(archive, kind) / each.name, partitioning=None)
        for each in sorted(parsed)
        if each not in left_out
    ]
    return [name for table in found for name in table[column].to_pylist()]


def merge_whole(archive: Path) -> None:
    """Merge, and remove what was merged."""
    merge_due(str(archive), NEXT_DAY_S)
    merge_due(str(archive), later_s())


def test_a_date_that_is_over_becomes_one_file_with_the_same_rows(tmp_path: Path) -> None:
    for kind in (DELIVERIES, DISCOVERIES):
        for number in range(5):
            keep(tmp_path, f"a{number}", f"b{number}", at_us=NOON_US + number * 100, kind=kind)
    before = {kind: samples(tmp_path, kind) for kind in (DELIVERIES, DISCOVERIES)}

    waiting = merge_due(str(tmp_path), NEXT_DAY_S)
    while_both_are_there = samples(tmp_path)
    left = merge_due(str(tmp_path), later_s())

    assert (waiting, left) == (10, 0)
    assert while_both_are_there == before[DELIVERIES]
    assert {kind: samples(tmp_path, kind) for kind in before} == before
    merged = f"{NOON_US}-{NOON_US + 400}-5.parquet"
    assert files(tmp_path) == files(tmp_path, DISCOVERIES) == [merged]
    table = pq.read_table(folder_of(tmp_path) / merged, partitioning=None)
    assert table.schema.equals(SCHEMAS[DELIVERIES], check_metadata=True)


def test_what_a_reader_has_listed_is_there_for_a_while(tmp_path: Path) -> None:
    for number in range(3):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    listed = files(tmp_path)

    merge_due(str(tmp_path), NEXT_DAY_S)
    (merged,) = folder_of(tmp_path).glob("*-*.parquet")
    os.utime(merged, (NEXT_DAY_S, NEXT_DAY_S))
    waiting = merge_due(str(tmp_path), NEXT_DAY_S + GRACE_S - 1)

    assert waiting == 3
    assert set(listed) < set(files(tmp_path))
    assert merge_due(str(tmp_path), NEXT_DAY_S + GRACE_S) == 0
    assert files(tmp_path) == [merged.name]


def test_files_of_today_are_left_alone_and_so_is_yesterday_until_its_last_rows_came(
    tmp_path: Path,
) -> None:
    for number in range(3):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    before = files(tmp_path)
    midnight_s = NOON_NS / 1e9 // DAY_S * DAY_S + DAY_S

    for now_s in (NOON_NS / 1e9, midnight_s - 1, midnight_s + 1, midnight_s + SETTLED_S - 1):
        merge_due(str(tmp_path), now_s)
        assert files(tmp_path) == before
    merge_due(str(tmp_path), midnight_s + SETTLED_S)
    assert len(files(tmp_path)) == 4


class Killed(BaseException):
    """The process is gone: nothing that it would have done next is done."""


def _killed_at(patched: pytest.MonkeyPatch, step: int, *, after: bool) -> None:
    """From call `step` on, that changes the directory, none does."""
    calls = 0

    def dying(call: Callable[..., object]) -> Callable[..., object]:
        def called(*given: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls > step or (calls == step and not after):
                raise Killed
            done = call(*given, **named)
            if calls == step:
                raise Killed
            return done

        return called

    for name in ("replace", "unlink", "fsync", "utime"):
        patched.setattr(os, name, dying(getattr(os, name)))
    patched.setattr(pa, "OSFile", dying(pa.OSFile))


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_between_any_two_steps_neither_loses_nor_doubles_a_sample(
    tmp_path: Path, after: bool
) -> None:
    whole = tmp_path / "whole"
    for number in range(4):
        keep(whole, f"a{number}", f"b{number}", at_us=NOON_US + number * 100)
    before = samples(whole)
    crashes = 0
    for step in range(1, 100):
        archive = tmp_path / str(step)
        shutil.copytree(whole, archive)
        with pytest.MonkeyPatch.context() as patched:
            _killed_at(patched, step, after=after)
            try:
                merge_whole(archive)
            except Killed:
                crashes += 1
            else:
                break
        assert samples(archive) == before, step
        assert verify(str(archive)).ok, step

        merge_whole(archive)

        assert samples(archive) == before, step
        assert len(files(archive)) == 1, step
    assert crashes > 8, "a file, three waits for the disk, a rename, a date, four removals, a date"


def test_a_damaged_file_stays_and_the_others_are_merged_around_it(tmp_path: Path) -> None:
    for number in range(7):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    damaged = folder_of(tmp_path) / f"{NOON_US + 3}.parquet"
    content = bytearray(damaged.read_bytes())
    content[10] ^= 0xFF  # in a page: the footer is as it should be
    damaged.write_bytes(content)

    merge_whole(tmp_path)
    merge_whole(tmp_path)

    assert files(tmp_path) == [
        f"{NOON_US}-{NOON_US + 2}-3.parquet",
        damaged.name,
        f"{NOON_US + 4}-{NOON_US + 6}-3.parquet",
    ]
    assert damaged.read_bytes() == content
    (finding,) = verify(str(tmp_path)).findings
    assert finding.where == str(damaged)
    damaged.unlink()
    assert samples(tmp_path) == ["a0", "a1", "a2", "a4", "a5", "a6"]


def test_a_file_with_columns_that_we_do_not_know_is_not_merged(tmp_path: Path) -> None:
    for number in range(3):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    newer = folder_of(tmp_path) / f"{NOON_US + 2}.parquet"
    table = pq.read_table(newer, partitioning=None)
    pq.write_table(table.append_column("added", pa.array([7])), newer)

    merge_whole(tmp_path)

    assert files(tmp_path) == [f"{NOON_US}-{NOON_US + 1}-2.parquet", newer.name]
    assert pq.read_table(newer, partitioning=None)["added"].to_pylist() == [7]


def test_what_comes_late_is_not_taken_for_part_of_what_was_merged(tmp_path: Path) -> None:
    for number in (0, 10, 20):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    merge_whole(tmp_path)

    keep(tmp_path, "late", at_us=NOON_US + 10)
    keep(tmp_path, "later", at_us=NOON_US)
    merge_whole(tmp_path)

    assert samples(tmp_path) == ["a0", "a10", "a20", "late", "later"]
    assert files(tmp_path) == [
        f"{NOON_US}-{NOON_US + 20}-3.parquet",
        f"{NOON_US + 21}-{NOON_US + 22}-2.parquet",
    ]


def test_much_becomes_several_files_and_a_little_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    before = samples(tmp_path)
    monkeypatch.setattr(merging, "MERGED_BYTES", 200)  # of two files
    monkeypatch.setattr(merging, "MERGES_MAX", 1)

    waits: list[int] = []
    while not waits or waits[-1]:
        waits.append(merge_due(str(tmp_path), later_s()))
        assert samples(tmp_path) == before

    assert len(waits) > 3
    assert len(files(tmp_path)) < 6


def test_nobody_who_asks_any_more_ends_it_between_two_files(tmp_path: Path) -> None:
    for kind in (DELIVERIES, DISCOVERIES):
        for number in range(2):
            keep(tmp_path, f"a{number}", at_us=NOON_US + number, kind=kind)

    merge_due(str(tmp_path), NEXT_DAY_S, is_asked=lambda: False)

    assert len(files(tmp_path)) == 3
    assert len(files(tmp_path, DISCOVERIES)) == 2


def test_merging_makes_a_date_no_younger_than_its_samples(tmp_path: Path) -> None:
    for number in range(3):
        keep(tmp_path, f"a{number}", at_us=NOON_US + number)
    folder = folder_of(tmp_path)
    (folder / ".1.parquet").write_bytes(b"half of a file")
    old_s = time.time() - 400 * DAY_S
    os.utime(folder, (old_s, old_s))
    long_ago = datetime.fromtimestamp(old_s, UTC).date()

    merge_whole(tmp_path)

    assert len(files(tmp_path)) == 1
    assert is_past(long_ago, str(folder), time.time(), 365 * DAY_S)


def test_a_month_of_files_becomes_one_a_day(tmp_path: Path) -> None:
    keep(tmp_path / "one", "a")
    (one,) = (tmp_path / "one").rglob("*.parquet")
    content = one.read_bytes()
    for day in range(30):
        begin_us = NOON_US + day * DAY_NS // 1_000
        folder = tmp_path / DELIVERIES / format_date(date_of(begin_us))
        folder.mkdir(parents=True)
        for number in range(144):
            (folder / f"{begin_us + number}.parquet").write_bytes(content)
    looks = 0

    while merge_due(str(tmp_path), later_s()):
        looks += 1
        assert looks < 10

    found = sorted((tmp_path / DELIVERIES).rglob("*"))
    merged = [each for each in found if each.is_file()]
    assert len(merged) == 30
    assert sum(pq.read_metadata(each).num_rows for each in merged) == 30 * 144


numbers = st.integers(0, 30)


@given(st.sets(numbers, max_size=12), st.sets(numbers, max_size=4), st.data())
def test_a_name_says_of_every_file_whether_it_is_in_a_merged_one(
    small: set[int], ends: set[int], data: st.DataObject
) -> None:
    ordered = sorted(ends)
    merged = [
        SampleFile(first, last, data.draw(st.integers(2, 9)))
        for first, last in zip(ordered[::2], ordered[1::2], strict=False)
    ]
    singles = [SampleFile(each, each) for each in small]

    found = superseded([*merged, *singles])

    assert found == {
        each: holder
        for each in singles
        for holder in merged
        if holder.first <= each.first <= holder.last
    }
    assert all(SampleFile.parse(each.name) == each for each in [*merged, *singles])


@pytest.mark.parametrize(
    "name",
    ["1-2.parquet", "2-1-5.parquet", "1-2-1.parquet", "01.parquet", ".1.parquet", "a.parquet"],
)
def test_a_name_that_nobody_gives_says_nothing(name: str) -> None:
    assert SampleFile.parse(name) is None
