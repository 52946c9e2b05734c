"""Versions: a median for each version of a workflow, with what lies between p10 and p90."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.cli.report.markup import Html, tag
from tocsin.cli.report.numbers import count, duration, short
from tocsin.cli.report.parts import truncated
from tocsin.cli.report.plots.frame import drawing, label, left_axis, line
from tocsin.cli.report.scales import Scale, seconds_ceiling

WIDTH, HEIGHT = 300.0, 170.0
LEFT, TOP, BASE = 52.0, 22.0, 142.0
CHANGE = 0.1  # a tenth more or less is called a change, as the table of versions does


@dataclass(frozen=True, slots=True)
class Version:
    name: str
    runs: int
    p10_s: float
    p50_s: float
    p90_s: float


def versions(title: str, found: Sequence[Version]) -> Html:
    """The oldest at the left; an arrow where the median went up or down by a tenth or more."""
    high, ticks = seconds_ceiling(max(each.p90_s for each in found), 3)
    y = Scale(0, high, BASE, TOP)
    width = (WIDTH - LEFT - 8) / len(found)
    chars = max(3, int(width / 6.2))
    drawn: list[Html] = [left_axis(y, ticks, short, left=LEFT, right=WIDTH - 8)]
    before: Version | None = None
    for number, each in enumerate(found):
        x = LEFT + (number + 0.5) * width
        if before is not None:
            drawn.append(line(x - width, y(before.p50_s), x, y(each.p50_s), "path"))
            drawn += _arrow(x, y(each.p90_s), each.p50_s / before.p50_s if before.p50_s else 1.0)
        drawn += [_stroke(x, y, each), label(x, BASE + 16, truncated(each.name, chars))]
        before = each
    return drawing(WIDTH, HEIGHT, title, *drawn)


def _stroke(x: float, y: Scale, each: Version) -> Html:
    text = (
        f"version {each.name}: median {duration(each.p50_s)}, one in ten under "
        f"{duration(each.p10_s)}, one in ten over {duration(each.p90_s)}, {count(each.runs)} runs"
    )
    return tag(
        "g",
        tag("title", text),
        tag("line", x1=x, y1=y(each.p10_s), x2=x, y2=y(each.p90_s), class_="range"),
        tag("circle", cx=x, cy=y(each.p50_s), r=4.5, class_="c0"),
    )


def _arrow(x: float, top: float, ratio: float) -> list[Html]:
    if abs(ratio - 1) < CHANGE:
        return []
    grew = ratio > 1
    percent = f"{abs(ratio - 1) * 100:.0f} %" if ratio < 2 else f"×{ratio:.2g}"
    text = f"{'▲' if grew else '▼'} {percent}"
    return [label(x, max(top - 7, 10), text, class_="worse" if grew else "better")]
