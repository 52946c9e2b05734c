"""Runs to estimate: recorded from Snakemake with true times, and made up from a seed."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from tocsin.cli.evaluate.recorded_log import APPLICATION
from tocsin.cli.evaluate.runs_file import read_cases
from tocsin.monitor.estimate import Done, PastRun, Plan, Planned
from tocsin.monitor.evaluation.estimates import Case, with_times

HERE = Path(__file__).parent
SNAKEMAKE_LOGS = sorted((HERE.parents[1] / "recordings/snakemake_repeats").glob("*.jsonl.gz"))
SHARED_RUNS = HERE.parents[3] / "shared/data/workflows/instances/runs.jsonl.gz"


@cache
def snakemake_cases() -> tuple[Case, ...]:
    """Eight runs of one workflow, 27 to 107 jobs on two cores of a machine that others used too.

    They are what a broker hears of them: no size of any file is in these logs.
    """
    found, _ = read_cases(SNAKEMAKE_LOGS)
    return tuple(found[APPLICATION])


def snakemake_runs() -> list[PastRun]:
    return [case.run for case in snakemake_cases()]


def plan(samples: int, *, cores: int = 4, sample_bytes: int = 1_000_000, version: str = "") -> Plan:
    """Each sample is trimmed and aligned, then all are merged."""
    tasks: list[Planned] = []
    for _ in range(samples):
        tasks.append(Planned("trim", (), sample_bytes, version))
        tasks.append(Planned("align", (len(tasks) - 1,), 0, version))
    tasks.append(Planned("merge", tuple(range(1, 2 * samples, 2)), 0, version))
    return Plan(tuple(tasks), cores=cores)


def run(seed: int, samples: int, *, speed: float = 1.0, **options: int | str) -> PastRun:
    """A run with times: trim takes 5 s, align 20 s, merge 3 s a sample, each a little by chance."""
    dice = random.Random(seed)
    made = plan(samples, **options)  # type: ignore[arg-type]
    size = (made.tasks[0].external_bytes or 0) / 1_000_000
    typical = {"trim": 5.0 * size, "align": 20.0 * size, "merge": 3.0 * samples}
    done = {
        index: Done(typical[task.type] * speed * dice.lognormvariate(0, 0.1))
        for index, task in enumerate(made.tasks)
    }
    waves = -(-samples // made.cores)
    makespan_s = speed * (25.0 * size * waves + 3.0 * samples) * dice.lognormvariate(0, 0.05)
    return with_times(PastRun(made, makespan_s, done, f"seed {seed}"))
