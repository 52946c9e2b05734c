"""Workflows: what each of them cost, and how its runs went over time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, duration, hours, share
from tocsin.cli.report.parts import (
    Finding,
    Section,
    bar,
    ellipsis,
    grid,
    legend,
    omitted_note,
    placeholder,
    useful_and_wasted,
)
from tocsin.cli.report.period import ReportPeriod
from tocsin.cli.report.plots.over_time import Series, counts_over_time
from tocsin.cli.report.source import Row, Source, top, total

WORKFLOWS_MAX = 25
WASTE_WORTH_SAYING = 0.10  # of the time of a workflow
WORK_WORTH_SAYING_S = 3_600

ENDS = (("completed", "c0"), ("failed", "c1"), ("aborted", "c2"), ("other", "c4"))
_SUMMED = ("busy_s", "wasted_s", "use_CpuSeconds")


def workflows(source: Source, period: ReportPeriod | None) -> Section:
    """The section."""
    section = Section(
        "workflows",
        "What each workflow cost",
        "Busy is the time of all attempts together; wasted, the part of it that went into attempts "
        "which failed or were cancelled.",
    )
    if not source.rows("runs"):
        section.body.append(placeholder("No run is in the tables yet."))
        return section
    table = source.grouped(
        "runs",
        ["workflow"],
        [*((name, "sum") for name in (*_SUMMED, "ok", "bad")), ("run", "count")],
        columns=["workflow", "state", "run", *_SUMMED],
        shape=_with_ends,
    )
    rows = top(table, "busy_s_sum", WORKFLOWS_MAX)
    section.body.append(_costs(rows))
    section.body.append(omitted_note(len(rows), table.num_rows, "workflows"))
    section.findings = _waste(rows)
    if period is not None:
        section.body.append(_over_time(source, period))
    return section


def _with_ends(table: pa.Table) -> pa.Table:
    bad = pc.is_in(table["state"], pa.array(["failed", "aborted", "lost"]))
    ok = pc.equal(table["state"], "completed")
    table = table.append_column("ok", pc.fill_null(ok, False).cast(pa.int64()))
    return table.append_column("bad", bad.cast(pa.int64()))


def _costs(rows: list[Row]) -> Html:
    most = max((row["busy_s_sum"] or 0.0 for row in rows), default=0.0)
    listed = [
        [
            ellipsis(row["workflow"] or "(unnamed)"),
            bar(useful_and_wasted(row), most),
            hours(row["busy_s_sum"]),
            share(row["wasted_s_sum"], row["busy_s_sum"]),
            hours(row["use_CpuSeconds_sum"]),
            count(row["run_count"]),
            share(row["bad_sum"], row["run_count"]),
            duration((row["busy_s_sum"] or 0.0) / row["run_count"]),
        ]
        for row in rows
    ]
    headers = (
        "workflow",
        "busy, wasted",
        "busy",
        "wasted",
        "cpu",
        "runs",
        "not completed",
        "busy per run",
    )
    table = grid(headers, listed, kinds=".bnnnnnn", class_="bars")
    return join([legend([("c0", "useful"), ("c1", "wasted")]), table])


def _waste(rows: list[Row]) -> list[Finding]:
    found = []
    for row in rows:
        busy, wasted = row["busy_s_sum"] or 0.0, row["wasted_s_sum"] or 0.0
        if wasted < WORK_WORTH_SAYING_S or wasted < WASTE_WORTH_SAYING * busy:
            continue
        text = join(
            [
                tag("strong", ellipsis(row["workflow"] or "(unnamed)")),
                f" wasted {share(wasted, busy)} of its time: {hours(wasted)}.",
            ]
        )
        found.append(Finding(text, wasted))
    return found


def _over_time(source: Source, period: ReportPeriod) -> Html:
    table = source.grouped(
        "runs",
        ["bucket", "state"],
        [("run", "count")],
        columns=["started", "state", "run"],
        where=period.where("started"),
        shape=lambda table: period.with_bucket(table, "started"),
    )
    named = {name for name, _ in ENDS}
    values = {name: [0.0] * period.buckets.count for name, _ in ENDS}
    for row in table.to_pylist():
        state = row["state"] if row["state"] in named else "other"
        values[state][row["bucket"]] += row["run_count"]
    text = {"other": "running, idle or lost"}
    series = [
        Series(text.get(name, name), values[name], colour)
        for name, colour in ENDS
        if any(values[name])
    ]
    title = f"Runs by when they started, one column for {period.buckets.step_phrase()}"
    if not total(table, "run_count"):
        return placeholder("No run has a start time.")
    return counts_over_time(title, period.buckets, series)
