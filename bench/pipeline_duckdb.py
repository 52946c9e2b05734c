"""The tables of the pipeline by DuckDB, from the archive's own Parquet: the peer of our Spark job.

    python bench/pipeline_duckdb.py --archive DIR --tables DIR

The SQL is in pipeline_sql/. The fold is made from the monitor's table of rules, as Spark's is; what
follows from it is written by hand from the live monitor's definition, so that it is a check too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Final
from zlib import crc32

import duckdb

import pipeline_fold_sql as fold
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.rules import ENDING, EXPECTED, PEAKS, SUMMED
from tocsin.monitor.states import (
    CLOCK_OFF_S_MIN,
    DELAY_S_MAX,
    HEARTBEAT_S_MAX,
    HEARTBEATS_MISSED_MAX,
    WORDS_CHARS_MAX,
    ZONE_SLACK_S,
    ZONE_STEP_S,
    ZONE_STEPS,
)
from tocsin.monitor.values import BYTES_MAX, ITEMS_MAX
from tocsin.tables.schemas import RUNS, TABLES, USE, USED
from tocsin.wire.api.run_views import ACTIVITY_STATES
from tocsin.wire.blackboard.normal import TYPE_PREFIX

SQL: Final = Path(__file__).parent / "pipeline_sql"
THREADS: Final = 2
MEMORY: Final = "16GB"  # with 12, it gave up at 50M events; the rest is for the disk's cache
NAME_CHARS_MAX: Final = 64 << 10  # of an id, a source, a type: no door takes more

BEFORE_MAX: Final = 10  # events that are shown with a failure
PAST_MAX: Final = 200  # runs from which is learned
PAST_ENOUGH: Final = 5
NAMES_MAX: Final = 100  # in a list of activities, or of changes
CHANGE_CHARS_MAX: Final = 300
TARGETS: Final = ("duration_s", "cpu_s", "memory_bytes", "read_bytes", "written_bytes")
_ADDED_UP: Final = tuple(name for name in USED if name.removeprefix(USE) in SUMMED | PEAKS)


def _columns(cells: dict[str, str], *, but: tuple[str, ...] = ()) -> str:
    return ",\n    ".join(
        f'{value} AS "{name}"' for name, value in cells.items() if name not in but
    )


def _of_state(entity: fold.Entity, number: str) -> dict[str, str]:
    return {
        f"{entity}_phase": fold.phase_in(number),
        f"{entity}_moment": fold.moment_in(number),
        f"{entity}_state": fold.state_in(number, entity),
        f"{entity}_seq": fold.seq_in(number),
    }


def _used_by_run() -> str:
    return ",\n    ".join(
        f'{"sum" if name.removeprefix(USE) in SUMMED else "max"}("{name}") AS "{name}"'
        for name in _ADDED_UP
    )


def _run_uses() -> str:
    return ",\n    ".join(
        f'coalesce(told."own_{name}", a."{name}") AS "{name}"'
        if name in _ADDED_UP
        else f'told."own_{name}" AS "{name}"'
        for name in USED
    )


def words() -> dict[str, str]:
    """What stands for the names with a dollar in the SQL."""
    return {
        "source": SOURCE,
        "message_type": TYPE_PREFIX,
        "name_max": str(NAME_CHARS_MAX),
        "order_at": fold.order_of('"at"'),
        "planned_at": fold.state_number(EXPECTED, '"at"', "activity", "planned"),
        "activity_cells": _columns(fold.message_cells("activity")),
        "activity_merged": _columns(fold.merged_cells("activity")),
        "run_cells": _columns(fold.message_cells("run")),
        "run_merged": _columns(fold.merged_cells("run")),
        **_of_state("run", "state"),
        **_of_state("activity", "state"),
        "activity_seq": fold.seq_in("a.state"),
        "unreadable": fold.UNREADABLE,
        "ending": str(ENDING),
        "now": "getvariable('now')",
        "silence_s": str(MonitorOptions().silence_s),
        "heartbeat_s_max": str(HEARTBEAT_S_MAX),
        "heartbeats_max": str(HEARTBEATS_MISSED_MAX),
        "zone_step_s": str(ZONE_STEP_S),
        "zone_slack_s": str(ZONE_SLACK_S),
        "delay_s_max": str(DELAY_S_MAX),
        "clock_off_s_min": str(CLOCK_OFF_S_MIN),
        "zone_steps_min": str(ZONE_STEPS.start),
        "zone_steps_max": str(ZONE_STEPS.stop - 1),
        "union_items_max": str(ITEMS_MAX),
        "union_bytes_max": str(BYTES_MAX),
        "fault_chars_max": str(WORDS_CHARS_MAX),
        "own_uses": ",\n    ".join(f'"{name}" AS "own_{name}"' for name in USED),
        "activity_uses": ",\n    ".join(f'a."{name}"' for name in USED),
        "state_counts": ",\n        ".join(
            f"count(*) FILTER (last AND state = '{each}') AS n_{each}" for each in ACTIVITY_STATES
        ),
        "filled_counts": ",\n        ".join(
            f"coalesce(a.n_{each}, 0) AS n_{each}" for each in ACTIVITY_STATES
        ),
        "used_by_run": _used_by_run(),
        "run_uses": _run_uses(),
        "load_type": "'http://www.gridforum.org/Performance/Events/UptimeCPULoad'",
        "cpu_type": "'urn:tocsin:host:1/CPUUsage'",
        "memory_type": "'urn:tocsin:host:1/MemoryUsage'",
        "disk_type": "'urn:tocsin:host:1/DiskIO'",
        **_counters(),
        "before_max": str(BEFORE_MAX),
        "past_max": str(PAST_MAX),
        "past_enough": str(PAST_ENOUGH),
        "names_max": str(NAMES_MAX),
        "change_chars_max": str(CHANGE_CHARS_MAX),
        **_models(),
        "run_columns": ", ".join(f'"{name}"' for name in RUNS.names),
    }


def _models() -> dict[str, str]:
    """A model of each target, all in one statement."""
    one = Template((SQL / "cost_model.sql").read_text())
    names = ("target", "target_moments", "target_lines", "target_left_out", "target_model")
    models = [
        one.substitute({name: name.replace("target", target) for name in names})
        for target in TARGETS
    ]
    return {
        "models": ", ".join(models),
        "all_models": " UNION ALL ".join(f"SELECT * FROM {each}_model" for each in TARGETS),
    }


def _counters() -> dict[str, str]:
    """Counters that begin at nought again when a broker does: their growth adds up."""
    grown, added = [], []
    for name in ("delivered", "failed_attempts", "dead", "dropped"):
        before = f"lag({name}) OVER in_time"
        grown.append(
            f"CASE WHEN {name} >= {before} THEN {name} - {before} ELSE {name} END AS more_{name}"
        )
        added.append(f"sum(more_{name}) AS {name}")
    return {"grown": ",\n        ".join(grown), "added": ", ".join(added)}


def connect(spill: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        f"SET threads = {THREADS}; SET memory_limit = '{MEMORY}'; SET TimeZone = 'UTC';"
        f"SET temp_directory = '{spill}'; SET preserve_insertion_order = false"
    )
    # These are called for each way of failing, and for each record that is set aside.
    connection.create_function(
        "fault_number", lambda text: crc32(text.encode(errors="replace")), ["VARCHAR"], "BIGINT"
    )
    connection.create_function(
        "readable", lambda data: data.decode(errors="replace"), ["BLOB"], "VARCHAR"
    )
    return connection


# Each table, and the steps that lead to it from those before.
STEPS: Final = {
    "quarantine": ("quarantine",),
    "events": ("events",),
    "activities": ("run_cells", "told_runs", "attempt_cells", "attempt_lists", "activities"),
    "runs": ("runs",),
    "activity_stats": ("activity_stats",),
    "cost_models": ("cost_models",),
    "estimates": ("estimates",),
    "failures": ("failures",),
    "evolution": ("evolution",),
    "host_usage": ("host_usage",),
    "activity_usage": ("activity_usage",),
    "deliveries": ("deliveries",),
    "discoveries": ("discoveries",),
}
KEPT_AS: Final = {"activities": "attempts"}


def make(archive: Path, tables: Path) -> Iterator[tuple[str, int]]:
    """Make every table; yields the name of each as it is written, and its rows."""
    connection = connect(tables / ".spill")
    said = words() | {"archive": str(archive.resolve())}

    def run(step: str) -> None:
        connection.execute(Template((SQL / f"{step}.sql").read_text()).substitute(said))

    run("macros")
    run("sources")
    for name, steps in STEPS.items():
        for step in steps:
            run(step)
        yield name, _written(connection, name, tables)


def _written(connection: duckdb.DuckDBPyConnection, name: str, tables: Path) -> int:
    columns = ", ".join(f'"{each}"' for each in TABLES[name].names)
    (tables / name).mkdir(parents=True)
    (count,) = connection.execute(
        f"COPY (SELECT {columns} FROM {KEPT_AS.get(name, name)}) "
        f"TO '{tables / name / 'part-0.parquet'}' (FORMAT parquet, COMPRESSION zstd)"
    ).fetchone() or (0,)
    return int(count)


def main() -> None:
    """Make the tables; print when each was written, by the wall clock, as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True, help="an empty or new directory")
    arguments = parser.parse_args()
    arguments.tables.mkdir(parents=True, exist_ok=True)
    _print("ready")
    for name, rows in make(arguments.archive, arguments.tables):
        _print(name, rows=rows)
    _print("done")


def _print(step: str, **more: object) -> None:
    print(json.dumps({"what": step, "at": time.time(), **more}), flush=True)


if __name__ == "__main__":
    main()
