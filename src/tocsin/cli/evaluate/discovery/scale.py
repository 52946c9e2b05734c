"""`tocsin evaluate discovery --scale`: what larger overlays cost, as tables, JSON and a plot."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from tocsin.cli.evaluate.discovery.growth_plot import draw_growth
from tocsin.cli.evaluate.discovery.plots import can_plot
from tocsin.cli.progress import Progress
from tocsin.cli.render import say, show, show_json, table
from tocsin.errors import BadSetting
from tocsin.sim.scale.growth import Row, Size, discovery_growth, routing_growth

GROWTH: Final = "growth.json"
FORMS: Final = ("tree", "star")
SIZES: Final = ((24, 3_000), (100, 3_000), (1_000, 300), (1_000, 3_000))
QUICK_SIZES: Final = ((24, 300), (100, 300))
KINDS: Final = (("resources", True), ("subscriptions", True), ("subscriptions", False))

RESOURCE_COLUMNS: Final = {
    "form": "form",
    "brokers": "brokers",
    "resources": "resources",
    "rows": "rows",
    "register_hops": "registered",
    "bytes_a_row": "bytes a row",
    "normal_requests": "asked",
    "normal_ms": "ms",
    "similarity_requests": "asked, shared",
    "similarity_ms": "ms, shared",
    "cut_messages": "link fails",
    "cut_ms": "ms",
    "return_messages": "returns",
    "return_ms": "ms",
    "standby_messages": "standby",
    "standby_ms": "ms",
}
SUBSCRIPTION_COLUMNS: Final = {
    "form": "form",
    "brokers": "brokers",
    "subscriptions": "subscriptions",
    "covering": "covering",
    "rows": "rows",
    "rows_max": "largest",
    "bytes_a_row": "bytes a row",
    "join_messages": "to join",
    "subscribe_messages": "subscribed",
    "report_messages": "reports",
    "subscribe_ms": "ms",
    "cut_messages": "link fails",
    "cut_ms": "ms",
    "return_messages": "returns",
    "return_ms": "ms",
    "standby_messages": "standby",
    "standby_ms": "ms",
}


def evaluate_scale(out: Path, arguments: Namespace) -> int:
    if arguments.jobs < 1:
        raise BadSetting(f"--jobs {arguments.jobs} is too few", remedy="Give 1 or more.")
    sizes = [Size(form, *each) for each in _sizes(arguments) for form in FORMS]
    report: dict[str, Any] = {"seed": arguments.seed, "resources": [], "subscriptions": []}
    # A process for each: what one has left free would be taken for the next one's.
    with (
        Progress("sizes", 3 * len(sizes)) as progress,
        ProcessPoolExecutor(
            arguments.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1
        ) as pool,
    ):
        under_way = [
            (kind[0], pool.submit(measure, size, arguments.seed, kind))
            for size in sizes
            for kind in KINDS
        ]
        for what, row in under_way:
            report[what].append(row.result())
            progress.advance()
            # What there is so far: the largest sizes take most of the time.
            (out / GROWTH).write_text(json.dumps(report, indent=1) + "\n")
    if can_plot():
        say(f"{draw_growth(out, report)} and {GROWTH} are in {out}")
    if arguments.json:
        show_json(report)
    else:
        _show("Resources, found by requests", RESOURCE_COLUMNS, report["resources"])
        _show("\nSubscriptions to events", SUBSCRIPTION_COLUMNS, report["subscriptions"])
    return 0


def measure(size: Size, seed: int, kind: tuple[str, bool]) -> Row:
    """One row of a table, in a process of its own."""
    what, covering = kind
    if what == "resources":
        return discovery_growth(size, seed, resident_bytes)
    return routing_growth(size, seed, resident_bytes, covering=covering)


def _sizes(arguments: Namespace) -> Sequence[tuple[int, int]]:
    return QUICK_SIZES if arguments.quick else SIZES


def resident_bytes() -> int:
    """What this process has in memory, where /proc says so; else 0."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _show(title: str, columns: dict[str, str], rows: Sequence[Row]) -> None:
    show(f"{title}\n")
    table(list(columns.values()), [[_cell(row[name]) for name in columns] for row in rows])


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
