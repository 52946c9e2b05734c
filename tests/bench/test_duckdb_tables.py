"""DuckDB, which our pipeline is compared with, makes the same tables as the live monitor would."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tocsin.archive.catalog import Catalog
from tocsin.archive.record import to_events
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.event.instant import NS_PER_US
from tocsin.monitor.fold import ConceptRules, Row, RunMessage, merge_into, parse_message
from tocsin.monitor.run_messages import BadRunId, run_message
from tocsin.monitor.states import attempt_times, fault_of
from tocsin.monitor.views import RunFacts, activity_record, run_record
from tocsin.ontology import built_in
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan

BENCH = Path(__file__).parents[2] / "bench"
PLAN = Plan(12_000, seed=3, broken=0.002, duplicates=0.03, broken_files=True)


@dataclass(frozen=True)
class Made:
    archive: Path
    duckdb: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    place = tmp_path_factory.mktemp("peers")
    found = Made(place / "archive", place / "duckdb")
    synthesize(PLAN, found.archive, lambda rows: None)
    command = [sys.executable, str(BENCH / "pipeline_duckdb.py")]
    places = ["--archive", str(found.archive), "--tables", str(found.duckdb)]
    done = subprocess.run([*command, *places], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return found


def test_duckdb_says_of_runs_and_attempts_what_the_live_monitor_says(made: Made) -> None:
    live = _folded(made)
    (now_us,) = _query(made, "SELECT epoch_us(max(received)) FROM $events")[0]

    runs, attempts = _shown(live, now_us * NS_PER_US)

    reported_runs = "SELECT run, workflow, version, state, duration_s, known, progress FROM $runs"
    assert sorted(_query(made, reported_runs)) == sorted(runs)
    reported_attempts = (
        "SELECT run, id, attempt, state, activity, epoch_us(started), epoch_us(ended), "
        "duration_s, skewed, fault, settled_seq, use_CpuSeconds, use_MemoryPeak FROM $activities"
    )
    assert sorted(map(str, _query(made, reported_attempts))) == sorted(map(str, attempts))
    assert len({row[3] for row in attempts}) > 4  # a world in which nothing happens shows nothing


# The live monitor's way


@dataclass
class _Live:
    runs: dict[str, Row] = field(default_factory=dict)
    attempts: dict[str, dict[str, dict[int, Row]]] = field(default_factory=dict)


def _messages(made: Made) -> Iterator[RunMessage]:
    """Those that can be used: what was set aside is not for the monitor."""
    aside = {seq for (seq,) in _query(made, "SELECT seq FROM $quarantine WHERE seq IS NOT NULL")}
    kept: dict[int, tuple[Any, ...]] = {}
    for piece in Catalog(made.archive).pieces():
        table = duckdb.sql(
            f"SELECT * FROM read_parquet('{piece.path}', hive_partitioning = false) "
            "WHERE id IS NOT NULL AND source IS NOT NULL AND type IS NOT NULL "
            'AND received IS NOT NULL AND "at" IS NOT NULL'
        )
        for stored in to_events(table.to_arrow_table()):
            order = (stored.received_ns, stored.event.source, stored.event.id)
            if stored.seq not in kept or order < kept[stored.seq][0]:
                kept[stored.seq] = (order, stored)
    for seq, (_, stored) in kept.items():
        if seq in aside:
            continue
        try:
            message = run_message(stored, built_in())
        except BadRunId:
            continue
        if message is not None and not message.derived:
            yield message


def _folded(made: Made) -> _Live:
    live, reading = _Live(), ConceptRules(built_in())
    for message in _messages(made):
        said = parse_message(message, reading)
        if said is None:
            continue
        merge_into(live.runs.setdefault(said.run, {}), said.run_row)
        for (name, number), row in said.activities.items():
            attempts = live.attempts.setdefault(said.run, {}).setdefault(name, {})
            merge_into(attempts.setdefault(number, {}), row)
    return live


def _shown(live: _Live, now_ns: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    runs: list[tuple[Any, ...]] = []
    attempts: list[tuple[Any, ...]] = []
    for run, row in live.runs.items():
        activities = live.attempts.get(run, {})
        counts = Counter(attempt_times(each[max(each)]).state for each in activities.values())
        record = run_record(RunFacts(run, row, counts), now_ns, MonitorOptions().silence_s)
        shown = (record.workflow, record.version, record.state, record.duration_s)
        runs.append((run, *shown, record.activities.known, record.progress))
        for name, rows in activities.items():
            attempts += _shown_attempts(run, name, rows, record.state)
    return runs, attempts


def _shown_attempts(
    run: str, name: str, rows: dict[int, Row], run_is: str
) -> Iterator[tuple[Any, ...]]:
    types = [row["type"] for row in rows.values() if "type" in row]
    kind = str(max(types)[2]) if types else ""  # all attempts are of the type that was said last
    record = activity_record(run, name, rows, run_is, kind=kind)
    for each in (*record.tries, record):
        row = rows[each.attempt]
        times = attempt_times(row)
        fault = fault_of(row, kind) if times.state in ("failed", "retrying") else None
        use = (row.get("use.CpuSeconds"), row.get("use.MemoryPeak"))
        yield (
            *(run, name, each.attempt, each.state, kind or name),
            *(_us(times.started_ns), _us(times.ended_ns), times.duration_s, times.is_skewed),
            *(fault, row["state"][2] if "state" in row else None),
            *(None if amount is None else float(amount) for amount in use),
        )


def _us(moment_ns: int | None) -> int | None:
    return None if moment_ns is None else moment_ns // NS_PER_US


def _query(made: Made, statement: str) -> list[tuple[Any, ...]]:
    name = statement.partition("$")[2].split()[0].rstrip(")")
    files = str(made.duckdb / name / "*.parquet")
    return duckdb.sql(statement.replace(f"${name}", f"read_parquet('{files}')")).fetchall()
