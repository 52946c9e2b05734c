"""The plot of larger overlays: rows, messages, memory of covering and times, over the brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tocsin.sim.scale.growth import Row

GROWTH_PLOT = "growth.png"
MANY = 1_000  # entries
ON, OFF, TREE, STAR = "#2a7f62", "#b5483a", "-", "--"

Value = Callable[[Row], float]


def draw_growth(out: Path, report: dict[str, Any]) -> str:
    """The name of the file. A line for each form and number of entries; of few, with squares."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    resources, subscriptions = report["resources"], report["subscriptions"]
    _resources(panels[0], resources)
    _subscriptions(panels[1], subscriptions)
    for axes in panels.flat:
        axes.set(xlabel="brokers", xscale="log", yscale="log")
        axes.title.set_size(9)
        axes.legend(fontsize=7)
    figure.savefig(out / GROWTH_PLOT, dpi=110)
    plt.close(figure)
    return GROWTH_PLOT


def _resources(panels: Sequence[Any], rows: Sequence[Row]) -> None:
    left, middle, right = panels
    for form, style in (("tree", TREE), ("star", STAR)):
        for entries in sorted({row["resources"] for row in rows}):
            mine = _of(rows, form=form, resources=entries)
            label = f"{form}, {entries:,} resources"
            _line(left, mine, lambda row: row["register_hops"], "#4a6fa5", style, label)
            _line(middle, mine, lambda row: row["normal_requests"], OFF, style, f"{label}, Normal")
            shared = f"{label}, Similarity"
            _line(middle, mine, lambda row: row["similarity_requests"], ON, style, shared)
            _line(right, mine, lambda row: row["cut_ms"], "#4a6fa5", style, f"{label}: link fails")
            _line(right, mine, lambda row: row["return_ms"], "#c9a227", style, f"{label}: returns")
    left.set(title="messages to register all resources")
    middle.set(title="messages between brokers for one request")
    right.set(title="resources: ms until tables are right")


def _subscriptions(panels: Sequence[Any], rows: Sequence[Row]) -> None:
    left, middle, right = panels
    for form, style in (("tree", TREE), ("star", STAR)):
        for covering, color in ((True, ON), (False, OFF)):
            for entries in sorted({row["subscriptions"] for row in rows}):
                mine = _of(rows, form=form, subscriptions=entries, covering=covering)
                how = "covering" if covering else "without"
                label = f"{form}, {entries:,}, {how}"
                _line(left, mine, lambda row: row["rows"] / row["brokers"], color, style, label)
                _line(middle, mine, lambda row: row["subscribe_messages"], color, style, label)
                _line(right, mine, lambda row: row["return_ms"], color, style, label)
    left.set(title="subscriptions: table rows a broker")
    middle.set(title="subscriptions: messages to make all of them")
    right.set(title="subscriptions: ms until tables are right, link returns")


def _of(rows: Sequence[Row], **chosen: object) -> list[Row]:
    found = [row for row in rows if all(row[name] == value for name, value in chosen.items())]
    return sorted(found, key=lambda row: row["brokers"])


def _line(axes: Any, rows: Sequence[Row], value: Value, color: str, style: str, label: str) -> None:
    if rows:
        xs = [row["brokers"] for row in rows]
        ys = [value(row) for row in rows]
        entries = rows[0].get("resources", 0) or rows[0].get("subscriptions", 0)
        marker = "o" if entries >= MANY else "s"
        axes.plot(xs, ys, color=color, linestyle=style, marker=marker, markersize=4, label=label)
