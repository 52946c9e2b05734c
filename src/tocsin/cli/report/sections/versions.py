"""Versions: whether a workflow became slower or faster from one version to the next, and where."""

from __future__ import annotations

import pyarrow.compute as pc

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, day, duration, ratio, share
from tocsin.cli.report.parts import (
    Finding,
    Section,
    data_table,
    ellipsis,
    figure,
    grid,
    omitted_note,
    placeholder,
    small_multiples,
    truncated,
)
from tocsin.cli.report.plots.versions import CHANGE, Version, versions
from tocsin.cli.report.source import Row, Source, any_of

WORKFLOWS_MAX = 12
VERSIONS_MAX = 8  # the latest of a workflow
LISTED_MAX = 25
NAMES_MAX = 4
CHARS_MAX = 60

_COLUMNS = (
    *("workflow", "version", "previous", "first_seen", "runs", "completed", "failed"),
    *("mean_s", "p50_s", "p90_s", "ratio", "changes", "slower", "faster", "added", "removed"),
)
_LOW = 0.1


def trends(source: Source) -> Section:
    """The section: workflows with more than one version, those that ran most first."""
    section = Section(
        "versions",
        "Trend over versions",
        "Runs that completed: the median, and the range from p10 to p90. An arrow says that the "
        "median changed by a tenth or more.",
    )
    found: dict[str, list[Row]] = {}
    for row in source.table("evolution", _COLUMNS).to_pylist():
        if row["workflow"] is not None and row["version"] is not None:
            found.setdefault(row["workflow"], []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row["first_seen"] is None, row["first_seen"], row["version"]))
    drawn = {name: rows for name, rows in found.items() if len(_timed(rows)) > 1}
    chosen = sorted(drawn, key=lambda name: -sum(row["runs"] or 0 for row in found[name]))
    chosen = chosen[:WORKFLOWS_MAX]
    if not chosen:
        section.body.append(placeholder("No workflow completed runs in more than one version yet."))
    else:
        low = _low_ends(source, chosen)
        section.body.append(small_multiples([_plot(name, drawn[name], low) for name in chosen]))
        section.body.append(omitted_note(len(chosen), len(drawn), "workflows"))
    changes = [row for rows in found.values() for row in rows if _has_changes(row)]
    if changes:
        section.body.append(_changes(changes))
    section.findings = _findings(drawn)
    return section


def _timed(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["p50_s"] is not None and row["p90_s"] is not None]


def _low_ends(source: Source, names: list[str]) -> dict[tuple[str, str], float]:
    """Where the shortest tenth of the runs ends, which the table of versions does not have."""
    done = (pc.field("state") == "completed") & pc.field("duration_s").is_valid()
    table = source.table(
        "runs", ["workflow", "version", "duration_s"], done & any_of("workflow", names)
    )
    options = pc.TDigestOptions(_LOW)
    grouped = table.group_by(["workflow", "version"]).aggregate(
        [("duration_s", "tdigest", options)]
    )
    return {
        (row["workflow"], row["version"]): row["duration_s_tdigest"][0]
        for row in grouped.to_pylist()
        if row["duration_s_tdigest"]
    }


def _plot(name: str, rows: list[Row], low: dict[tuple[str, str], float]) -> Html:
    latest = _timed(rows)[-VERSIONS_MAX:]
    shown = [
        Version(
            row["version"],
            row["runs"] or 0,
            min(low.get((name, row["version"]), row["p50_s"]), row["p50_s"]),
            row["p50_s"],
            row["p90_s"],
        )
        for row in latest
    ]
    listed = [
        [
            each.name,
            day(row["first_seen"]),
            count(each.runs),
            duration(each.p10_s),
            duration(each.p50_s),
            duration(each.p90_s),
            ratio(row["ratio"]),
        ]
        for each, row in zip(shown, latest, strict=True)
    ]
    headers = ("version", "since", "runs", "p10", "median", "p90", "compared with the previous one")
    older = len(_timed(rows)) - len(latest)
    note = f"{count(older)} older versions are not drawn." if older else None
    title = f"Duration of runs of {name}, by version"
    return figure(
        ellipsis(name),
        versions(title, shown),
        data_table(headers, listed, kinds="..nnnn."),
        note=note,
    )


def _has_changes(row: Row) -> bool:
    kinds = ("changes", "slower", "faster", "added", "removed")
    return row["previous"] is not None and any(row[kind] for kind in kinds)


def _changes(rows: list[Row]) -> Html:
    # The newest first; of the same moment, those that run most.
    rows = sorted(rows, key=lambda row: (row["first_seen"] is not None, row["first_seen"]))[::-1]
    listed = [
        [
            ellipsis(row["workflow"], 24),
            join([f"{truncated(row['previous'], 14)} → {truncated(row['version'], 14)}"]),
            day(row["first_seen"]),
            _verdict(row["ratio"]),
            share(row["failed"], row["runs"]),
            _changes_text(row),
        ]
        for row in rows[:LISTED_MAX]
    ]
    headers = ("workflow", "version", "since", "median", "failed", "what changed")
    return figure(
        "What changed, the newest first",
        join(
            [
                grid(headers, listed, kinds="....nw"),
                omitted_note(LISTED_MAX, len(rows), "new versions"),
            ]
        ),
    )


def _verdict(value: float | None) -> Html:
    text = ratio(value)
    if value is None or abs(value - 1) < CHANGE:
        return tag("span", text)
    grew = value > 1
    return tag("span", f"{'▲' if grew else '▼'} {text}", class_="worse" if grew else "better")


def _changes_text(row: Row) -> Html:
    kinds = (("slower", "slower"), ("faster", "faster"), ("added", "new"), ("removed", "gone"))
    parts = [tag("span", _names(row["changes"]), class_="soft")] if row["changes"] else []
    for column, word in kinds:
        if row[column]:
            parts.append(tag("span", tag("b", f"{word}: "), _names(row[column])))
    return join(parts, "<br>")


def _names(names: list[str]) -> str:
    shown = ", ".join(truncated(name, CHARS_MAX) for name in names[:NAMES_MAX])
    more = len(names) - NAMES_MAX
    return f"{shown} and {count(more)} more" if more > 0 else shown


def _findings(drawn: dict[str, list[Row]]) -> list[Finding]:
    found = []
    for name, rows in drawn.items():
        last = _timed(rows)[-1]
        value = last["ratio"]
        if value is None or value <= 0 or abs(value - 1) < CHANGE:
            continue
        runs = last["runs"] or 0
        text = join(
            [
                tag("strong", ellipsis(name)),
                f" became {ratio(value)} with version {truncated(last['version'], 20)}: a run "
                f"takes {duration(last['p50_s'])}.",
            ]
        )
        found.append(Finding(text, abs(1 - 1 / value) * last["p50_s"] * runs, value > 1))
    return found
