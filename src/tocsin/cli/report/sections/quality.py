"""Quality: what was set aside and why, what came late, what came twice."""

from __future__ import annotations

import pyarrow.compute as pc

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, day, duration, share
from tocsin.cli.report.parts import (
    Finding,
    Section,
    Slice,
    bar,
    ellipsis,
    figure,
    grid,
    omitted_note,
    placeholder,
    truncated,
)
from tocsin.cli.report.source import Row, Source, top, total

REASONS_MAX = 20
EXCERPT_CHARS_MAX = 80
LATE_S = 60.0  # a minute after it happened
BAD_SHARE = 0.001  # one in a thousand


def quality(source: Source) -> Section:
    """The section."""
    section = Section(
        "quality",
        "Quality of the data",
        "Records that are invalid or implausible are set aside with the reason; none of them is in "
        "the numbers above.",
    )
    events = source.rows("events") or source.found.manifest.counts.get("events", 0)
    table = source.grouped(
        "quarantine",
        ["reason"],
        [
            ("received", "min"),
            ("received", "max"),
            ("source", "min"),
            ("excerpt", "min"),
            ("reason", "count"),
        ],
    )
    section.body.append(_facts(source, events, total(table, "reason_count")))
    if not table.num_rows:
        section.body.append(placeholder("Nothing was set aside."))
        return section
    rows = top(table, "reason_count", REASONS_MAX)
    section.body += [
        figure("Set aside, by reason", _reasons(rows)),
        omitted_note(len(rows), table.num_rows, "reasons"),
    ]
    bad = total(table, "reason_count")
    if events and bad > BAD_SHARE * events:
        text = f"{count(bad)} records ({share(bad, events + bad)}) were set aside, most often: "
        reason = tag("code", truncated(rows[0]["reason"] or "–", 80))
        section.findings.append(Finding(join([text, reason, "."]), bad))
    return section


def _facts(source: Source, events: int, bad: float) -> Html:
    counts = source.found.manifest.counts
    rows: list[list[str]] = [["events", count(events), ""]]
    rows.append(["set aside", count(bad), share(bad, events + bad)])
    if "duplicates" in counts:
        twice = counts["duplicates"]
        rows.append(["came more than once", count(twice), share(twice, events + twice)])
    late = _late(source)
    if late is not None:
        read, after, most_s = late
        part = "" if read >= source.rows("events") else f" (of {count(read)} checked)"
        name = f"came more than {duration(LATE_S)} late{part}"
        rows.append([name, count(after), share(after, read)])
        rows.append(["latest by", duration(most_s), ""])
    if counts.get("clock_off"):
        off = counts["clock_off"]
        rows.append(["with a wrong clock", count(off), share(off, events)])
    return grid(("", "", "share"), rows, kinds=".nn", class_="facts")


def _late(source: Source) -> tuple[int, int, float] | None:
    """Of a sample of the events: how many, how many of them late, and by how much at most."""
    if not source.rows("events"):
        return None
    read = after = 0
    most_s = 0.0
    for part in source.sample("events", ["late_s"]):
        known = part["late_s"]
        read += part.num_rows
        after += pc.sum(pc.greater(known, LATE_S)).as_py() or 0
        most_s = max(most_s, pc.max(known).as_py() or 0.0)
    return read, after, most_s


def _reasons(rows: list[Row]) -> Html:
    most = max(row["reason_count"] for row in rows)
    listed = [
        [
            tag("code", truncated(row["reason"] or "–", 90)),
            bar([Slice(row["reason_count"], "c1", f"{count(row['reason_count'])} records")], most),
            count(row["reason_count"]),
            ellipsis(row["source_min"] or "–"),
            tag("code", truncated(row["excerpt_min"] or "", EXCERPT_CHARS_MAX)),
            day(row["received_min"]),
            day(row["received_max"]),
        ]
        for row in rows
    ]
    headers = ("reason", "", "records", "for example from", "it began with", "first", "last")
    return grid(headers, listed, kinds="wbn.wnn", class_="bars")
