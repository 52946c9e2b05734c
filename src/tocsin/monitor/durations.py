"""Durations as people say them."""

from __future__ import annotations

import math

MINUTE_S = 60
HOUR_S = 3_600
DAY_S = 86_400
YEAR_S = 31_556_952  # of the calendar, on average
SHORTEST_S = 0.05  # less is no different from nothing to a person


def duration_text(duration_s: float) -> str:
    """A duration in its two largest units: 1.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if not math.isfinite(duration_s):
        return "unknown time"
    if duration_s < SHORTEST_S:
        return "under 0.1 s"
    if duration_s < 9.95:
        return f"{duration_s:.1f} s"
    whole_s = round(duration_s)
    if whole_s < MINUTE_S:
        return f"{whole_s} s"
    if whole_s < HOUR_S:
        return _two(whole_s // MINUTE_S, "min", whole_s % MINUTE_S, "s")
    minutes = round(duration_s / MINUTE_S)
    if minutes < DAY_S // MINUTE_S:
        return _two(minutes // 60, "h", minutes % 60, "min")
    hours = round(duration_s / HOUR_S)
    return _two(hours // 24, "d", hours % 24, "h")


def rough_duration_text(duration_s: float) -> str:
    """A duration of which only the size matters: 6 min, about 3 days, about 4 years."""
    if duration_s < 2 * DAY_S:
        return duration_text(duration_s)
    if duration_s < 2 * YEAR_S:
        return f"about {duration_s / DAY_S:,.0f} days"
    return f"about {duration_s / YEAR_S:,.0f} years"


def _two(large: int, unit: str, small: int, smaller_unit: str) -> str:
    return f"{large:,} {unit} {small} {smaller_unit}" if small else f"{large:,} {unit}"
