"""What the pipeline's tables add to estimates, measured: python bench/estimate_tables.py RUNS.

Every run is estimated with the tables of all other runs of its application, beside so many of these
others, chosen by chance from a seed; and without the tables. The figures of docs/estimates.md.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tocsin.monitor.estimate import PastRun, estimate, learn
from tocsin.monitor.evaluation.estimates import progress_at, with_times
from tocsin.monitor.evaluation.recorded_runs import parse_run
from tocsin.monitor.history.tables import (
    DURATION,
    CostModel,
    LearnedTables,
    StatsRow,
    WorkflowTables,
)

RUNS_MIN = 10
OWN = (0, 1, 3, 9)
STAGES = (0.0, 0.25, 0.5)

Floats = NDArray[np.float64]


def as_heard(run: PastRun) -> PastRun:
    """With durations by the clock, as a broker hears them."""
    done = {
        index: replace(task, runtime_s=(task.ended_s or 0.0) - (task.started_s or 0.0))
        for index, task in with_times(run).done.items()
    }
    return replace(with_times(run), done=done)


def tables_of(runs: Sequence[PastRun]) -> WorkflowTables:
    """What the pipeline would make of these runs."""
    durations: dict[str, list[float]] = defaultdict(list)
    sizes: dict[str, list[int | None]] = defaultdict(list)
    having: dict[str, set[int]] = defaultdict(set)
    for number, run in enumerate(runs):
        for index, task in run.done.items():
            name = run.plan.tasks[index].type
            durations[name].append(task.runtime_s)
            sizes[name].append(task.in_bytes)
            having[name].add(number)
    stats, models = {}, {}
    for name, values in durations.items():
        stats["", name] = [_row(name, np.array(values), len(having[name]))]
        known = [size for size in sizes[name] if size is not None]
        if len(known) == len(values) and len(values) > 2 and len(set(known)) > 1:
            models["", name] = [_line(name, np.array(values), np.array(known, dtype=float))]
    return WorkflowTables(LearnedTables(1, 0, 1, stats, models, {}), "", 0)


def _row(name: str, values: Floats, runs: int) -> StatsRow:
    names = ("min_s", "p10_s", "p50_s", "p90_s", "p99_s", "max_s")
    quantiles = np.quantile(values, (0, 0.1, 0.5, 0.9, 0.99, 1)).tolist()
    return StatsRow(
        "",
        name,
        "",
        runs=runs,
        count=len(values),
        mean_s=float(values.mean()),
        stddev_s=float(values.std(ddof=1)) if len(values) > 1 else None,
        last_ended_ns=0,
        **dict(zip(names, quantiles, strict=True)),
    )


def _line(name: str, values: Floats, sizes: Floats) -> CostModel:
    """Least squares; errors as if each value had been left out."""
    scale = float(sizes.max())
    columns = np.column_stack([np.ones(len(sizes)), sizes / scale])
    inverse = np.linalg.pinv(columns.T @ columns)
    intercept, slope = inverse @ columns.T @ values
    leverage = np.einsum("ij,jk,ik->i", columns, inverse, columns)
    errors = (values - columns @ [intercept, slope]) / np.maximum(1 - leverage, 1e-9)
    return CostModel(
        "",
        name,
        "",
        DURATION,
        len(values),
        float(intercept),
        float(slope / scale),
        rmse=float(np.sqrt((errors**2).mean())),
        median_error=float(np.median(np.abs(errors) / np.maximum(values, 1e-9))),
        input_min=float(sizes.min()),
        input_max=scale,
        mean=float(values.mean()),
    )


def errors_of(runs: Sequence[PastRun], own: int, stage: float) -> tuple[list[float], list[float]]:
    """The errors of the total, without tables and with them."""
    without: list[float] = []
    with_tables: list[float] = []
    for number, run in enumerate(runs):
        others = [each for each in runs if each is not run]
        chosen = np.random.default_rng(number).permutation(len(others))[:own]
        known = learn([others[each] for each in sorted(chosen.tolist())])
        moment = progress_at(run, stage * run.makespan_s)
        for errors, tables in ((without, None), (with_tables, tables_of(others))):
            said = estimate(known, moment, tables)
            if said is not None:
                errors.append(abs(said.total_s / run.makespan_s - 1))
    return without, with_tables


def shown(errors: Iterable[Sequence[float]]) -> str:
    medians = [100 * median(each) for each in errors if each]
    return f"{median(medians):.1f}" if medians else "-"


def main(path: Path) -> None:
    applications: dict[str, list[PastRun]] = defaultdict(list)
    content = path.read_bytes()
    lines = gzip.decompress(content) if path.suffix == ".gz" else content
    for number, line in enumerate(lines.splitlines(), 1):
        recorded = parse_run(json.loads(line), f"line {number}")
        applications[recorded.application].append(as_heard(recorded.run))
    enough = [runs for runs in applications.values() if len(runs) >= RUNS_MIN]
    print("| past runs known | at 0 % | at 25 % | at 50 % |\n| --- | --- | --- | --- |")
    for own in OWN:
        cells = []
        for stage in STAGES:
            found = [errors_of(runs, own, stage) for runs in enough]
            cells.append(f"{shown(a for a, _ in found)}, {shown(b for _, b in found)}")
        print(f"| {own} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
