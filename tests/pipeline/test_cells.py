"""What was folded is on disk as it was, however many of its cells one message told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tocsin.archive.parquet_reader import read_range
from tocsin.pipeline.fold.cells import CELLS, attempt_cells, read_attempts, write_cells
from tocsin.pipeline.fold.rules import HASH, cells_of, folded
from tocsin.pipeline.state import Partial, PartialFacts
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan


def test_cells_are_read_as_they_were_before_they_were_written(
    ready: SparkSession, tmp_path: Path
) -> None:
    synthesize(Plan(events=1_000, seed=5), tmp_path / "archive", lambda done: None)
    archive = pa.Table.from_batches(list(read_range(tmp_path / "archive", through=10_000)))
    before = folded(cells_of(ready.createDataFrame(archive), "activity"), "activity", 2).persist()

    write_cells(before, "activity", tmp_path / "attempts")
    written = read_attempts(ready, [Partial(tmp_path, PartialFacts(1, 1, None, {}, {}))])

    cells = attempt_cells(written)
    names = [name for name in before.columns if name != HASH]
    assert sorted(map(repr, cells.select(*names).collect())) == sorted(
        map(repr, before.select(*names).collect())
    )
    own = F.col(f"{CELLS}.host.seq")
    reported = written.where(F.col(f"{CELLS}.host").isNotNull())
    assert 0 < reported.where(own.isNull()).count() < reported.count(), "both kinds are among them"
