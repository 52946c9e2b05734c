"""Scatter: a sample of attempts by the size of their input, and the line that was fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import duration, short, size
from tocsin.cli.report.plots.frame import bottom_axis, drawing, left_axis
from tocsin.cli.report.scales import Scale, ceiling, seconds_ceiling

WIDTH, HEIGHT = 300.0, 190.0
LEFT, TOP, BASE = 52.0, 10.0, 160.0


@dataclass(frozen=True, slots=True)
class Line:
    """value = intercept + slope * bytes, usually within `error` of the truth."""

    intercept: float
    slope: float
    error: float
    low_bytes: float
    high_bytes: float

    def at(self, size_bytes: float) -> float:
        return max(self.intercept + self.slope * size_bytes, 0.0)


def scatter(title: str, points: Sequence[tuple[float, float]], fitted: Line) -> Html:
    """Points are (bytes, seconds). What lies above the plot is drawn at its upper edge."""
    most_bytes = max([fitted.high_bytes, *(x for x, _ in points)])
    # One attempt that took a day must not press all others to the ground.
    heights = sorted(y for _, y in points)
    usual = heights[int(0.99 * (len(heights) - 1))] * 1.1 if heights else 0.0
    most_s = max(usual, fitted.at(fitted.high_bytes) + fitted.error)
    x_high, x_ticks = ceiling(most_bytes / _unit(most_bytes), 3)
    y_high, y_ticks = seconds_ceiling(most_s, 3)
    x = Scale(0, x_high * _unit(most_bytes), LEFT, WIDTH - 8)
    y = Scale(0, y_high, BASE, TOP)
    places = [tick * _unit(most_bytes) for tick in x_ticks]
    dots = join(
        tag(
            "circle",
            tag("title", f"{size(at)}: {duration(took)}"),
            cx=x(at),
            cy=y(took),
            r=2.2,
            class_="dot",
        )
        for at, took in points
    )
    return drawing(
        WIDTH,
        HEIGHT,
        title,
        left_axis(y, y_ticks, short, left=LEFT, right=WIDTH - 8),
        bottom_axis(x, places, size, y=BASE),
        _band(x, y, fitted),
        dots,
        _fit(x, y, fitted),
    )


def _unit(value: float) -> float:
    unit = 1.0
    while value >= 1_000 * unit:
        unit *= 1_000
    return unit


def _band(x: Scale, y: Scale, fitted: Line) -> Html:
    low, high, error = fitted.low_bytes, fitted.high_bytes, fitted.error
    corners = [
        (x(low), y(fitted.at(low) + error)),
        (x(high), y(fitted.at(high) + error)),
        (x(high), y(max(fitted.at(high) - error, 0.0))),
        (x(low), y(max(fitted.at(low) - error, 0.0))),
    ]
    return tag("polygon", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), class_="band")


def _fit(x: Scale, y: Scale, fitted: Line) -> Html:
    low, high = fitted.low_bytes, fitted.high_bytes
    return tag(
        "line",
        x1=x(low),
        y1=y(fitted.at(low)),
        x2=x(high),
        y2=y(fitted.at(high)),
        class_="fit",
    )
