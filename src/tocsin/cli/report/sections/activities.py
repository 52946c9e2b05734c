"""Activities: where the time went, what was wasted, and what takes longest at a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, duration, hours, share
from tocsin.cli.report.parts import (
    Finding,
    Section,
    Slice,
    activity_label,
    bar,
    figure,
    grid,
    legend,
    omitted_note,
    placeholder,
    useful_and_wasted,
)
from tocsin.cli.report.source import Row, Source, top

LISTED_MAX = 12
LOOKED_AT_MAX = 200  # versions of activities, to find the latest of each
NEVER = datetime.min.replace(tzinfo=UTC)
ATTEMPTS_MIN = 3  # fewer say nothing about how long an activity takes
WASTE_WORTH_SAYING_S = 3_600
WASTE_SHARE_WORTH_SAYING = 0.2

_SUMS = ("count", "failed", "busy_s", "wasted_s")


def activities(source: Source) -> Section:
    """The section."""
    section = Section(
        "activities",
        "Slowest and most wasteful activities",
        "Over all versions and all runs. What was wasted is the time of attempts that failed or "
        "were cancelled.",
    )
    if not source.rows("activity_stats"):
        section.body.append(placeholder("No attempt has ended yet."))
        return section
    table = source.grouped(
        "activity_stats", ["workflow", "activity"], [(name, "sum") for name in _SUMS]
    )
    busiest = top(table, "busy_s_sum", LISTED_MAX)
    wasters = [row for row in top(table, "wasted_s_sum", LISTED_MAX) if row["wasted_s_sum"]]
    section.body += [
        legend([("c0", "useful"), ("c1", "wasted")]),
        tag(
            "div",
            figure("Where the time went", _bars(busiest, "busy_s_sum")),
            figure("Most wasted", _bars(wasters, "wasted_s_sum"))
            if wasters
            else placeholder("Nothing was wasted."),
            class_="halves",
        ),
        omitted_note(LISTED_MAX, table.num_rows, "activities"),
        figure("Longest at a time", _longest(source)),
    ]
    section.findings = _waste(wasters)
    return section


def _bars(rows: list[Row], by: str) -> Html:
    is_waste = by == "wasted_s_sum"
    most = max((row[by] or 0.0 for row in rows), default=0.0)
    listed = [
        [
            activity_label(row["workflow"], row["activity"]),
            bar(useful_and_wasted(row)[1:] if is_waste else useful_and_wasted(row), most),
            hours(row[by]),
            share(row["wasted_s_sum"], row["busy_s_sum"]),
            share(row["failed_sum"], row["count_sum"]),
        ]
        for row in rows
    ]
    headers = ("activity", "", "wasted" if is_waste else "busy", "wasted share", "failed")
    return grid(headers, listed, kinds=".bnnn", class_="bars")


def _longest(source: Source) -> Html:
    columns = ["workflow", "activity", "version", "count", "failed", "p50_s", "p90_s", "max_s"]
    columns.append("last_ended")
    enough = pc.field("count") - pc.field("failed") >= ATTEMPTS_MIN
    table: pa.Table = source.table("activity_stats", columns, enough)
    rows = _latest(row for row in top(table, "p50_s", LOOKED_AT_MAX) if row["p50_s"] is not None)
    most = max((row["p90_s"] or 0.0 for row in rows), default=0.0)
    if not rows:
        return placeholder(f"No activity succeeded {ATTEMPTS_MIN} times yet.")
    listed = [
        [
            activity_label(row["workflow"], row["activity"]),
            row["version"] or "–",
            bar(
                [
                    Slice(row["p50_s"], "c0", f"median {duration(row['p50_s'])}"),
                    Slice(
                        (row["p90_s"] or 0.0) - row["p50_s"],
                        "c0 faint",
                        f"nine in ten within {duration(row['p90_s'])}",
                    ),
                ],
                most,
            ),
            duration(row["p50_s"]),
            duration(row["p90_s"]),
            duration(row["max_s"]),
            count(row["count"]),
        ]
        for row in rows
    ]
    headers = ("activity", "version", "median, p90", "median", "p90", "longest", "attempts")
    return grid(headers, listed, kinds="..bnnnn", class_="bars")


def _latest(rows: Iterable[Row]) -> list[Row]:
    """One version of each activity: of those that take long, the one that ran last."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        other = found.setdefault((row["workflow"], row["activity"]), row)
        if (row["last_ended"] or NEVER) > (other["last_ended"] or NEVER):
            found[row["workflow"], row["activity"]] = row
    return sorted(found.values(), key=lambda row: -row["p50_s"])[:LISTED_MAX]


def _waste(rows: list[Row]) -> list[Finding]:
    return [
        Finding(
            join(
                [
                    tag("strong", activity_label(row["workflow"], row["activity"])),
                    f" failed in {share(row['failed_sum'], row['count_sum'])} of its attempts and "
                    f"wasted {hours(row['wasted_s_sum'])}.",
                ]
            ),
            row["wasted_s_sum"],
        )
        for row in rows
        if row["wasted_s_sum"] >= WASTE_WORTH_SAYING_S
        and row["wasted_s_sum"] >= WASTE_SHARE_WORTH_SAYING * (row["busy_s_sum"] or 0.0)
    ]
