"""What an archive lets go, and what it keeps beside its events: samples, by date, each once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from archive.written import DAY_NS, NOON_NS, numbers, write
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits
from tocsin.archive.catalog import GRACE_S, Catalog
from tocsin.archive.file_names import DELIVERIES, format_range
from tocsin.archive.retention import RetentionLimits, remove_expired
from tocsin.archive.sample_writer import SampleWriter
from tocsin.archive.samples import DELIVERIES_SCHEMA


def test_the_oldest_go_by_size_and_by_age_and_the_last_never(tmp_path: Path) -> None:
    for day in range(4):
        write(tmp_path, day * 100 + 1, day * 100 + 100, NOON_NS + day * DAY_NS)
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0))
    writer.seal_due(time.time() + 1)
    writer.remove_superseded(time.time() + 2 * GRACE_S)
    catalog = Catalog(tmp_path)
    size = catalog.pieces()[0].bytes
    much = RetentionLimits(retain_age_s=1e9, retain_bytes=1 << 40)

    years_on_s = NOON_NS / 1e9 + 1e9
    remove_expired(catalog, years_on_s, RetentionLimits(3_600, 1 << 40), by_age=True)
    after_one_look = catalog.pieces()
    remove_expired(catalog, NOON_NS / 1e9, RetentionLimits(1e9, 2 * size + 10), by_age=False)
    by_size = catalog.pieces()
    for _ in range(5):
        remove_expired(catalog, years_on_s, RetentionLimits(3_600, 1), by_age=True)
    remove_expired(catalog, years_on_s, much, by_age=True)

    assert [each.first for each in after_one_look] == [101, 201, 301], "one date at a time"
    assert [each.first for each in by_size] == [201, 301]
    assert [each.first for each in catalog.pieces()] == [301]
    assert sorted(each.name for each in tmp_path.glob("date=*")) == ["date=2026-09-24"]


def test_what_is_let_go_does_not_come_back_from_what_it_was_merged_from(tmp_path: Path) -> None:
    for day in range(2):
        for first in (day * 100 + 1, day * 100 + 51):
            write(tmp_path, first, first + 49, NOON_NS + day * DAY_NS)
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0))
    writer.seal_due(time.time() + 1)
    aside = tmp_path / "_damaged"
    aside.mkdir()
    for first in (1, 141):
        (aside / format_range(first, first + 20)).touch()

    remove_expired(writer.catalog, time.time(), RetentionLimits(1e9, 1), by_age=False)

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
    writer = ArchiveWriter(str(tmp_path), SealLimits(seal_age_s=0))
    writer.seal_due(time.time() + 1)
    writer.remove_superseded(time.time() + 2 * GRACE_S)
    samples = tmp_path / DELIVERIES
    for date in ("1970-01-02", "1970-01-21"):
        (samples / f"date={date}").mkdir(parents=True)
    a_year_s = 365 * 86_400.0
    old_s = time.time() - 2 * a_year_s
    os.utime(next(tmp_path.glob("date=1970-01-21/*.parquet")), (old_s, old_s))
    os.utime(samples / "date=1970-01-21", (old_s, old_s))

    remove_expired(writer.catalog, time.time(), RetentionLimits(a_year_s, 1 << 40), by_age=True)

    assert [each.first for each in writer.catalog.pieces()] == [1, 21, 31]
    assert [each.name for each in samples.iterdir()] == ["date=1970-01-02"]


def test_samples_are_gathered_into_files_by_date(tmp_path: Path) -> None:
    sampler = SampleWriter(str(tmp_path))
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
    sampler = SampleWriter(str(tmp_path))
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
