"""Page: the sections in one document that needs nothing else: no network, no script, no font."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib.resources import files

from tocsin.cli.format import window_text
from tocsin.cli.render import plural
from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, day, hours, moment, share
from tocsin.cli.report.parts import Finding, Section
from tocsin.cli.report.period import ReportPeriod
from tocsin.cli.report.source import Source, total
from tocsin.monitor.durations import rough_duration_text

FINDINGS_MAX = 8  # more would not be read first

# The page can do nothing but show itself: no script runs, nothing is fetched.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(
    source: Source, title: str, now: datetime, period: ReportPeriod | None, sections: list[Section]
) -> str:
    """The whole document."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Html(f"<style>{_style()}</style>"),
    )
    links = [tag("li", tag("a", each.title, href=f"#{each.key}")) for each in sections]
    body = tag(
        "body",
        tag("header", tag("h1", title), _created(source, now, period), class_="top"),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", _overview(source, sections), *(_section(each) for each in sections)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


@cache
def _style() -> str:
    return files(__package__).joinpath("style.css").read_text()


def _section(section: Section) -> Html:
    return tag(
        "section",
        tag("h2", section.title),
        tag("p", section.lead, class_="lead"),
        *section.body,
        id=section.key,
    )


def _created(source: Source, now: datetime, period: ReportPeriod | None) -> Html:
    found = source.found
    age_s = max((now - found.made).total_seconds(), 0.0)
    details = [
        f"Version {found.version} of the tables, made {moment(found.made)} UTC, "
        f"{rough_duration_text(age_s)} ago, from the events up to {count(found.through)}",
        *window_text(found.manifest.since, found.manifest.until),
    ]
    text = f"{', '.join(details)}."
    if period is None:
        return tag("p", text)
    span = tag("b", f"{day(period.buckets.start)} to {day(period.buckets.end)}")
    lines = [tag("p", span, " · all times are UTC"), tag("p", text)]
    if period.outside:
        astray = (
            f"With a time outside of this period (wrong clocks, or old events), left out of plots "
            f"over time: {plural(period.outside, period.what)}."
        )
        lines.append(tag("p", astray))
    return join(lines)


def _overview(source: Source, sections: list[Section]) -> Html:
    return tag(
        "section", tag("div", *_tiles(source), class_="tiles"), _findings(sections), id="overview"
    )


def _tiles(source: Source) -> list[Html]:
    runs = source.grouped(
        "runs",
        ["state"],
        [("run", "count"), ("busy_s", "sum"), ("wasted_s", "sum"), ("use_CpuSeconds", "sum")],
    )
    stats = source.grouped("activity_stats", ["workflow"], [("count", "sum"), ("failed", "sum")])
    by_state = {row["state"]: row["run_count"] for row in runs.to_pylist()}
    whole = sum(by_state.values())
    ended = sum(by_state.get(state, 0) for state in ("completed", "failed", "aborted"))
    attempts, failed = total(stats, "count_sum"), total(stats, "failed_sum")
    busy, wasted = total(runs, "busy_s_sum"), total(runs, "wasted_s_sum")
    return [
        _tile(count(whole), "runs", f"{count(whole - ended)} have not ended"),
        _tile(share(by_state.get("completed", 0), ended), "of ended runs completed", ""),
        _tile(count(attempts), "attempts ended", f"{share(failed, attempts)} failed"),
        _tile(hours(busy), "busy", f"{hours(total(runs, 'use_CpuSeconds_sum'))} of CPU time"),
        _tile(share(wasted, busy), "of it wasted", hours(wasted)),
        _tile(
            count(source.rows("events")), "events", f"{count(source.rows('quarantine'))} set aside"
        ),
    ]


def _tile(number: str, name: str, more: str) -> Html:
    return tag("div", tag("b", number), tag("span", name), tag("small", more), class_="tile")


def _findings(sections: list[Section]) -> Html | None:
    """What to look at first: the worst of each section, then the second worst of each."""
    ranked: list[tuple[bool, int, Finding, Section]] = []
    for section in sections:
        most = sorted(section.findings, key=lambda each: (not each.is_bad, -each.weight))
        ranked += [(not each.is_bad, rank, each, section) for rank, each in enumerate(most)]
    ranked.sort(key=lambda each: each[:2])
    chosen = [(each, section) for _, _, each, section in ranked[:FINDINGS_MAX]]
    if not chosen:
        return None
    left = len(ranked) - len(chosen)
    items = [
        tag(
            "li",
            each.text,
            " ",
            tag("a", section.title, href=f"#{section.key}"),
            class_="bad" if each.is_bad else "good",
        )
        for each, section in chosen
    ]
    more = tag("p", f"And {count(left)} more of that kind, in the sections below.", class_="note")
    return join(
        [
            tag("h2", "Look at this first"),
            tag("ul", *items, class_="findings"),
            more if left else None,
        ]
    )
