"""Every benchmark, one after the other: tables on the screen, JSON and plots in out/bench.

python bench/all.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "bench"

# Name, what it says, and whether it draws a plot of its own.
BENCHMARKS = (
    ("startup", "Starting a command", False),
    ("ingest", "Durable ingest", False),
    ("fanout", "Fan-out to 100 webhooks", False),
    ("blackboard", "The blackboard, end to end", False),
    ("discovery", "Resource discovery", False),
    ("discovery_tcp", "Resource discovery between 24 processes", False),
    ("alone", "The overlay at a broker without neighbours", False),
    ("access", "Deciding who may do what", False),
    ("topics_queries", "Queries for topics", False),
    ("figures_004", "The blackboard's paper, figures 9 to 11", True),
    ("tracking", "Tracking a workflow of 10,000 activities", False),
    ("estimate", "An estimate for 2,000 tasks", False),
    ("store", "The log alone", False),
    ("matching", "Matching", True),
    ("mediation", "Mediation between Web-services specifications", True),
    ("xpath", "XPath filters", False),
    ("gma_codec", "The producer/consumer codec", True),
    ("gma_flow", "Performance events, end to end, and 1,000 hosts", False),
    ("source", "The Spark source beside Spark's own", False),
    ("pipeline", "The pipeline's tables beside DuckDB", False),
    ("stream", "The pipeline as a stream, and the age of its answers", False),
    ("batches", "A batch of a stream beside the years before it", False),
)

# Ratios that have a target: where they stand in the JSON, and what they must reach.
RATIOS = (
    ("durable ingest / bare SQLite loop", "ingest", ("batched_over_limit",), 0.5, True),
    (
        "POSTs per CPU-s / Starlette storing nothing",
        "ingest",
        ("single_over_starlette_per_cpu_s",),
        1.5,
        True,
    ),
    ("webhook POSTs per CPU-s / aiohttp", "fanout", ("broker_over_aiohttp",), 8.0, True),
    ("webhook POSTs per CPU-s / bare uvloop", "fanout", ("broker_over_bare",), 0.4, True),
    ("blackboard, durable / the paper's 1,600/s", "blackboard", (0, "times_the_paper"), 30.0, True),
    *(
        (f"{label} / ClassAds'", "discovery", ("over_class_ads", row, "over_match"), 1_000.0, True)
        for row, label in enumerate(
            f"resources x requests/s, {size} resources, {kind}"
            for size in ("1,000", "10,000", "100,000")
            for kind in ("few", "share")
        )
    ),
    ("ingest and fan-out per CPU-s, linked / not", "alone", ("on_over_off_all",), 0.97, True),
    ("ingest per CPU-s, rules / open", "access", ("decision_over_open_all",), 0.97, True),
    ("the decision / all that a publish costs", "access", ("decision_share_max",), 0.03, False),
    (
        "indexed queries for topics, 100,000 / 1,000 kept",
        "topics_queries",
        ("growth_median",),
        1.5,
        False,
    ),
    (
        "a full scan / an indexed query, at least",
        "topics_queries",
        ("scan_over_indexed_least",),
        100.0,
        True,
    ),
    (
        "50 ms / an estimate for 2,000 tasks",
        "estimate",
        (1, "target_over_it"),
        1.0,
        True,
    ),
    (
        "SOAP in, WS-Eventing out, per CPU-s / CloudEvents",
        "mediation",
        ("fanout", "broker_over_ready_made"),
        0.5,
        True,
    ),
    ("SOAP messages read per CPU-s / 20,000", "mediation", ("parse", "of_target"), 1.0, True),
    ("performance events decoded / bare lxml walk", "gma_codec", ("decode_over_lxml",), 0.8, True),
    ("... encoded / lxml's tree builder", "gma_codec", ("encode_over_lxml",), 3.0, True),
    ("... routed / decoded", "gma_codec", ("route_over_decode",), 1.5, True),
    ("rows/s of format(tocsin) / Spark's Parquet source", "source", ("ratio_min",), 0.8, True),
    ("0.2 s / a poll of 20,000 files", "source", ("poll_target_over_it",), 1.0, True),
    (
        "all tables of 10M events / DuckDB's",
        "pipeline",
        ("sizes", 1, "spark_over_duckdb"),
        5.0,
        False,
    ),
    ("... of 50M events", "pipeline", ("sizes", 2, "spark_over_duckdb"), 4.0, False),
    (
        "`tocsin pub --help` / bare interpreter",
        "startup",
        ("ratio", "tocsin pub --help"),
        6.0,
        False,
    ),
)


def plot(rows: list[tuple[str, float, float, bool]], path: Path) -> None:
    """Each ratio as a share of its target, on a log scale: right of the line is better."""
    figure, axes = plt.subplots(figsize=(9, 0.6 * len(rows) + 1.4), layout="constrained")
    for place, (name, ratio, target, more_is_better) in enumerate(reversed(rows)):
        share = ratio / target if more_is_better else target / ratio
        axes.barh(place, share, color="#2a7f62" if share >= 1 else "#b5483a", height=0.6)
        bound = "at least" if more_is_better else "at most"
        axes.text(
            max(share, 1) * 1.03,
            place,
            f"{ratio:.2f} ({bound} {target:g})",
            va="center",
            fontsize=9,
        )
        axes.text(
            0.012,
            place,
            name,
            va="center",
            fontsize=9,
            color="white",
            transform=axes.get_yaxis_transform(),
        )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.05, 30)
    axes.set_yticks([])
    axes.set_xlabel("measured, as a multiple of the target")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="*", help="only these")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    for name, title, draws in BENCHMARKS:
        if arguments.names and name not in arguments.names:
            continue
        print(f"\n{title} (python bench/{name}.py)\n")
        command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(OUT / f"{name}.json")]
        command += ["--quick"] if arguments.quick else []
        command += ["--plot", str(OUT / f"{name}.png")] if draws else []
        if subprocess.run(command).returncode:
            failed.append(name)
    # What failed may have left figures of another day.
    ratios = [_ratio(*ratio) for ratio in RATIOS if ratio[1] not in failed]
    rows = [row for row in ratios if row is not None]
    if rows:
        plot(rows, OUT / "ratios.png")
    print(f"\nJSON and plots: {OUT.relative_to(HERE.parent)}")
    for name in failed:
        print(f"FAILED: python bench/{name}.py")
    return 1 if failed else 0


def _ratio(
    label: str, name: str, where: tuple[str | int, ...], target: float, more_is_better: bool
) -> tuple[str, float, float, bool] | None:
    path = OUT / f"{name}.json"
    if not path.exists():
        return None
    value = json.loads(path.read_text())["results"]
    try:
        for step in where:
            value = value[step]
    except IndexError:
        return None  # a short run leaves the larger sizes out
    return label, float(value), target, more_is_better


if __name__ == "__main__":
    sys.exit(main())
