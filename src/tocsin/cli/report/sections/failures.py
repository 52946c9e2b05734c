"""Failures: over time, and by fault: with the error message, how often, and where."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, day, hours, share
from tocsin.cli.report.parts import (
    Finding,
    Section,
    Slice,
    activity_label,
    bar,
    ellipsis,
    grid,
    omitted_note,
    placeholder,
    truncated,
)
from tocsin.cli.report.period import ReportPeriod
from tocsin.cli.report.plots.over_time import Series, counts_over_time
from tocsin.cli.report.source import Row, Source, top, total

FAULTS_MAX = 20
COLOURED = ("c1", "c2", "c0", "c3")  # the most frequent faults; the rest are one colour
REST = "c4"
ERROR_CHARS_MAX = 220
HOSTS_MAX = 3
FINDING_SHARE_MIN = 0.15  # of all failures


def failures(source: Source, period: ReportPeriod | None) -> Section:
    """The section."""
    section = Section(
        "failures",
        "Failures",
        "Failures of the same activity for the same reason are one fault, however their numbers "
        "and paths differ.",
    )
    sums = [("run", "count"), ("duration_s", "sum"), ("ended", "min"), ("ended", "max")]
    table = source.grouped("failures", ["fault", "workflow", "activity", "exit_code"], sums)
    if not table.num_rows:
        section.body.append(placeholder("Nothing failed."))
        return section
    rows = top(table, "run_count", FAULTS_MAX)
    whole = total(table, "run_count")
    errors, hosts = _error_texts(source, rows), _hosts(source, rows)
    if period is not None:
        section.body.append(_over_time(source, period, rows, errors))
    section.body += [
        _fault_table(rows, errors, hosts, whole),
        omitted_note(len(rows), table.num_rows, "faults"),
    ]
    section.findings = _findings(rows, errors, whole)
    return section


def _has_fault(rows: list[Row]) -> Any:
    return pc.field("fault").isin(pa.array([row["fault"] for row in rows], pa.int64()))


def _error_texts(source: Source, rows: list[Row]) -> dict[int | None, str]:
    """An example of the error message of each fault."""
    table = source.grouped("failures", ["fault"], [("error", "min")], where=_has_fault(rows))
    return {row["fault"]: _first_line(row["error_min"]) for row in table.to_pylist()}


def _first_line(error: str | None) -> str:
    lines = [line.strip() for line in (error or "")[:5_000].splitlines() if line.strip()]
    return truncated(lines[0], ERROR_CHARS_MAX) if lines else "(no reason given)"


def _hosts(source: Source, rows: list[Row]) -> dict[int | None, str]:
    """Where each fault was seen: the hosts that had it most, and how many others."""
    keys, sums = ["fault", "host"], [("run", "count")]
    table = source.grouped("failures", keys, sums, where=_has_fault(rows))
    found: dict[int | None, list[tuple[int, str]]] = {}
    for row in table.to_pylist():
        if row["host"]:
            found.setdefault(row["fault"], []).append((row["run_count"], row["host"]))
    return {fault: _top_hosts(seen) for fault, seen in found.items()}


def _top_hosts(seen: list[tuple[int, str]]) -> str:
    first = sorted(seen, key=lambda each: (-each[0], each[1]))[:HOSTS_MAX]
    names = ", ".join(truncated(_host(host), 24) for _, host in first)
    others = len(seen) - len(first)
    return f"{names} and {count(others)} more" if others else names


def _host(name: str) -> str:
    """A host without its domain; an address stays as it is."""
    first = name.partition(".")[0]
    return name if not first or first.isdecimal() else first


def _over_time(
    source: Source, period: ReportPeriod, rows: list[Row], errors: dict[int | None, str]
) -> Html:
    table = source.grouped(
        "failures",
        ["bucket", "fault"],
        [("run", "count")],
        columns=["ended", "fault", "run"],
        where=period.where("ended"),
        shape=lambda table: period.with_bucket(table, "ended"),
    )
    chosen = list(dict.fromkeys(row["fault"] for row in rows))[: len(COLOURED)]
    values = {fault: [0.0] * period.buckets.count for fault in chosen}
    rest = [0.0] * period.buckets.count
    for row in table.to_pylist():
        values.get(row["fault"], rest)[row["bucket"]] += row["run_count"]
    series = [
        Series(truncated(errors.get(fault, ""), 44), values[fault], colour)
        for fault, colour in zip(chosen, COLOURED, strict=False)
    ]
    if any(rest):
        series.append(Series("all others", rest, REST))
    title = f"Attempts that failed, one column for {period.buckets.step_phrase()}"
    return counts_over_time(title, period.buckets, series)


def _fault_table(
    rows: list[Row], errors: dict[int | None, str], hosts: dict[int | None, str], whole: float
) -> Html:
    most = max(row["run_count"] for row in rows)
    listed = [
        [
            join(
                [
                    tag("code", errors.get(row["fault"], "")),
                    tag("small", _where(row, hosts.get(row["fault"]))),
                ]
            ),
            activity_label(row["workflow"], row["activity"]),
            bar([Slice(row["run_count"], "c1", f"{count(row['run_count'])} times")], most),
            count(row["run_count"]),
            share(row["run_count"], whole),
            hours(row["duration_s_sum"]),
            day(row["ended_min"]),
            day(row["ended_max"]),
        ]
        for row in rows
    ]
    headers = ("what it said", "activity", "", "times", "of all", "lost", "first", "last")
    return grid(headers, listed, kinds="w.bnnnnn", class_="bars")


def _where(row: Row, hosts: str | None) -> str:
    code = "" if row["exit_code"] is None else f"exit code {row['exit_code']}"
    place = f"on {hosts}" if hosts else ""
    return ", ".join(part for part in (code, place) if part)


def _findings(rows: list[Row], errors: dict[int | None, str], whole: float) -> list[Finding]:
    return [
        Finding(
            join(
                [
                    f"{share(row['run_count'], whole)} of all failures are one: ",
                    tag("code", truncated(errors.get(row["fault"], ""), 90)),
                    " in ",
                    tag("strong", ellipsis(row["activity"])),
                    ".",
                ]
            ),
            row["duration_s_sum"] or 0.0,
        )
        for row in rows
        if row["run_count"] >= FINDING_SHARE_MIN * whole and row["run_count"] > 1
    ]
