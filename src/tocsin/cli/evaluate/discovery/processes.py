"""`tocsin evaluate discovery --processes`: real times, and the counts of the simulator again."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.cli.evaluate.discovery.overlay_processes import OverlayProcesses, overlay_of
from tocsin.cli.evaluate.discovery.plots import can_plot
from tocsin.cli.evaluate.discovery.processes_plot import draw_processes
from tocsin.cli.progress import Progress
from tocsin.cli.render import say, show, show_json, table
from tocsin.errors import NothingArrived, SomeFailed
from tocsin.sim.discovery.experiment import NORMAL, SIMILARITY
from tocsin.sim.discovery.sequence import (
    ALGORITHMS,
    CACHE_S,
    FULL_SIZES,
    QUICK_SIZES,
    REGISTRATION,
    Answer,
    Phase,
    Plan,
    Sizes,
    at_one_broker,
    counted_since,
    differences,
    draw_plan,
    in_total,
    simulate,
    words_of,
)
from tocsin.sim.discovery.workload import TAGS

REPORT: Final = "processes.json"
TIMES: Final = "processes.parquet"
CENTRAL: Final = "one broker"
GROUPS: Final = (0, 1, 15, 30, 60)  # how many resources are found, from so many on
WARM_UP: Final = f"{TAGS[0]} >= 0"
SHOWN_MAX: Final = 5  # differences that an error names

Advance = Callable[[], None]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What brokers that are processes counted, and what requests took, by algorithm."""

    phases: list[Phase]
    times_ms: dict[str, list[float]]  # of each request
    processor_s: dict[str, float]  # of all brokers, for all requests


def evaluate_processes(out: Path, arguments: Namespace) -> int:
    report = measure_processes(out, QUICK_SIZES if arguments.quick else FULL_SIZES, arguments.seed)
    if arguments.json:
        show_json(report)
    else:
        _show(report)
    if unequal := report["differences"]:
        named = "; ".join(unequal[:SHOWN_MAX])
        raise SomeFailed(
            f"{_differ(len(unequal))} from what the simulator has: {named}",
            remedy=f"All are in {out / REPORT}. Please report this.",
        )
    return 0


def _differ(count: int) -> str:
    return "1 count differs" if count == 1 else f"{count:,} counts differ"


def measure_processes(out: Path, sizes: Sizes, seed: int) -> dict[str, Any]:
    """Carry out one plan by processes and in the simulator; writes and returns what was found."""
    plan = draw_plan(sizes, seed)
    alone = at_one_broker(plan)
    steps = len(plan.topology.brokers) + 1
    steps += 2 * len(plan.resources) + (len(ALGORITHMS) + 1) * len(plan.asked)
    with Progress("brokers, resources and requests", steps) as progress:
        many = _carry_out(plan, ALGORITHMS, progress.advance)
        one = _carry_out(alone, (NORMAL,), progress.advance)
    expected = simulate(plan)
    unequal = differences(expected, many.phases)
    unequal += differences(simulate(alone)[: len(one.phases)], one.phases)
    records = _records(plan, many, one)
    pq.write_table(pa.Table.from_pylist(records), out / TIMES, compression="zstd")
    report = {
        "seed": seed,
        "sizes": asdict(sizes),
        "brokers": len(plan.topology.brokers),
        "counts": {each.name: in_total(each.counts) for each in many.phases},
        "simulated": {each.name: in_total(each.counts) for each in expected},
        "differences": unequal,
        "shared": {each.name: sum(a.shared for a in each.answers) for each in many.phases[1:]},
        "processor_ms": {
            name: 1e3 * taken_s / len(plan.asked)
            for name, taken_s in (*many.processor_s.items(), (CENTRAL, one.processor_s[NORMAL]))
        },
        "times": _summarised(records),
    }
    (out / REPORT).write_text(json.dumps(report, indent=1) + "\n")
    if can_plot():
        say(f"{draw_processes(out, report)}, {TIMES} and {REPORT} are in {out}")
    return report


