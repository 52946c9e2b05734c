"""The time of one estimate for 2,000 tasks, before the start and at 25 and 50 % of a run.

    python bench/estimate.py [--quick] [--json FILE]

Twenty past runs of 1,000 to 3,000 tasks: samples go through three steps each, then everything is
merged and reported. `learn` is paid once a run, `estimate` each time somebody asks.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from pathlib import Path

import report
from tocsin.monitor.estimate import Done, PastRun, Plan, Planned, RunProgress, estimate, learn
from tocsin.monitor.evaluation.estimates import progress_at, with_times

SEED = 20_050_711
TASKS = 2_000
PAST_RUNS = 20
QUICK_PAST_RUNS = 8
REPEATS = 30
QUICK_REPEATS = 5
TARGET_MS = 50.0
STEPS = (("trim", 20.0), ("align", 60.0), ("count", 5.0))


def plan(tasks: int, dice: random.Random) -> Plan:
    """So many tasks: samples of three steps each, a merge and a report."""
    samples = (tasks - 2) // len(STEPS)
    planned = []
    for _ in range(samples):
        for step, (name, _) in enumerate(STEPS):
            above = (len(planned) - 1,) if step else ()
            size = int(dice.lognormvariate(20, 0.7)) if not step else 0
            planned.append(Planned(name, above, size))
    last = range(len(STEPS) - 1, len(planned), len(STEPS))
    planned.append(Planned("merge", tuple(last)))
    while len(planned) < tasks:
        planned.append(Planned("report", (len(planned) - 1,)))
    return Plan(tuple(planned), machines=4, cores=32)


def past_run(tasks: int, dice: random.Random) -> PastRun:
    made = plan(tasks, dice)
    typical = dict(STEPS) | {"merge": 100.0, "report": 20.0}
    speed = dice.lognormvariate(0, 0.2)
    done = {
        index: Done(typical[task.type] * speed * dice.lognormvariate(0, 0.3))
        for index, task in enumerate(made.tasks)
    }
    work_s = sum(task.runtime_s for task in done.values())
    return with_times(PastRun(made, work_s / 128 + 200, done))


def measure(past_runs: int, repeats: int) -> list[dict[str, object]]:
    dice = random.Random(SEED)
    sizes = [
        int(math.exp(dice.uniform(math.log(1_000), math.log(3_000)))) for _ in range(past_runs)
    ]
    past = [past_run(size, dice) for size in sizes]
    started = time.perf_counter()
    knowledge = learn(past)
    learnt_s = time.perf_counter() - started
    run = past_run(TASKS, dice)
    rows: list[dict[str, object]] = []
    for percent in (0, 25, 50):
        moment: RunProgress = progress_at(run, run.makespan_s * percent / 100)
        took_s = []
        for _ in range(repeats):
            started = time.perf_counter()
            said = estimate(knowledge, moment)
            took_s.append(time.perf_counter() - started)
        assert said is not None
        median_ms = statistics.median(took_s) * 1000
        rows.append(
            {
                "at": f"{percent} %",
                "tasks": TASKS,
                "past_runs": past_runs,
                "estimate_ms": round(median_ms, 1),
                "target_over_it": round(TARGET_MS / median_ms, 2),
                "learn_s": round(learnt_s, 2),
                "error": f"{said.total_s / run.makespan_s - 1:+.1%}",
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer past runs and repeats")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    rows = measure(
        QUICK_PAST_RUNS if options.quick else PAST_RUNS,
        QUICK_REPEATS if options.quick else REPEATS,
    )
    headers = {
        "at": "at",
        "tasks": "tasks",
        "past_runs": "past runs",
        "estimate_ms": "estimate ms",
        "target_over_it": "50 ms / it",
        "learn_s": "learn s",
        "error": "error",
    }
    report.table(list(headers.values()), [[row[name] for name in headers] for row in rows])
    if options.json:
        report.write("estimate", rows, options.json)


if __name__ == "__main__":
    main()
