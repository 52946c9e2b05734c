"""Durations: how long the main activities take, as histograms."""

from __future__ import annotations

import math

import pyarrow.compute as pc

from tocsin.cli.report.markup import Html
from tocsin.cli.report.numbers import count, duration
from tocsin.cli.report.parts import (
    Section,
    activity_label,
    data_table,
    figure,
    omitted_note,
    placeholder,
    small_multiples,
)
from tocsin.cli.report.plots.histogram import Bin, histogram
from tocsin.cli.report.source import Row, Source, any_of, top

PLOTS_MAX = 12
ATTEMPTS_MIN = 2

_COLUMNS = (
    *("workflow", "activity", "version", "count", "busy_s", "p50_s", "p90_s"),
    *("last_ended", "histogram"),
)


def durations(source: Source) -> Section:
    """The section: the activities that took most of the time, each in its latest version."""
    section = Section(
        "durations",
        "How long activities take",
        "The activities that took most of the time, each in the version that ran last. Attempts "
        "that succeeded; the axis is logarithmic.",
    )
    # The busiest are found without their histograms, which are most of the table's bytes.
    sums = source.grouped("activity_stats", ["workflow", "activity"], [("busy_s", "sum")])
    busiest = top(sums, "busy_s_sum", PLOTS_MAX)
    names = {(row["workflow"], row["activity"]): number for number, row in enumerate(busiest)}
    latest: dict[tuple[str, str], Row] = {}
    wanted = any_of("activity", [row["activity"] for row in busiest if row["activity"]])
    some = (pc.field("count") >= ATTEMPTS_MIN) & pc.field("p50_s").is_valid()
    for row in source.table("activity_stats", _COLUMNS, wanted & some).to_pylist():
        key = row["workflow"], row["activity"]
        if (
            key in names
            and row["p50_s"] is not None
            and _is_later(row, latest.get(key))
            and _bins(row)
        ):
            latest[key] = row
    chosen = sorted(latest, key=names.__getitem__)
    if not chosen:
        section.body.append(placeholder("No activity succeeded twice yet."))
        return section
    section.body += [
        small_multiples([_plot(latest[key]) for key in chosen]),
        omitted_note(len(chosen), sums.num_rows, "activities"),
    ]
    return section


def _is_later(row: Row, other: Row | None) -> bool:
    if other is None or other["last_ended"] is None:
        return True
    return row["last_ended"] is not None and row["last_ended"] > other["last_ended"]


def _bins(row: Row) -> list[Bin]:
    found = [
        Bin(each["low_s"], each["high_s"], each["count"] or 0)
        for each in row["histogram"] or ()
        if each and each["low_s"] is not None and each["high_s"] is not None
    ]
    return [each for each in found if math.isfinite(each.low_s) and math.isfinite(each.high_s)]


def _plot(row: Row) -> Html:
    bins = _bins(row)
    version = f", version {row['version']}" if row["version"] else ""
    title = f"Durations of {row['activity']} in {row['workflow']}{version}"
    listed = [[duration(each.low_s), duration(each.high_s), count(each.count)] for each in bins]
    p50_s, p90_s = row["p50_s"], row["p90_s"] if row["p90_s"] is not None else row["p50_s"]
    return figure(
        activity_label(f"{row['workflow'] or '–'}{version}", row["activity"]),
        histogram(title, bins, p50_s, p90_s),
        data_table(("from", "to", "attempts"), listed, kinds="nnn"),
    )
