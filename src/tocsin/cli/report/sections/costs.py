"""Costs: how the duration of an activity grows with its input, and how good the line is."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.cli.report.markup import Html
from tocsin.cli.report.numbers import count, duration, share, size
from tocsin.cli.report.parts import (
    Section,
    activity_label,
    data_table,
    figure,
    omitted_note,
    placeholder,
    small_multiples,
)
from tocsin.cli.report.plots.scatter import Line, scatter
from tocsin.cli.report.source import Row, Source, any_of, top

PLOTS_MAX = 9
POINTS_MAX = 120
ATTEMPTS_MIN = 5
GB = 1e9

_COLUMNS = (
    *("workflow", "activity", "version", "target", "count", "intercept", "slope", "r2", "rmse"),
    *("median_error", "input_min", "input_max", "mean"),
)
_POINT = ("workflow", "activity", "version", "state", "input_bytes", "duration_s")
_TARGETS = {
    "cpu_s": "cpu",
    "memory_bytes": "memory",
    "read_bytes": "read",
    "written_bytes": "written",
}

Key = tuple[str | None, str | None, str | None]
Points = list[tuple[float, float]]


def costs(source: Source) -> Section:
    """The section: the models of duration by the size of the input, the most used first."""
    section = Section(
        "costs",
        "Cost models",
        "Duration against the bytes of input: a sample of the attempts, the line that was fitted "
        "to all of them, and in grey how far it is usually off.",
    )
    table = source.table("cost_models", _COLUMNS)
    models = table.filter(pc.field("slope").is_valid())
    timed = models.filter(pc.field("target") == "duration_s")
    weighed = timed.append_column(
        "weight", pc.multiply(timed["count"].cast(pa.float64()), timed["mean"])
    )
    rows = [row for row in top(weighed, "weight", PLOTS_MAX) if _is_drawable(row)]
    if not rows:
        section.body.append(placeholder("Too few attempts report the size of their input."))
        return section
    points = _points(source, [_key(row) for row in rows])
    others = _others(models, rows)
    section.body += [
        small_multiples([_plot(row, points[_key(row)], others.get(_key(row), {})) for row in rows]),
        omitted_note(len(rows), timed.num_rows, "models of duration"),
    ]
    return section


def _key(row: Row) -> Key:
    return row["workflow"], row["activity"], row["version"]


def _is_drawable(row: Row) -> bool:
    needed = ("intercept", "slope", "input_min", "input_max")
    numbers = [row[name] for name in needed]
    finite = all(value is not None and math.isfinite(value) for value in numbers)
    return finite and row["count"] >= ATTEMPTS_MIN and row["input_max"] > row["input_min"]


def _points(source: Source, keys: list[Key]) -> dict[Key, Points]:
    """Some attempts of each, from all over the table."""
    found: dict[Key, Points] = {key: [] for key in keys}
    names = [activity for _, activity, _ in keys if activity is not None]
    wanted = (
        (pc.field("state") == "succeeded")
        & any_of("activity", names)
        & pc.field("input_bytes").is_valid()
        & (pc.field("duration_s") >= 0)
    )
    for part in source.sample("activities", _POINT):
        some = part.filter(wanted)
        for key, points in found.items():
            points += _spread_out(some, key, POINTS_MAX - len(points))
        if all(len(points) >= POINTS_MAX for points in found.values()):
            break
    return found


def _spread_out(table: pa.Table, key: Key, limit: int) -> Points:
    """At most so many attempts of one activity, from the first to the last of them."""
    is_of_key = [
        pc.field(name) == value if value is not None else pc.field(name).is_null()
        for name, value in zip(("workflow", "activity", "version"), key, strict=True)
    ]
    rows = table.filter(is_of_key[0] & is_of_key[1] & is_of_key[2])
    step = max(1, math.ceil(rows.num_rows / limit)) if limit > 0 else 1
    chosen = rows.take(pa.array(range(0, rows.num_rows, step), pa.int64())[: max(limit, 0)])
    sizes, took = chosen["input_bytes"].to_pylist(), chosen["duration_s"].to_pylist()
    return [(float(x), y) for x, y in zip(sizes, took, strict=True)]


def _others(models: pa.Table, rows: list[Row]) -> dict[Key, dict[str, Row]]:
    keys = {_key(row) for row in rows}
    wanted = models.filter(any_of("activity", [row["activity"] or "" for row in rows]))
    found: dict[Key, dict[str, Row]] = {}
    for row in wanted.to_pylist():
        if _key(row) in keys:
            found.setdefault(_key(row), {})[row["target"]] = row
    return found


def _plot(row: Row, points: Points, targets: dict[str, Row]) -> Html:
    error = row["rmse"] if row["rmse"] is not None and math.isfinite(row["rmse"]) else 0.0
    fitted = Line(row["intercept"], row["slope"], error, row["input_min"], row["input_max"])
    version = f", version {row['version']}" if row["version"] else ""
    title = f"Duration of {row['activity']} in {row['workflow']}{version} by the bytes of its input"
    off = "" if row["median_error"] is None else f"; usually off by {share(row['median_error'])}"
    sampled = "" if points else ", none of them in the sample"
    note = (
        f"{duration(max(fitted.intercept, 0))} and {duration(max(fitted.slope * GB, 0))} for each "
        f"GB{off}; {count(row['count'])} attempts{sampled}"
    )
    return figure(
        activity_label(f"{row['workflow'] or '–'}{version}", row["activity"]),
        scatter(title, points, fitted),
        data_table(
            ("of", "at no input", "for each GB", "off by", "r²"), _targets(targets), kinds=".nnnn"
        ),
        note=note,
    )


def _targets(targets: dict[str, Row]) -> list[list[str]]:
    listed = []
    for target, row in sorted(targets.items()):
        shown = duration if target.endswith("_s") else lambda value: size(value or 0)
        listed.append(
            [
                _TARGETS.get(target, "duration"),
                shown(row["intercept"]),
                shown(row["slope"] * GB),
                share(row["median_error"]),
                "–" if row["r2"] is None else f"{row['r2']:.2f}",
            ]
        )
    return listed
