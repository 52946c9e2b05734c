"""Runs the experiments, writes their files and shows the tables."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from tocsin.cli.evaluate.discovery import plots, records
from tocsin.cli.evaluate.discovery.processes import evaluate_processes
from tocsin.cli.evaluate.discovery.readings import read_series
from tocsin.cli.evaluate.discovery.scale import evaluate_scale
from tocsin.cli.progress import Progress
from tocsin.cli.render import say, show, show_json, table
from tocsin.errors import BadSetting
from tocsin.overlay.discovery.similarity import similarity
from tocsin.sim.discovery.experiment import Outcome, region_of
from tocsin.sim.discovery.figures import FULL, QUICK, Experiments, Scale, Series
from tocsin.sim.discovery.hosts import draw_host_requests
from tocsin.sim.discovery.network import MEASURED, PAPER
from tocsin.sim.discovery.summary import Row
from tocsin.sim.discovery.workload import REQUESTS_MIN, Pools, draw_pools, mean_matches

SEED_MAX = 2**63 - 1


def evaluate_discovery(arguments: Namespace) -> int:
    if not 0 <= arguments.seed <= SEED_MAX:
        raise BadSetting(f"--seed is {arguments.seed}", remedy="Give 0 or more.")
    out = Path(arguments.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(
            f"--out {out} cannot be made: {error.strerror}", remedy="Give a directory to write to."
        ) from None
    if arguments.scale:
        return evaluate_scale(out, arguments)
    if arguments.processes:
        return evaluate_processes(out, arguments)
    return _evaluate_figures(out, arguments)


def _evaluate_figures(out: Path, arguments: Namespace) -> int:
    series = read_series([Path(file) for file in arguments.hosts]) if arguments.hosts else None
    scale = QUICK if arguments.quick else FULL
    random = Random(arguments.seed)
    requests = max(scale.requests, REQUESTS_MIN)
    pools = draw_pools(random, resources=scale.resources, requests=requests)
    outcomes = _run_all(Experiments(pools, scale, arguments.seed, series))
    report = _report(out, outcomes, arguments.summary)
    report["seed"], report["quick"] = arguments.seed, arguments.quick
    report["workloads"] = _workloads(pools, scale, arguments.seed)
    if series:
        report["hosts"] = {"similarity": _host_similarity(series, scale, arguments.seed)}
    (out / "summary.json").write_text(json.dumps(report, indent=1) + "\n")
    _draw(out, report, arguments.seed)
    if arguments.json:
        show_json(report)
    else:
        _show(report)
    return 0


def _run_all(experiments: Experiments) -> list[Outcome]:
    settings = list(experiments.settings())
    outcomes: list[Outcome] = []
    with Progress("runs", len(settings)) as progress:
        for setting in settings:
            outcomes.append(experiments.run(setting))
            progress.advance()
    return outcomes


def _report(out: Path, outcomes: Sequence[Outcome], by: str) -> dict[str, Any]:
    """Writes the raw records and summarises what was written."""
    path = out / records.RECORDS
    records.write_records(path, [record for each in outcomes for record in each.records])
    runs = records.run_rows(outcomes)
    records.write_runs(out / records.RUNS, runs)
    if by == "auto":
        by = "spark" if records.can_use_spark() else "python"
    if by == "spark":
        rows = records.summarised_by_spark(path)
    else:
        rows = records.summarised_by_python(path)
    costs = {each.name: asdict(each) for each in (PAPER, MEASURED)}
    return {"summarised_by": by, "costs": costs, "rows": rows, "runs": runs}


def _workloads(pools: Pools, scale: Scale, seed: int) -> list[Row]:
    """What figure 7b shows of each workload."""
    found = []
    for percent in scale.similarities:
        requests = pools.requests(percent, Random(f"{seed} {percent} uniform uniform"))
        met, values = mean_matches(pools.resources, requests)
        found.append({"similarity": percent, "met": met, "found": values})
    return found


def _host_similarity(series: Series, scale: Scale, seed: int) -> float:
    requests = draw_host_requests(Random(f"{seed} 0 uniform uniform"), series, scale.requests)
    return similarity([region_of(each) for each in requests])


def _draw(out: Path, report: dict[str, Any], seed: int) -> None:
    if not plots.can_plot():
        say("no plots: matplotlib is not installed (pip install 'tocsin[bench]')")
        return
    drawn = plots.draw_all(out, report["rows"], report["runs"], report["workloads"], seed)
    say(f"{len(drawn)} plots, {records.RECORDS} and summary.json are in {out}")


def _show(report: dict[str, Any]) -> None:
    rows: list[Row] = report["rows"]
    show("Figure 7b: what a request of each workload matches, on average\n")
    cells = [[w["similarity"], f"{w['met']:.0f}", f"{w['found']:.1f}"] for w in report["workloads"]]
    table(["similarity %", "advertisements", "values"], cells)
    for figure, title in {**plots.TITLES, **_OTHERS}.items():
        chosen = [row for row in rows if row["figure"] == figure]
        if chosen:
            show(f"\n{title}\n")
            table(_HEADERS, [_cells(row) for row in chosen])
    show("\nFigure 13: messages between brokers\n")
    hops = plots.hops_by_model(rows, report["runs"])
    table(
        ["model", "one broker", "24 brokers"],
        [[model, f"{one:,}", f"{many:,}"] for model, (one, many) in hops.items()],
    )
    if "hosts" in report:
        show(f"\nSimilarity of the requests for hosts: {report['hosts']['similarity']:.0%}")


_OTHERS = {
    "12a": "Figure 12a: static, over the rate and over what is found",
    "12b": "Figure 12b: dynamic, over the rate and over what is found",
    "12c": "Figure 12c: static continuous, a row for each notice",
    "12d": "Figure 12d: dynamic continuous, a row for each notice",
    "14": "Figure 14: ways of delivery",
    "cache": "Shorter lives of cached answers",
    "speed": "Figure 9 with this broker's own speed",
    "star": "Figure 9 with the routers in a star",
    "deviation": "Figure 11 with a quarter and a sixteenth of the time as deviation",
    "hosts": "Requests for real hosts, by their readings",
}
_HEADERS = [
    "algorithm",
    "network",
    "placement",
    "time",
    "similar %",
    "found",
    "rate",
    "cache s",
    "ms",
    "last ms",
    "shared",
    "subs",
    "pubs alone",
    "pubs cached",
    "pubs packed",
    "ends",
    "matches",
    "look-ups",
]


def _cells(row: Row) -> list[object]:
    counts = [
        "subscription_hops",
        "publication_hops_alone",
        "publication_hops_cached",
        "publication_hops_packaged",
        "end_markers",
        "matching_operations",
        "covering_lookups",
    ]
    times = [row["completed_ms"], row["last_result_ms"]]
    return [
        row["algorithm"],
        row["topology"],
        row["placement"],
        row["time"],
        row["similarity"] or "",
        f"{row['results'] / row['requests']:.1f}",
        f"{row['rate']:g}",
        f"{row['cache_s']:g}",
        *("" if time is None else f"{time:,.1f}" for time in times),
        row["shared"],
        *(f"{row[name]:,}" for name in counts),
    ]
