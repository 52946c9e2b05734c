"""Histogram: how long an activity takes, over a logarithmic axis, median and p90 marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count, duration, short
from tocsin.cli.report.plots.frame import bottom_axis, drawing, label, line, text_width
from tocsin.cli.report.scales import Scale, log_seconds_ticks

WIDTH, HEIGHT = 300.0, 150.0
TOP, BOTTOM, SIDE = 30.0, 122.0, 8.0
LEAST_S = 1e-3  # what took less is drawn as this: a logarithm has no nought
SHARP = 1.25  # durations nearer to each other than this get room around them


@dataclass(frozen=True, slots=True)
class Bin:
    low_s: float
    high_s: float
    count: int


def histogram(title: str, bins: Sequence[Bin], p50_s: float, p90_s: float) -> Html:
    """The bins as columns. Under the plot the durations, above it the two marks."""
    low = max(min(each.low_s for each in bins), LEAST_S)
    high = max(each.high_s for each in bins)
    if high < low * SHARP:
        low, high = low / SHARP, max(high, low) * SHARP
    x = Scale(low, high, SIDE, WIDTH - SIDE, is_log=True)
    y = Scale(0, max(each.count for each in bins) or 1, BOTTOM, TOP)
    columns = join(_column(each, x, y) for each in bins)
    marks = _marks(x(max(p50_s, LEAST_S)), x(max(p90_s, LEAST_S)), p50_s, p90_s)
    ticks = log_seconds_ticks(low, high, 4)
    return drawing(WIDTH, HEIGHT, title, columns, bottom_axis(x, ticks, short, y=BOTTOM), marks)


def _column(each: Bin, x: Scale, y: Scale) -> Html | None:
    if not each.count:
        return None
    left, right = x(max(each.low_s, LEAST_S)), x(max(each.high_s, LEAST_S))
    if right - left < 3:
        left, right = left - 1.5, left + 1.5
    text = f"{count(each.count)} took {duration(each.low_s)} to {duration(each.high_s)}"
    return tag(
        "rect",
        tag("title", text),
        x=left + 0.5,
        y=min(y(each.count), BOTTOM - 1),
        width=max(right - left - 1, 1.0),
        height=max(BOTTOM - y(each.count), 1.0),
        class_="c0",
    )


def _marks(x50: float, x90: float, p50_s: float, p90_s: float) -> Html:
    """The name of the median ends near its line, that of p90 begins there, each in its row."""
    median, ninth = f"median {duration(p50_s)}", f"p90 {duration(p90_s)}"
    start50, end50 = _placed(x50, median, to_the_left=True)
    start90, end90 = _placed(x90, ninth, to_the_left=False)
    is_crossed = start90 - 2 < x50 < end90 + 2
    return join(
        [
            line(x50, TOP - 3 if is_crossed else 13, x50, BOTTOM, "median"),
            line(x90, TOP - 3, x90, BOTTOM, "p90"),
            label((start50 + end50) / 2, 10, median, "middle", "mark"),
            label((start90 + end90) / 2, 23, ninth, "middle", "mark soft"),
        ]
    )


def _placed(x: float, text: str, *, to_the_left: bool) -> tuple[float, float]:
    """Where a name begins and ends, moved so that it stays inside."""
    width = text_width(text)
    start = x - 0.8 * width if to_the_left else x - 0.2 * width
    start = min(max(start, SIDE), WIDTH - SIDE - width)
    return start, start + width
