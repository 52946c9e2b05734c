"""Which events were there before is found by searching, and is the same as by looking at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from pipeline.damage import add_file, as_table, ended, message
from pipeline.folded import taken
from pipeline.sameness import rows
from tocsin.pipeline.job import Job, run
from tocsin.pipeline.partials import dedup_index as known
from tocsin.pipeline.partials.dedup_index import Keys, among, ordered_beside
from tocsin.pipeline.partials.merged_state import compacted
from tocsin.pipeline.partials.partial import Sizes
from tocsin.pipeline.state import State
from tocsin.tables.published import require

MOMENT = "2026-02-01T12:00:00Z"
RECEIVED_NS = 1_770_000_000_000_000_000

# Few values, so that there are keys in common with another check, and both the same.
pairs = st.lists(
    st.tuples(
        st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]), st.sampled_from([-(2**31), 0, 2**31 - 1])
    ),
    max_size=12,
)


def _arrays(of: list[tuple[int, int]]) -> Keys:
    return np.array([k for k, _ in of], np.int64), np.array([c for _, c in of], np.int32)


def _keys_file(place: Path, number: int, of: list[tuple[int, int]]) -> Path:
    keys, checks = _arrays(of)
    path = place / f"part-{number}.parquet"
    pq.write_table(pa.table({"key": keys, "check": checks, "seq": range(len(of))}), path)
    return path


@settings(deadline=None)
@given(former=st.lists(pairs, max_size=3), wanted=pairs)
def test_searching_finds_what_looking_at_each_finds(
    former: list[list[tuple[int, int]]], wanted: list[tuple[int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        files = [_keys_file(Path(scratch), number, of) for number, of in enumerate(former)]
        everything = {pair for of in former for pair in of}

        for _ in ("put in order now", "as they were put in order before"):
            found = among(_arrays(wanted), files)
            assert found.tolist() == [pair in everything for pair in wanted]


def test_what_is_in_order_is_made_once_and_whole(tmp_path: Path) -> None:
    file = _keys_file(tmp_path, 1, [(3, 1), (2, 1), (1, 1)])
    among(_arrays([(1, 1)]), [file])
    made = ordered_beside(file).stat()
    among(_arrays([(2, 2)]), [file])

    assert ordered_beside(file).stat().st_mtime_ns == made.st_mtime_ns
    assert made.st_size == 3 * 12
    assert sorted(each.name for each in tmp_path.iterdir()) == ["_part-1.ordered", "part-1.parquet"]


def test_what_was_cut_short_is_put_in_order_again(tmp_path: Path) -> None:
    file = _keys_file(tmp_path, 1, [(3, 1), (2, 1), (1, 1)])
    among(_arrays([(1, 1)]), [file])
    os.truncate(ordered_beside(file), 20)

    assert among(_arrays([(1, 1), (3, 1), (3, 2)]), [file]).tolist() == [True, True, False]


def _add(archive: Path, first: int, ids: range) -> int:
    archive.mkdir(exist_ok=True)
    events = [message(number, ended(f"run-{number}", MOMENT)) for number in ids]
    return add_file(archive, as_table(events, first, [RECEIVED_NS] * len(events)), first)


@pytest.mark.usefixtures("only_events")
@pytest.mark.parametrize("rows_max", [known.ROWS_MAX, 0])
def test_what_was_told_in_an_earlier_run_is_a_repetition(
    ready: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(known, "ROWS_MAX", rows_max)
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    after = _add(archive, 1, range(30))
    taken(ready, Job(str(archive), tables))

    after = _add(archive, after, range(20, 40))
    run(ready, Job(str(archive), tables))

    assert require(tables).manifest.counts["duplicates"] == 10
    ids = rows(tables, "events").column("id").to_pylist()
    assert ids == [f"made-{n}" for n in range(40)]


@pytest.mark.usefixtures("only_event_tables")
def test_keys_in_order_go_along_when_parts_become_one(ready: SparkSession, tmp_path: Path) -> None:
    archive, tables = tmp_path / "archive", tmp_path / "tables"
    state, after, job = State(tables), 1, Job(str(archive), tables)
    for ids in (range(30), range(30, 40)):
        after = _add(archive, after, ids)
        taken(ready, job)
    first, second = state.partials()
    (kept,) = first.files("keys")
    number = ordered_beside(kept).stat().st_ino

    part = compacted(ready, state, [first, second], Sizes(2, 1))

    assert number in {each.stat().st_ino for each in (part.directory / "keys").glob("_*.ordered")}
    _add(archive, after, range(5, 35))
    run(ready, Job(str(archive), tables))
    assert require(tables).manifest.counts["duplicates"] == 30
