"""The figures of paper 001, section 6, drawn again from a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tocsin.event.instant import NS_PER_S
from tocsin.sim.discovery.distribution import balanced, gaussian_in_time, geometric, zipf_in_space
from tocsin.sim.discovery.experiment import SETTING_COLUMNS
from tocsin.sim.discovery.summary import Row
from tocsin.sim.discovery.topology import path_topology

STYLES = {
    ("Normal", "balanced"): ("#b5483a", "-", "o"),
    ("Normal", "geometric"): ("#b5483a", "--", "s"),
    ("Similarity", "balanced"): ("#2a7f62", "-", "o"),
    ("Similarity", "geometric"): ("#2a7f62", "--", "s"),
}
COUNTINGS = (
    ("publication_hops_alone", "each result a message"),
    ("publication_hops_cached", "packages from caches only"),
    ("publication_hops_packaged", "packages everywhere"),
)
TITLES = {
    "9": "Figure 9: uniform in space, uniform in time",
    "10": "Figure 10: Zipf in space, uniform in time",
    "11": "Figure 11: uniform in space, Gaussian in time",
}
DEVIATIONS = (1 / 4, 1 / 8, 1 / 16)


def can_plot() -> bool:
    """Whether matplotlib is here."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw_all(
    out: Path, rows: Sequence[Row], runs: Sequence[Row], workloads: Sequence[Row], seed: int
) -> list[Path]:
    """Every figure for which there are rows; returns the files."""
    import matplotlib

    matplotlib.use("Agg")
    drawn = [_figure_7(out, workloads), _figure_8(out, seed)]
    drawn += [_metrics(out, figure, rows) for figure in TITLES]
    drawn += [_figure_12(out, rows), _figure_13(out, rows, runs)]
    drawn.append(_figure_14(out, rows, runs))
    drawn.append(_cache(out, rows))
    return drawn


def _page(columns: int, *, lines: int = 1) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(
        lines, columns, figsize=(3.9 * columns, 3.4 * lines), layout="constrained", squeeze=False
    )


