"""Tables on disk for tests, in the layout in which the pipeline publishes them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.tables.published import CURRENT, MANIFEST, SUCCESS, VERSIONS
from tocsin.tables.schemas import TABLES

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)

Rows = Sequence[Mapping[str, Any]] | pa.Table


def publish(
    directory: Path, tables: Mapping[str, Rows], counts: Mapping[str, int] = {}, **window: datetime
) -> Path:
    """Version 1 of these tables; those that are not named are there, and empty. `window` is their
    `since` and `until`."""
    version = directory / VERSIONS / "000001"
    facts = {}
    for name, schema in TABLES.items():
        rows = tables.get(name, [])
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([*rows], schema=schema)
        place = version / name
        place.mkdir(parents=True)
        path = place / "part-00000.parquet"
        pq.write_table(table, path, compression="zstd", row_group_size=100_000)
        (place / SUCCESS).touch()
        size = path.stat().st_size
        facts[name] = {"rows": table.num_rows, "bytes": size, "files": [path.name]}
        (directory / name).symlink_to(Path(CURRENT) / name)
    made = (NOW - timedelta(hours=3)).isoformat()
    manifest = {"version": 1, "made": made, "through": 48_213_377, "tables": facts}
    within = {name: moment.isoformat() for name, moment in window.items()}
    (version / MANIFEST).write_text(json.dumps({**manifest, "counts": dict(counts), **within}))
    (directory / CURRENT).symlink_to(Path(VERSIONS) / "000001")
    return directory
