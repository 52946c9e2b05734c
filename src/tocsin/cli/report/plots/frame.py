"""Frame: what plots share. The drawing itself, axes, grid lines, labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tocsin.cli.report.markup import Child, Html, join, tag
from tocsin.cli.report.scales import Scale

TEXT_HEIGHT = 11.0
CHAR_WIDTH = 6.3  # of its letters, on average and rather too much
GAP = 6.0


def drawing(width: float, height: float, title: str, *pieces: Child, class_: str = "plot") -> Html:
    """An SVG image with a label for screen readers."""
    return tag(
        "svg",
        tag("title", title),
        *pieces,
        class_=class_,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
    )


def label(x: float, y: float, text: str, anchor: str = "middle", class_: str = "tick") -> Html:
    return tag("text", text, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def left_axis(
    scale: Scale,
    ticks: Sequence[float],
    number_format: Callable[[float], str],
    *,
    left: float,
    right: float,
) -> Html:
    """Grid lines over the whole width, each with its value at the left."""
    return join(
        join(
            [
                line(left, scale(tick), right, scale(tick), "grid"),
                label(left - 6, scale(tick) + 4, number_format(tick), "end"),
            ]
        )
        for tick in ticks
    )


def bottom_axis(
    scale: Scale, ticks: Sequence[float], number_format: Callable[[float], str], *, y: float
) -> Html:
    """Values under the plot, moved so that they stay inside; one that finds no room is left out."""
    drawn = [line(scale.start, y, scale.end, y, "axis")]
    free = scale.start - GAP
    for tick in ticks:
        x, text = scale(tick), number_format(tick)
        width = text_width(text)
        start = min(max(x - width / 2, scale.start), scale.end - width)
        drawn.append(line(x, y, x, y + 4, "axis"))
        if start >= free + GAP:
            drawn.append(label(start, y + 4 + TEXT_HEIGHT, text, "start"))
            free = start + width
    return join(drawn)


def text_width(text: str) -> float:
    """About how wide a text is."""
    return CHAR_WIDTH * len(text)
