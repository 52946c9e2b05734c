"""Estimates: how long what runs will still take."""

from __future__ import annotations

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import UNKNOWN, count, duration, moment
from tocsin.cli.report.parts import (
    Section,
    Slice,
    bar,
    ellipsis,
    grid,
    legend,
    omitted_note,
    placeholder,
    progress_bar,
)
from tocsin.cli.report.source import Row, Source, top

RUNS_MAX = 25

_COLUMNS = (
    *("run", "workflow", "version", "as_of", "started", "elapsed_s", "done", "total"),
    *("remaining_low_s", "remaining_s", "remaining_high_s", "ends", "basis", "runs"),
)


def estimates(source: Source) -> Section:
    """The section: the runs that are under way, those that will take longest first."""
    section = Section(
        "estimates",
        "What runs now, and for how long",
        "As of when the tables were made. The outlined part is where eight in ten past runs ended.",
    )
    table = source.table("estimates", _COLUMNS)
    rows = top(table, "remaining_s", RUNS_MAX)
    if not rows:
        section.body.append(placeholder("Nothing was running when the tables were made."))
        return section
    most = max((row["elapsed_s"] or 0.0) + (row["remaining_high_s"] or 0.0) for row in rows)
    section.body += [
        legend([("c0", "so far"), ("c0 faint", "still to come"), ("between", "8 in 10 end here")]),
        grid(
            ("run", "", "so far", "still", "ends (UTC)", "done", "made from"),
            [_cells(row, most) for row in rows],
            kinds=".bnnnnw",
            class_="bars",
        ),
        omitted_note(len(rows), table.num_rows, "runs under way"),
    ]
    return section


def _cells(row: Row, most: float) -> list[Html | str]:
    elapsed, still = row["elapsed_s"] or 0.0, row["remaining_s"]
    low, high = row["remaining_low_s"], row["remaining_high_s"]
    total = "" if row["total"] is None else f" of {count(row['total'])}"
    known = still is not None
    between = f", {duration(low)} to {duration(high)}" if known and low is not None else ""
    text = f"{duration(elapsed)} so far, {duration(still)} still to come{between}"
    return [
        join([ellipsis(row["run"], 26), tag("small", ellipsis(row["workflow"] or "–"))]),
        progress_bar(low or 0.0, still, high or still, most, text, elapsed)
        if known
        else bar([Slice(elapsed, "c0", text)], most),
        duration(elapsed),
        join([duration(still), tag("small", between.removeprefix(", "))]) if known else UNKNOWN,
        moment(row["ends"]),
        "–" if row["done"] is None else f"{count(row['done'])}{total}",
        row["basis"] or "–",
    ]
