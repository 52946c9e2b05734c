"""Tables as the pipeline publishes them, made by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.tables.schemas import TABLES

ENDED = datetime(2026, 6, 1, tzinfo=UTC)

Rows = Sequence[Mapping[str, Any]]


def stats(activity: str, *, workflow: str = "blast", version: str = "", **reported: Any) -> Any:
    """A row of activity_stats: 100 attempts, of which 2 failed, that took 8 to 12 s."""
    usual: dict[str, Any] = {
        "runs": 50,
        "count": 100,
        "failed": 2,
        "cancelled": 0,
        "mean_s": 10.0,
        "stddev_s": 1.0,
        "min_s": 8.0,
        "p10_s": 9.0,
        "p50_s": 10.0,
        "p90_s": 11.0,
        "p99_s": 11.9,
        "max_s": 12.0,
        "histogram": [
            {"low_s": 8.0, "high_s": 10.0, "count": 49},
            {"low_s": 10.0, "high_s": 12.0, "count": 49},
        ],
        "first_ended": ENDED - timedelta(days=100),
        "last_ended": ENDED,
    }
    return {"workflow": workflow, "activity": activity, "version": version, **usual, **reported}


def line(activity: str, *, workflow: str = "blast", version: str = "", **reported: Any) -> Any:
    """A row of cost_models: 1 s, and 1 s for each MB."""
    usual = {
        "target": "duration_s",
        "count": 98,
        "intercept": 1.0,
        "slope": 1e-6,
        "r2": 0.9,
        "rmse": 0.1,
        "median_error": 0.05,
        "input_min": 1e6,
        "input_max": 2e7,
        "mean": 10.0,
    }
    return {"workflow": workflow, "activity": activity, "version": version, **usual, **reported}


def publish_tables(
    directory: Path,
    version: int,
    activity_stats: Rows,
    cost_models: Rows = (),
    *,
    through: int = 0,
    made: datetime | None = None,
    **window: datetime,
) -> Path:
    """Write a version and let it stand; without `since` and `until`, as those before had it.
    Returns where it is."""
    place = directory / ".versions" / f"{version:06}"
    tables: dict[str, Any] = {}
    for name, rows in (("activity_stats", activity_stats), ("cost_models", cost_models)):
        (place / name).mkdir(parents=True)
        file = place / name / "part-0.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), TABLES[name]), file)
        (place / name / "_SUCCESS").touch()
        size = file.stat().st_size
        tables[name] = {"rows": len(rows), "bytes": size, "files": [file.name]}
    when = made or datetime.now(UTC)
    manifest = {
        "version": version,
        "made": when.isoformat(),
        "through": through,
        "tables": tables,
        **{name: moment.isoformat() for name, moment in window.items()},
    }
    (place / "_manifest.json").write_text(json.dumps(manifest))
    fresh = directory / "_fresh"
    fresh.symlink_to(Path(".versions") / place.name)
    os.replace(fresh, directory / "_current")
    return place
