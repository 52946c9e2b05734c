"""Samples beside an archive: merged or not, the pipeline finds the same rows, each once."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from tocsin.archive.file_names import DEADLETTERS, DELIVERIES, DISCOVERIES, date_of, format_date
from tocsin.archive.sample_compaction import GRACE_S, merge_due
from tocsin.archive.sample_writer import SampleWriter
from tocsin.pipeline.read.samples import Samples, current_files
from tocsin.pipeline.state import Window

DAY_US = 86_400_000_000
FIRST_US = 20_000 * DAY_US  # in 2024
NO_SPARK = cast(SparkSession, None)  # names are read without it


def keep(archive: Path, days: int, a_day: int) -> None:
    """So many files a day, of each kind."""
    sampler = SampleWriter(str(archive))
    for number in range(days * a_day):
        at_us = FIRST_US + number // a_day * DAY_US + number % a_day * 600_000_000
        sampler.add(DELIVERIES, [{"at": at_us, "subscription": f"s{number}"}], 0.0)
        sampler.add(DEADLETTERS, [{"at": at_us, "id": f"d{number}", "subscription": "s"}], 0.0)
        sampler.add(DISCOVERIES, [{"at": at_us, "model": f"m{number}"}], 0.0)
        sampler.write_all()


def folder(archive: Path, day: int = 0) -> Path:
    return archive / DELIVERIES / format_date(date_of(FIRST_US + day * DAY_US))


def of(archive: Path, spark: SparkSession = NO_SPARK) -> Samples:
    return Samples(spark, str(archive), Window(None, None, str(archive)))


def long_after_s() -> float:
    return time.time() + 2 * GRACE_S


def test_what_is_merged_is_the_same_to_whoever_reads_it_and_to_what_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    keep(tmp_path, days=2, a_day=3)
    (folder(tmp_path, 1) / "1.parquet").write_bytes(b"PAR1 and no more")
    (folder(tmp_path) / "of-somebody-else.parquet").write_bytes(b"PAR1")

    def seen() -> tuple[str, list[str], list[str]]:
        found = of(tmp_path, spark)
        rows = sorted(row.subscription for row in found.of(DELIVERIES).collect())
        return found.fingerprint(), rows, sorted(each.path for each in found.unreadable())

    before = seen()
    merge_due(str(tmp_path), long_after_s())
    (folder(tmp_path) / ".1-2-3.parquet").write_bytes(b"what is being written")
    while_both_are_there = seen()
    merge_due(str(tmp_path), long_after_s())
    after = seen()

    assert before[1] == [f"s{number}" for number in range(6)]
    assert len(before[2]) == 2
    assert before == while_both_are_there == after
    assert len(list(tmp_path.rglob("*.parquet"))) == 2 * 3 + 2


def test_what_was_told_before_there_were_merged_files_is_told_of_them(tmp_path: Path) -> None:
    keep(tmp_path, days=2, a_day=3)
    last = f"{FIRST_US + DAY_US + 2 * 600_000_000}.parquet"

    merge_due(str(tmp_path), long_after_s())
    merge_due(str(tmp_path), long_after_s())

    assert of(tmp_path).fingerprint() == f"6:{last} 6:{last} 6:{last}"


def test_a_sample_more_is_told_also_where_it_came_late(tmp_path: Path) -> None:
    keep(tmp_path, days=2, a_day=3)
    merge_due(str(tmp_path), long_after_s())
    before = of(tmp_path).fingerprint()

    keep(tmp_path, days=1, a_day=1)

    assert of(tmp_path).fingerprint() != before


def test_a_file_that_went_while_it_was_looked_at_is_not_a_bad_one(tmp_path: Path) -> None:
    keep(tmp_path, days=1, a_day=3)
    found = of(tmp_path)
    before = found.fingerprint()

    merge_due(str(tmp_path), long_after_s())
    merge_due(str(tmp_path), long_after_s())

    assert found.unreadable() == []
    assert found.fingerprint() == before


@pytest.mark.parametrize("root", ["/archive/_deliveries", "s3a://bucket/archive/_deliveries"])
def test_a_copy_that_still_has_what_was_merged_has_each_sample_once(root: str) -> None:
    day, next_day = f"{root}/date=2026-11-16", f"{root}/date=2026-11-17"
    merged = [f"{day}/10-30-3.parquet", f"{day}/31.parquet", f"{day}/9.parquet"]

    paths = [f"{next_day}/20.parquet", f"{day}/10.parquet", *merged, f"{day}/30.parquet"]
    found = current_files(paths)

    assert found == [*merged, f"{next_day}/20.parquet"]


def test_what_comes_after_a_window_is_over_is_not_told_of(tmp_path: Path) -> None:
    keep(tmp_path, days=2, a_day=3)
    until = datetime.fromtimestamp(FIRST_US / 1e6, UTC) + timedelta(hours=12)
    window = Window(None, until, str(tmp_path))
    before = Samples(NO_SPARK, str(tmp_path), window).fingerprint()
    everything = of(tmp_path).fingerprint()

    keep(tmp_path / "more", days=3, a_day=3)
    for kind in (DELIVERIES, DEADLETTERS, DISCOVERIES):
        later = folder(tmp_path, 2).name
        (tmp_path / "more" / kind / later).rename(tmp_path / kind / later)

    assert Samples(NO_SPARK, str(tmp_path), window).fingerprint() == before
    assert of(tmp_path).fingerprint() != everything


def test_a_date_that_is_let_go_while_its_samples_are_read_stops_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    keep(tmp_path, days=2, a_day=3)
    rows = of(tmp_path, spark).of(DELIVERIES)

    shutil.rmtree(folder(tmp_path))

    assert sorted(row.subscription for row in rows.collect()) == ["s3", "s4", "s5"]


def test_what_was_merged_while_an_edition_was_made_is_read_where_it_is_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    keep(tmp_path, days=1, a_day=3)
    found = of(tmp_path, spark)
    reported, bad = found.fingerprint(), found.unreadable()

    for _ in range(2):  # the second time, what was merged is removed
        merge_due(str(tmp_path), long_after_s())

    assert found.of(DELIVERIES).count() == 3
    assert (found.fingerprint(), found.unreadable()) == (reported, bad)
