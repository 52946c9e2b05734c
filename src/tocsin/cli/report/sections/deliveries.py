"""Deliveries and discoveries: who is slow, what was given up, what was looked for."""

from __future__ import annotations

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, duration, share
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
from tocsin.cli.report.source import Row, Source, top

SUBSCRIPTIONS_MAX = 25
DISCOVERIES_MAX = 20
REASONS_MAX = 2
SINK_CHARS_MAX = 48
ERROR_CHARS_MAX = 140

_DELIVERY = (
    *("subscription", "sink", "protocol", "state", "sink_state", "delivered", "failed_attempts"),
    *("dead", "dropped", "behind", "max_behind", "per_hour", "failing_share", "slow"),
    *("last_error", "reasons"),
)
_DISCOVERY = (
    *("model", "request", "count", "empty", "mean_found", "p50_s", "p90_s", "max_s"),
    *("mean_brokers", "mean_messages", "shared"),
)


def deliveries(source: Source) -> Section:
    """The section: subscriptions, those with troubles first."""
    section = Section(
        "deliveries",
        "Deliveries",
        "Subscriptions that lag or lose events come first. Dead letters are events that could not "
        "be delivered.",
    )
    table = source.table("deliveries", _DELIVERY)
    if not table.num_rows:
        section.body.append(placeholder("There was no subscription when the tables were made."))
        return section
    order = [("dead", "descending"), ("behind", "descending"), ("delivered", "descending")]
    rows = table.sort_by(order).slice(0, SUBSCRIPTIONS_MAX * 4).to_pylist()
    rows = sorted(rows, key=_order, reverse=True)[:SUBSCRIPTIONS_MAX]
    most = max((row["behind"] or 0 for row in rows), default=0)
    headers = (
        *("sink", "state", "behind", "", "delivered", "an hour", "attempts that failed"),
        *("dead", "why"),
    )
    section.body += [
        grid(headers, [_cells(row, most) for row in rows], kinds="..nbnnnnw", class_="bars"),
        omitted_note(len(rows), table.num_rows, "subscriptions"),
    ]
    section.findings = _findings(rows)
    return section


def _order(row: Row) -> tuple[bool, int, int, int]:
    lost = (row["dead"] or 0) + (row["dropped"] or 0)
    return bool(row["slow"]) or lost > 0, lost, row["behind"] or 0, row["delivered"] or 0


def _cells(row: Row, most: float) -> list[Html | str]:
    behind = row["behind"] or 0
    slow = tag("span", "▲ falls behind", class_="worse") if row["slow"] else None
    return [
        join([_sink(row), tag("small", row["protocol"] or "")]),
        join([row["sink_state"] or row["state"] or "–", tag("small", slow)]),
        count(behind),
        bar([Slice(behind, "c2", f"{count(behind)} events behind")], most),
        count(row["delivered"]),
        "–"
        if row["per_hour"] is None
        else f"{row['per_hour']:,.3g}"
        if row["per_hour"] < 1000
        else count(row["per_hour"]),
        share(row["failing_share"]),
        count((row["dead"] or 0) + (row["dropped"] or 0)),
        _reasons(row),
    ]


def _sink(row: Row) -> Html:
    return ellipsis(row["sink"] or row["subscription"] or "–", SINK_CHARS_MAX)


def _reasons(row: Row) -> str:
    reasons = [each for each in row["reasons"] or () if each and each["reason"]]
    if reasons:
        shown = [
            f"{truncated(each['reason'], ERROR_CHARS_MAX)} ({count(each['count'])})"
            for each in reasons[:REASONS_MAX]
        ]
        return "; ".join(shown)
    return truncated(row["last_error"], ERROR_CHARS_MAX) if row["last_error"] else ""


def _findings(rows: list[Row]) -> list[Finding]:
    found = []
    for row in rows:
        lost, behind = (row["dead"] or 0) + (row["dropped"] or 0), row["behind"] or 0
        if not lost and not row["slow"]:
            continue
        parts = [f"lost {count(lost)} events"] if lost else []
        parts += [f"is {count(behind)} events behind"] if behind else []
        if parts:
            text = join([tag("strong", _sink(row)), f" {' and '.join(parts)}."])
            found.append(Finding(text, float(lost + behind)))
    return found


def discoveries(source: Source) -> Section:
    """The section: questions to the directory, the most frequent first."""
    section = Section(
        "discoveries",
        "Discoveries",
        "Searches in the directory: how often, and how long the answer took.",
    )
    table = source.table("discoveries", _DISCOVERY)
    rows = top(table, "count", DISCOVERIES_MAX)
    if not rows:
        section.body.append(placeholder("Nobody searched the directory."))
        return section
    most = max(row["count"] or 0 for row in rows)
    listed = [
        [
            join([tag("code", truncated(row["request"] or "–", 90)), tag("small", row["model"])]),
            bar(_slices(row), most),
            count(row["count"]),
            share(row["empty"], row["count"]),
            "–" if row["mean_found"] is None else f"{row['mean_found']:,.1f}",
            duration(row["p50_s"]),
            duration(row["p90_s"]),
            "–" if row["mean_brokers"] is None else f"{row['mean_brokers']:.1f}",
        ]
        for row in rows
    ]
    headers = ("request", "", "asked", "found nothing", "found", "median", "p90", "brokers")
    section.body += [
        figure("Questions", grid(headers, listed, kinds="wbnnnnnn", class_="bars")),
        omitted_note(len(rows), table.num_rows, "questions"),
    ]
    return section


def _slices(row: Row) -> list[Slice]:
    empty = row["empty"] or 0
    return [
        Slice((row["count"] or 0) - empty, "c0", f"{count((row['count'] or 0) - empty)} answered"),
        Slice(empty, "c4", f"{count(empty)} found nothing"),
    ]
