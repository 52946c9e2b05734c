"""The plot of brokers as processes: real times over what is found, and messages of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

PLOT: Final = "processes.png"
COLORS: Final = {"Normal": "#b5483a", "Similarity": "#2a7f62", "one broker": "#4a6fa5"}
KINDS: Final = {
    "subscriptions": "subscriptions",
    "publications": "publications",
    "end_markers": "end markers",
    "matching_operations": "matching",
}


def draw_processes(out: Path, report: dict[str, Any]) -> str:
    """The name of the file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    _times(left, report)
    _messages(right, report)
    for axes in (left, right):
        axes.title.set_size(9)
        axes.margins(y=0.35)  # for the legend
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7, loc="upper right", ncols=2)
    figure.savefig(out / PLOT, dpi=110)
    plt.close(figure)
    return PLOT


def _times(axes: Any, report: dict[str, Any]) -> None:
    for run, color in COLORS.items():
        rows = [row for row in report["times"] if row["run"] == run and row["found"] != "all"]
        found = [row["found"] for row in rows]
        for percentile, line, marker in (("p50", "-", "o"), ("p99", "--", "s")):
            axes.plot(
                found,
                [row[percentile] for row in rows],
                color=color,
                linestyle=line,
                marker=marker,
                markersize=4,
                label=f"{run}, {percentile}",
            )
    axes.set(title="time of a request, ms", xlabel="resources found")


def _messages(axes: Any, report: dict[str, Any]) -> None:
    """Bars of the processes, and on each a mark of the simulator."""
    runs = [run for run in COLORS if run in report["counts"]]
    for place, run in enumerate(runs):
        where = [number + 0.4 * place - 0.2 for number in range(len(KINDS))]
        counts, simulated = report["counts"][run], report["simulated"][run]
        heights = [counts[kind] for kind in KINDS]
        axes.bar(where, heights, 0.38, color=COLORS[run], label=f"{run}, processes")
        marks = [simulated[kind] for kind in KINDS]
        label = None if place else "simulated"
        axes.plot(where, marks, linestyle="", marker="_", markersize=14, color="black", label=label)
    axes.set_xticks(range(len(KINDS)), list(KINDS.values()), fontsize=8)
    axes.set(title=f"messages of {report['brokers']} brokers")
