"""The benchmark of queries for topics: each finds the same by its index and by a scan."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tocsin.drivers.topics.evaluators import Evaluators

BENCH = Path(__file__).parents[2] / "bench"
SIZE = 300


def test_each_query_finds_by_its_index_what_a_scan_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("saxonche")
    monkeypatch.syspath_prepend(str(BENCH))
    bench = importlib.import_module("topics_queries")
    monkeypatch.setattr(bench, "ROUNDS", 1)
    stored = bench.fill(tmp_path, SIZE)
    evaluators = Evaluators()

    rows = bench.measure(tmp_path, SIZE, evaluators)  # which compares what they find

    evaluators.close()
    assert stored["size"] == SIZE
    assert len(rows) == len(bench.queries(SIZE))
    assert all(row["found"] for row in rows if "ms" in row)
