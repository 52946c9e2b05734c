"""Over time: stacked columns, small areas and heat maps, one place a part of the period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tocsin.cli.report.markup import Html, join, tag
from tocsin.cli.report.numbers import count
from tocsin.cli.report.parts import data_table, figure, legend, truncated
from tocsin.cli.report.plots.frame import drawing, label, left_axis, line, text_width
from tocsin.cli.report.scales import Scale, TimeBuckets, ceiling, time_ticks

WIDTH = 960.0
COLUMNS_HEIGHT, COLUMNS_LEFT, COLUMNS_BASE = 220.0, 56.0, 190.0
HEAT_LEFT, HEAT_ROW = 190.0, 20.0
HEAT_STEPS = 7  # as many shades as the style sheet has
NAME_CHARS_MAX = 27
SMALL_WIDTH, SMALL_HEIGHT, SMALL_BASE, SMALL_TOP = 300.0, 96.0, 76.0, 8.0

NumberFormat = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """A value for each part of the period."""

    name: str
    values: Sequence[float]
    colour: str = "c0"


def columns(
    title: str, buckets: TimeBuckets, stacked: Sequence[Series], number_format: NumberFormat
) -> Html:
    """One column a part, the series on top of each other."""
    sums = [sum(each.values[bucket] for each in stacked) for bucket in range(buckets.count)]
    high, ticks = ceiling(max(sums, default=0))
    y = Scale(0, high, COLUMNS_BASE, 12)
    width = (WIDTH - COLUMNS_LEFT - 4) / buckets.count
    gap = min(1.5, width * 0.2)
    drawn: list[Html] = []
    for bucket in range(buckets.count):
        below = 0.0
        for each in stacked:
            value = each.values[bucket]
            if value <= 0:
                continue
            top, bottom = y(below + value), y(below)
            below += value
            rect = tag(
                "rect",
                tag("title", f"{buckets.label(bucket)}: {number_format(value)} {each.name}"),
                x=COLUMNS_LEFT + bucket * width + gap / 2,
                y=top,
                width=width - gap,
                height=max(bottom - top, 0.5),
                class_=each.colour,
            )
            drawn.append(rect)
    axis = left_axis(y, ticks, number_format, left=COLUMNS_LEFT, right=WIDTH - 4)
    times = _times(buckets, COLUMNS_LEFT, width, COLUMNS_BASE, ticks_max=9)
    return drawing(WIDTH, COLUMNS_HEIGHT, title, axis, *drawn, times, class_="plot wide")


def counts_over_time(title: str, buckets: TimeBuckets, stacked: Sequence[Series]) -> Html:
    """Columns of counts with their legend and the table behind them."""
    names = [each.name for each in stacked]
    listed = [
        [buckets.label(bucket), *(count(each.values[bucket]) for each in stacked)]
        for bucket in range(buckets.count)
    ]
    return figure(
        title,
        join(
            [legend([(e.colour, e.name) for e in stacked]), columns(title, buckets, stacked, count)]
        ),
        data_table([buckets.step_name(), *names], listed, kinds="." + "n" * len(names)),
    )


def area(
    title: str, buckets: TimeBuckets, values: Sequence[float], number_format: NumberFormat
) -> Html:
    """A small one: the top of it is named, and the first and the last moment."""
    most = max(values, default=0.0) or 1.0
    y = Scale(0, most, SMALL_BASE, SMALL_TOP)
    width = (SMALL_WIDTH - 16) / buckets.count
    steps = [f"M8 {SMALL_BASE:.1f}"]
    for bucket, value in enumerate(values):
        steps.append(f"V{y(value):.1f}H{8 + (bucket + 1) * width:.1f}")
    steps.append(f"V{SMALL_BASE:.1f}Z")
    spots = join(
        tag(
            "rect",
            tag("title", f"{buckets.label(bucket)}: {number_format(value)}"),
            x=8 + bucket * width,
            y=SMALL_TOP,
            width=width,
            height=SMALL_BASE - SMALL_TOP,
            class_="spot",
        )
        for bucket, value in enumerate(values)
    )
    last = time_ticks(buckets, buckets.count)[-1][1] if buckets.count > 1 else ""
    return drawing(
        SMALL_WIDTH,
        SMALL_HEIGHT,
        title,
        tag("path", d="".join(steps), class_="c0"),
        line(8, SMALL_BASE, SMALL_WIDTH - 8, SMALL_BASE, "axis"),
        label(8, SMALL_BASE + 15, time_ticks(buckets, buckets.count)[0][1], "start"),
        label(SMALL_WIDTH - 8, SMALL_BASE + 15, last, "end"),
        spots,
    )


def heat_map(
    title: str,
    buckets: TimeBuckets,
    rows: Sequence[tuple[str, Sequence[float | None]]],
    number_format: NumberFormat,
    *,
    least_top: float = 0.0,
) -> tuple[Html, Html]:
    """One row a name, one cell a part, stronger for more; and the scale that goes with it.

    The scale ends at the greatest value, and not below `least_top`.
    """
    known = [value for _, values in rows for value in values if value is not None]
    most = max([least_top, *known]) or 1.0
    width = (WIDTH - HEAT_LEFT - 4) / buckets.count
    base = 6 + HEAT_ROW * len(rows)
    drawn: list[Html] = []
    for number, (name, values) in enumerate(rows):
        y = 6 + number * HEAT_ROW
        text = truncated(name, NAME_CHARS_MAX)
        drawn.append(
            tag(
                "text",
                tag("title", name),
                text,
                x=HEAT_LEFT - 8,
                y=y + 14,
                class_="name",
                text_anchor="end",
            )
        )
        drawn += [
            tag(
                "rect",
                tag("title", f"{name}, {buckets.label(bucket)}: {number_format(value)}"),
                x=HEAT_LEFT + bucket * width,
                y=y,
                width=width,
                height=HEAT_ROW - 2,
                class_=f"h{_shade(value, most)}",
            )
            for bucket, value in enumerate(values)
            if value is not None
        ]
    times = _times(buckets, HEAT_LEFT, width, base, ticks_max=8)
    return drawing(WIDTH, base + 26, title, *drawn, times, class_="plot wide"), _shades(
        most, number_format
    )


def _shade(value: float, most: float) -> int:
    """0 is nothing at all, and nothing else is."""
    return 0 if value <= 0 else min(HEAT_STEPS, 1 + int(value / most * HEAT_STEPS))


def _shades(most: float, number_format: NumberFormat) -> Html:
    swatches = [
        tag("rect", x=number * 26, y=0, width=25, height=12, class_=f"h{number}")
        for number in range(HEAT_STEPS + 1)
    ]
    width = 26 * (HEAT_STEPS + 1)
    scale = tag("svg", *swatches, width=width, height=12, aria_hidden="true")
    return tag("p", f"{number_format(0)} ", scale, f" {number_format(most)}", class_="shades")


def _times(buckets: TimeBuckets, left: float, width: float, base: float, ticks_max: int) -> Html:
    drawn = [line(left, base, left + width * buckets.count, base, "axis")]
    for bucket, name in time_ticks(buckets, ticks_max):
        x = left + bucket * width
        start = min(x, left + width * buckets.count - text_width(name))
        drawn += [line(x, base, x, base + 4, "axis"), label(start, base + 17, name, "start")]
    return join(drawn)
