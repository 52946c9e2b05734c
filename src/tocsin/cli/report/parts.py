"""Parts: what sections are made of. Figures with their table behind them, tables with bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin.cli.report.markup import Child, Html, join, tag, text
from tocsin.cli.report.numbers import count, hours

DATA_ROWS_MAX = 60  # of the table behind a plot
LABEL_CHARS_MAX = 34

Cells = Sequence[Child]


@dataclass(slots=True)
class Section:
    """One part of the page. `findings` are what a person should know first."""

    key: str
    title: str
    lead: str
    body: list[Html] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence, and how much it matters: what was lost, in seconds where known."""

    text: Html
    weight: float
    is_bad: bool = True


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a bar: how much, which colour, and what it is."""

    value: float
    colour: str
    title: str


def useful_and_wasted(row: Mapping[str, Any]) -> list[Slice]:
    """The busy time of a row in two parts."""
    wasted = row["wasted_s_sum"] or 0.0
    useful = max((row["busy_s_sum"] or 0.0) - wasted, 0.0)
    return [
        Slice(useful, "c0", f"{hours(useful)} useful"),
        Slice(wasted, "c1", f"{hours(wasted)} wasted"),
    ]


def ellipsis(value: object, chars_max: int = LABEL_CHARS_MAX) -> Html:
    """A name that may be long: its beginning and its end, and all of it where the pointer rests."""
    shown = str(value)
    if len(shown) <= chars_max:
        return text(shown)
    end = chars_max // 3
    return tag("span", f"{shown[: chars_max - end - 1]}…{shown[-end:]}", title=shown)


def truncated(value: object, chars_max: int) -> str:
    """The same as a text, where there is no room for more."""
    shown = str(value)
    return shown if len(shown) <= chars_max else f"{shown[: chars_max - 1]}…"


def grid(
    headers: Sequence[str], rows: Sequence[Cells], *, kinds: str = "", class_: str | None = None
) -> Html:
    """A table. `kinds` has a letter for each column: n is a number, b a bar, w words, . a name."""
    padded = kinds.ljust(len(headers), ".")
    classes = [None if kind == "." else kind for kind in padded]
    head = join(
        tag("th", name, class_=kind, scope="col")
        for name, kind in zip(headers, classes, strict=True)
    )
    body = join(
        tag("tr", *(tag("td", each, class_=kind) for each, kind in zip(row, classes, strict=True)))
        for row in rows
    )
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", body), class_=class_)
    return tag("div", table, class_="scroll", tabindex="0")


def omitted_note(shown: int, whole: int, what: str) -> Html:
    """How many of them are listed; empty if all are."""
    if whole <= shown:
        return Html()
    return tag("p", f"{count(shown)} of {count(whole)} {what} are listed.", class_="note")


def bar(slices: Sequence[Slice], most: float) -> Html:
    """A bar as long as its share of the longest, in parts."""
    drawn: list[Html] = []
    at = 0.0
    for each in slices:
        width = 0.0 if most <= 0 else 100 * max(each.value, 0.0) / most
        if width > 0:
            rect = tag("rect", tag("title", each.title), **_place(at, width), class_=each.colour)
            drawn.append(rect)
        at += width
    label = ", ".join(each.title for each in slices)
    return tag("svg", *drawn, class_="bar", role="img", aria_label=label)


def progress_bar(
    low: float, middle: float, high: float, most: float, title: str, done: float
) -> Html:
    """A bar of what is done, then from the least to the most that may come, its middle marked."""

    def part(value: float) -> float:
        return 0.0 if most <= 0 else 100 * min(max(value, 0.0), most) / most

    ends = done + middle
    pieces = [
        tag("rect", **_place(0, part(done)), class_="c0"),
        tag("rect", **_place(part(done), part(ends) - part(done)), class_="c0 faint"),
        tag(
            "rect",
            **_place(part(done + low), part(done + high) - part(done + low)),
            class_="between",
        ),
        tag("rect", x=f"{part(ends):.2f}%", y=0, width=2, height=14, class_="mark"),
    ]
    return tag("svg", tag("title", title), *pieces, class_="bar", role="img", aria_label=title)


def _place(at: float, width: float) -> dict[str, str | float]:
    return {"x": f"{at:.2f}%", "y": 1, "width": f"{max(width, 0.15):.2f}%", "height": 12}


def figure(caption: Child, drawing: Html, data: Html | None = None, note: Child = None) -> Html:
    """A plot with its caption above, and the same as a table for who cannot or will not see it."""
    return tag(
        "figure",
        tag("figcaption", caption),
        drawing,
        None if note is None else tag("p", note, class_="note"),
        None if data is None else tag("details", tag("summary", "The same as a table"), data),
    )


def data_table(headers: Sequence[str], rows: Sequence[Cells], *, kinds: str = "") -> Html:
    """The table behind a plot, cut to what a person may read."""
    cut = omitted_note(DATA_ROWS_MAX, len(rows), "rows")
    return join([grid(headers, rows[:DATA_ROWS_MAX], kinds=kinds), cut])


def small_multiples(figures: Sequence[Html]) -> Html:
    """Small plots side by side, as many as fit."""
    return tag("div", *figures, class_="multiples")


def legend(entries: Sequence[tuple[str, str]]) -> Html:
    """What the colours mean."""
    items = [
        tag(
            "li",
            tag("svg", tag("rect", width=12, height=12, class_=colour), width=12, height=12),
            name,
        )
        for colour, name in entries
    ]
    return tag("ul", *items, class_="legend")


def placeholder(text: str) -> Html:
    """Where a plot would be, if there were something to draw."""
    return tag("p", text, class_="nothing")


def activity_label(workflow: object, activity: object) -> Html:
    """An activity and the workflow it is of, the second in small letters."""
    return join([ellipsis(activity), tag("small", ellipsis(workflow))])