def _save(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _figure_7(out: Path, workloads: Sequence[Row]) -> Path:
    figure, ((left, right),) = _page(2)
    edges = path_topology().edges
    for name, place in (("balanced", balanced), ("geometric", geometric)):
        counts = Counter(place(1_000, edges))
        left.plot(range(1, 21), [counts[edge] for edge in edges], marker=".", label=name)
    left.set(title="7a: resources at each broker", xlabel="broker", ylabel="resources")
    similarity = [row["similarity"] for row in workloads]
    right.plot(similarity, [row["met"] for row in workloads], marker="o", label="advertisements")
    right.plot(similarity, [row["found"] for row in workloads], marker="s", label="values")
    right.set(
        title="7b: matched by a request", xlabel="similarity, %", ylabel="mean", ylim=(0, None)
    )
    for axes in (left, right):
        axes.legend()
    return _save(figure, out / "figure-7.png")


def _figure_8(out: Path, seed: int) -> Path:
    figure, ((left, right),) = _page(2)
    for deviation in DEVIATIONS:
        times = gaussian_in_time(1_000, 100.0, Random(seed), deviation=deviation)
        counts = Counter(each // (5 * NS_PER_S) for each in times)
        seconds = range(0, 100, 5)
        label = f"deviation {100 * deviation:g} s"
        left.plot(seconds, [counts[each // 5] for each in seconds], marker=".", label=label)
    left.set(title="8a: requests in 5 s", xlabel="second", ylabel="requests")
    left.legend(fontsize=7)
    places = Counter(zipf_in_space(1_000, path_topology().edges, Random(seed)))
    right.bar(range(1, len(places) + 1), sorted(places.values(), reverse=True), color="#4a6fa5")
    right.set(title="8b: requests at each broker", xlabel="broker, by rank", ylabel="requests")
    return _save(figure, out / "figure-8.png")


def _metrics(out: Path, number: str, rows: Sequence[Row]) -> Path:
    """The four measures over similarity; publications in the three countings."""
    figure, ((time, subs, matches), pubs) = _page(3, lines=2)
    figure.suptitle(TITLES[number])
    chosen = [row for row in rows if row["figure"] == number]
    _over_similarity(time, chosen, "completed_ms", "time to completion, ms")
    _over_similarity(subs, chosen, "subscription_hops", "subscription messages")
    _over_similarity(matches, chosen, "matching_operations", "matching operations")
    for axes, (column, title) in zip(pubs, COUNTINGS, strict=True):
        _over_similarity(axes, chosen, column, f"publications: {title}")
    time.legend(fontsize=7)
    return _save(figure, out / f"figure-{number}.png")


def _over_similarity(axes: Any, rows: Iterable[Row], column: str, title: str) -> None:
    for (algorithm, placement), (color, line, marker) in STYLES.items():
        chosen = [r for r in rows if (r["algorithm"], r["placement"]) == (algorithm, placement)]
        chosen.sort(key=lambda row: row["similarity"])
        axes.plot(
            [row["similarity"] for row in chosen],
            [row[column] for row in chosen],
            color=color,
            linestyle=line,
            marker=marker,
            markersize=4,
            label=f"{algorithm}, {placement}",
        )
    axes.set(title=title, xlabel="similarity, %", ylim=(0, None))
    axes.title.set_size(9)


def _figure_12(out: Path, rows: Sequence[Row]) -> Path:
    """Above over the rate, which decides; below as the paper has it, over the matches."""
    figure, (above, below) = _page(4, lines=2)
    figure.suptitle("Figure 12: mean time, one broker and 24")
    names = ("static", "dynamic", "static continuous", "dynamic continuous")
    for axes, letter, name in zip(above, "abcd", names, strict=True):
        chosen = [row for row in rows if row["figure"] == f"12{letter}" and not row["matches"]]
        _lines(axes, chosen, "rate")
        axes.set(title=f"12{letter}: {name}", xlabel="a second", ylabel="ms", yscale="log")
    of_matches = [row for row in rows if row["matches"]]
    rates = sorted({row["rate"] for row in of_matches})
    panels = [
        (f, name, rate) for f, name in (("12a", names[0]), ("12b", names[1])) for rate in rates
    ]
    for axes, (number, name, rate) in zip(below, panels, strict=True):
        chosen = [row for row in of_matches if (row["figure"], row["rate"]) == (number, rate)]
        _lines(axes, chosen, "matches")
        title = f"{number}: {name}, {rate:g} requests a second"
        axes.set(title=title, xlabel="resources found", ylabel="ms", xscale="log", yscale="log")
        axes.xaxis.set_minor_formatter("")  # they overlap
        axes.title.set_size(9)
    for axes in figure.axes:
        axes.legend(fontsize=7)
    return _save(figure, out / "figure-12.png")


def _lines(axes: Any, rows: Sequence[Row], over: str) -> None:
    for topology, algorithm in sorted({(row["topology"], row["algorithm"]) for row in rows}):
        chosen = [r for r in rows if (r["topology"], r["algorithm"]) == (topology, algorithm)]
        chosen.sort(key=lambda row: row[over])
        label = "one broker" if topology == "central" else f"24 brokers, {algorithm}"
        color = (
            STYLES.get((algorithm, "balanced"), ("",))[0] if topology != "central" else "#4a6fa5"
        )
        times = [row["completed_ms"] for row in chosen]
        found = [row["results"] / row["requests"] for row in chosen]
        axes.plot(
            found if over == "matches" else [row[over] for row in chosen],
            times,
            marker="o",
            color=color,
            label=label,
        )


def _figure_13(out: Path, rows: Sequence[Row], runs: Sequence[Row]) -> Path:
    figure, ((axes,),) = _page(1)
    hops = hops_by_model(rows, runs)
    for place, (central, spread) in enumerate(hops.values()):
        axes.bar(place - 0.2, central, 0.4, color="#4a6fa5", label="" if place else "one broker")
        axes.bar(place + 0.2, spread, 0.4, color="#b5483a", label="" if place else "24 brokers")
        axes.text(place + 0.2, spread, f"{spread:,}", ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(len(hops)), [name.replace(" ", "\n") for name in hops])
    axes.set(title="Figure 13: messages between brokers")
    axes.legend()
    return _save(figure, out / "figure-13.png")


def hops_by_model(rows: Sequence[Row], runs: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """The messages of the experiments of figure 12 at their lowest rate, central and spread.

    End markers count; the flooding of registrations counts where it is what is measured.
    """
    found: dict[str, tuple[int, int]] = {}
    normal = [row for row in rows if row["algorithm"] == "Normal" and not row["matches"]]
    for figure in ("12a", "12b", "12c", "12d"):
        of_it = [row for row in normal if row["figure"] == figure]
        slowest = min(row["rate"] for row in of_it)
        one, many = (
            next(row for row in of_it if row["topology"] == topology and row["rate"] == slowest)
            for topology in ("central", "path")
        )
        found[one["model"]] = _hops(one, runs), _hops(many, runs)
    return found


def _hops(row: Row, runs: Sequence[Row]) -> int:
    run = next(each for each in runs if all(row[name] == each[name] for name in SETTING_COLUMNS))
    hops: int = row["subscription_hops"] + row["publication_hops_packaged"] + row["end_markers"]
    registered: int = run["advertisement_hops"] if row["figure"] == "12c" else 0
    updates: int = run["update_hops"]
    return hops + updates + registered


def _figure_14(out: Path, rows: Sequence[Row], runs: Sequence[Row]) -> Path:
    measures = (
        ("completed_ms", "time to completion, ms"),
        ("publication_hops_alone", "publications: each result a message"),
        ("publication_hops_packaged", "publications: packages everywhere"),
        ("subscription_hops", "subscription messages"),
        ("matching_operations", "matching operations"),
        ("connections", "connections past the overlay"),
    )
    figure, panels = _page(3, lines=2)
    figure.suptitle("Figure 14: ways of delivery, at 50 % similarity")
    connections = {run["algorithm"]: run["connections"] for run in runs if run["figure"] == "14"}
    chosen = {
        row["algorithm"]: {**row, "connections": connections[row["algorithm"]]}
        for row in rows
        if row["figure"] == "14"
    }
    colors = {"Normal": "#b5483a", "Direct": "#4a6fa5", "Similarity": "#2a7f62"}
    for axes, (column, title) in zip(panels.flat, measures, strict=True):
        heights = [chosen[name][column] for name in colors]
        bars = axes.bar(list(colors), heights, color=list(colors.values()))
        axes.bar_label(bars, fmt="{:,.0f}", fontsize=7)
        axes.set(title=title)
        axes.title.set_size(9)
    return _save(figure, out / "figure-14.png")


def _cache(out: Path, rows: Sequence[Row]) -> Path:
    figure, ((left, right),) = _page(2)
    chosen = sorted((row for row in rows if row["figure"] == "cache"), key=lambda r: r["cache_s"])
    seconds = [row["cache_s"] for row in chosen]
    left.plot(seconds, [row["completed_ms"] for row in chosen], marker="o", color="#2a7f62")
    left.set(title="time to completion, ms", xlabel="life of cached answers, s", ylim=(0, None))
    shared = [100 * row["shared"] / row["requests"] for row in chosen]
    right.plot(seconds, shared, marker="o", color="#2a7f62")
    right.set(title="requests that shared, %", xlabel="life of cached answers, s")
    for axes in (left, right):
        axes.set_xscale("symlog", linthresh=1)
    return _save(figure, out / "cache.png")
