"""Usage: what hosts and activities used over time."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.cli.report.markup import Html, join
from tocsin.cli.report.numbers import count, hours, size
from tocsin.cli.report.parts import (
    Section,
    activity_label,
    data_table,
    figure,
    omitted_note,
    placeholder,
    small_multiples,
)
from tocsin.cli.report.period import ReportPeriod
from tocsin.cli.report.plots.over_time import area, heat_map
from tocsin.cli.report.source import Row, Source, any_of, top

HOSTS_MAX = 24
ACTIVITIES_MAX = 9

_HOST_SUMS = ("busy_s", "cpu_s", "read_bytes", "written_bytes", "attempts")


def usage(source: Source, period: ReportPeriod | None) -> Section:
    """The section."""
    section = Section(
        "usage",
        "Resource use over time",
        "By the hour in which attempts ended, and from the reports of the hosts.",
    )
    if period is None:
        section.body.append(placeholder("No event reports a host or an attempt that ended."))
        return section
    section.body += _hosts(source, period)
    section.body += _activities(source, period)
    return section


def _hosts(source: Source, period: ReportPeriod) -> list[Html]:
    sums = [(name, "sum") for name in _HOST_SUMS]
    peaks = [("max_memory_bytes", "max"), ("samples", "sum")]
    table = source.grouped("host_usage", ["host"], [*sums, *peaks])
    table = table.filter(pc.field("host").is_valid())
    if not table.num_rows:
        return [placeholder("No event names a host.")]
    rows = top(table, "busy_s_sum", HOSTS_MAX)
    names = [row["host"] for row in rows]
    found = [_under_way(source, period, names, rows), _cpu(source, period, names)]
    return [*(each for each in found if each), omitted_note(len(rows), table.num_rows, "hosts")]


def _by_bucket(
    source: Source, period: ReportPeriod, names: Sequence[str], shape_cpu: bool
) -> pa.Table:
    def shaped(table: pa.Table) -> pa.Table:
        table = period.with_bucket(table, "hour")
        # A mean of hours weighs each by how many samples it has.
        weight = pc.if_else(pc.is_valid(table["mean_cpu_percent"]), table["samples"], 0)
        product = pc.multiply(table["mean_cpu_percent"], weight.cast(pa.float64()))
        return table.append_column("weight", weight).append_column("product", product)

    sums = [("weight", "sum"), ("product", "sum")] if shape_cpu else [("busy_s", "sum")]
    return source.grouped(
        "host_usage",
        ["host", "bucket"],
        sums,
        columns=["host", "hour", "samples", "busy_s", "mean_cpu_percent"],
        where=period.where("hour") & any_of("host", names),
        shape=shaped,
    )


def _under_way(source: Source, period: ReportPeriod, names: Sequence[str], rows: list[Row]) -> Html:
    cells = _empty(names, period.buckets.count)
    for row in _by_bucket(source, period, names, False).to_pylist():
        cells[row["host"]][row["bucket"]] = (row["busy_s_sum"] or 0.0) / period.buckets.step_s
    title = f"Attempts under way on each host, on average over {period.buckets.step_phrase()}"
    drawing, shades = heat_map(title, period.buckets, list(cells.items()), _tenths)
    listed = [
        [
            row["host"],
            count(row["attempts_sum"]),
            hours(row["busy_s_sum"]),
            hours(row["cpu_s_sum"]),
            size(row["max_memory_bytes_max"] or 0),
            size(row["read_bytes_sum"] or 0),
            size(row["written_bytes_sum"] or 0),
        ]
        for row in rows
    ]
    headers = ("host", "attempts", "busy", "cpu", "most memory", "read", "written")
    return figure(title, join([drawing, shades]), data_table(headers, listed, kinds=".nnnnnn"))


def _cpu(source: Source, period: ReportPeriod, names: Sequence[str]) -> Html | None:
    cells = _empty(names, period.buckets.count)
    has_plot = False
    for row in _by_bucket(source, period, names, True).to_pylist():
        if row["weight_sum"] and row["product_sum"] is not None:
            cells[row["host"]][row["bucket"]] = row["product_sum"] / row["weight_sum"]
            has_plot = True
    if not has_plot:
        return None
    known = {name: values for name, values in cells.items() if any(v is not None for v in values)}
    step = period.buckets.step_phrase()
    title = f"Processor use of each host, mean over {step}, as reported by its agent"
    drawing, shades = heat_map(title, period.buckets, list(known.items()), _percent, least_top=100)
    listed = []
    for name, values in known.items():
        percents = [value for value in values if value is not None]
        listed.append([name, _percent(sum(percents) / len(percents)), _percent(max(percents))])
    return figure(
        title, join([drawing, shades]), data_table(("host", "mean", "most"), listed, kinds=".nn")
    )


def _empty(names: Sequence[str], parts: int) -> dict[str, list[float | None]]:
    return {name: [None] * parts for name in names}


def _activities(source: Source, period: ReportPeriod) -> list[Html]:
    sums = [("busy_s", "sum"), ("cpu_s", "sum"), ("max_memory_bytes", "max")]
    moved = [("read_bytes", "sum"), ("written_bytes", "sum"), ("attempts", "sum")]
    keys = ["workflow", "activity"]
    table = source.grouped("activity_usage", keys, [*sums, *moved])
    rows = top(table, "busy_s_sum", ACTIVITIES_MAX)
    if not rows:
        return []
    values = {(row["workflow"], row["activity"]): [0.0] * period.buckets.count for row in rows}

    parts = source.grouped(
        "activity_usage",
        [*keys, "bucket"],
        [("busy_s", "sum")],
        columns=[*keys, "hour", "busy_s"],
        where=period.where("hour") & any_of("activity", [row["activity"] or "" for row in rows]),
        shape=lambda each: period.with_bucket(each, "hour"),
    )
    for row in parts.to_pylist():
        if (key := (row["workflow"], row["activity"])) in values:
            values[key][row["bucket"]] = row["busy_s_sum"] or 0.0
    plots = [_activity(row, values[row["workflow"], row["activity"]], period) for row in rows]
    return [
        small_multiples(plots),
        omitted_note(len(rows), table.num_rows, "activities"),
    ]


def _activity(row: Row, values: Sequence[float], period: ReportPeriod) -> Html:
    step = period.buckets.step_phrase()
    title = f"Busy hours of {row['activity']} in {row['workflow']}, one step for {step}"
    used = (
        f"{hours(row['busy_s_sum'])} busy, {hours(row['cpu_s_sum'])} cpu; most memory "
        f"{size(row['max_memory_bytes_max'] or 0)}; read {size(row['read_bytes_sum'] or 0)}, "
        f"wrote {size(row['written_bytes_sum'] or 0)}; at most {hours(max(values))} "
        f"in {step}"
    )
    listed = [[period.buckets.label(bucket), hours(value)] for bucket, value in enumerate(values)]
    return figure(
        activity_label(row["workflow"], row["activity"]),
        area(title, period.buckets, values, hours),
        data_table((period.buckets.step_name(), "busy"), listed, kinds=".n"),
        note=used,
    )


def _tenths(value: float) -> str:
    return f"{value:.0f}" if value == 0 or value >= 9.95 else f"{value:.1f}"


def _percent(value: float) -> str:
    return f"{value:.0f} %"