def _carry_out(plan: Plan, algorithms: Sequence[str], advance: Advance) -> Measured:
    with overlay_of(plan.topology, advance) as overlay:
        before = overlay.counts()
        for resource, broker in plan.resources:
            overlay.clients[broker].register(
                resource.name,
                words_of(resource.advertised),
                model="dynamic",
                attributes=resource.values,
                lease_s=None,
            )
            advance()
        overlay.wait_for_resources(len(plan.resources))
        after = overlay.counts()
        found = Measured([Phase(REGISTRATION, (), counted_since(before, after))], {}, {})
        _warm_up(overlay, plan)
        for algorithm in algorithms:
            overlay.use({"similarity": algorithm == SIMILARITY, "cache_expiry_s": CACHE_S})
            before, begin_s = overlay.counts(), overlay.processor_s()
            answers, found.times_ms[algorithm] = _ask_all(overlay, plan, advance)
            found.processor_s[algorithm] = overlay.processor_s() - begin_s
            counts = counted_since(before, overlay.counts())
            found.phases.append(Phase(algorithm, answers, counts))
        return found


def _warm_up(overlay: OverlayProcesses, plan: Plan) -> None:
    """One request at each broker that goes to all, neither counted nor shared.

    The first request of a broker's life loads and compiles what all others use.
    """
    overlay.use({"similarity": False, "cache_expiry_s": CACHE_S})
    for broker in plan.topology.edges:
        overlay.clients[broker].find(WARM_UP, model="dynamic", max_age_s=0)


def _ask_all(
    overlay: OverlayProcesses, plan: Plan, advance: Advance
) -> tuple[tuple[Answer, ...], list[float]]:
    """One after the other, each when the one before is answered."""
    answers, times_ms = [], []
    for each in plan.asked:
        words = words_of(each.bounds)
        begin_ns = time.perf_counter_ns()
        answer = overlay.clients[each.broker].find(words, model="dynamic")
        times_ms.append((time.perf_counter_ns() - begin_ns) / 1e6)
        if answer.incomplete:
            raise NothingArrived(
                f"the answer to {words!r} is incomplete: {answer.incomplete}",
                remedy="Try again when this machine has less to do.",
            )
        answers.append(Answer(len(answer.resources), answer.messages, answer.shared))
        advance()
    return tuple(answers), times_ms


def _records(plan: Plan, many: Measured, one: Measured) -> list[Row]:
    """One row a request of a run."""
    runs = [(phase, many.times_ms[phase.name], phase.name) for phase in many.phases[1:]]
    runs += [(phase, one.times_ms[phase.name], CENTRAL) for phase in one.phases[1:]]
    return [
        {"run": name, "request": each.request_id, "broker": each.broker, **asdict(answer), "ms": ms}
        for phase, times_ms, name in runs
        for each, answer, ms in zip(plan.asked, phase.answers, times_ms, strict=True)
    ]


def _summarised(records: Sequence[Row]) -> list[Row]:
    """p50 and p99 of each run, over how many resources were found, and of all requests."""
    ends = (*GROUPS[1:], None)
    parts = [("all", 0, None), *((_group(*ends), *ends) for ends in zip(GROUPS, ends, strict=True))]
    rows = []
    for name, low, high in parts:
        for run in (*ALGORITHMS, CENTRAL):
            times = sorted(
                each["ms"]
                for each in records
                if each["run"] == run
                and low <= each["found"]
                and (not high or each["found"] < high)
            )
            if times:
                p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
                rows.append(
                    {"found": name, "run": run, "requests": len(times), "p50": p50, "p99": p99}
                )
    return rows


def _group(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more"
    return str(low) if high == low + 1 else f"{low} to {high - 1}"


def _show(report: dict[str, Any]) -> None:
    show(f"{report['brokers']} brokers as processes, and in the simulator: messages of all\n")
    rows = [
        [phase, name, f"{count:,}", f"{report['simulated'][phase][name]:,}"]
        for phase, counts in report["counts"].items()
        for name, count in counts.items()
        if count or report["simulated"][phase][name]
    ]
    table(["phase", "count", "processes", "simulated"], rows)
    show("\nProcessor time of all brokers for a request, ms\n")
    table(["run", "ms"], [[run, f"{ms:.1f}"] for run, ms in report["processor_ms"].items()])
    show("\nTime of a request for its client, ms, over how many resources it finds\n")
    table(
        ["found", "run", "requests", "p50", "p99"],
        [
            [row["found"], row["run"], row["requests"], f"{row['p50']:.1f}", f"{row['p99']:.1f}"]
            for row in report["times"]
        ],
    )
