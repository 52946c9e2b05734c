"""Numbers for people: two or three digits, and the unit that fits."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from tocsin.cli.format import size
from tocsin.monitor.durations import duration_text

__all__ = ["count", "day", "duration", "hours", "moment", "ratio", "share", "short", "size"]

UNKNOWN = "–"

_TICK_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))


def duration(seconds: float | None) -> str:
    """1.4 s, 3 min 20 s, 2 h 5 min; under a tenth of a second in ms."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if 0 < seconds < 0.1:
        return f"{seconds * 1000:.2g} ms"
    return "0 s" if seconds <= 0 else duration_text(seconds)


def short(seconds: float) -> str:
    """A duration on an axis: 5 ms, 30 s, 2 min, 1.5 h."""
    for size_s, unit in _TICK_UNITS:
        if seconds >= size_s * 0.9995:
            return f"{seconds / size_s:.3g} {unit}"
    return "0" if seconds <= 0 else f"{seconds * 1e6:.2g} µs"


def hours(seconds: float | None) -> str:
    """Work in hours, whatever its size: columns of them can be compared."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    found = seconds / 3_600
    if found and found < 0.05:
        return "< 0.1 h"
    return f"{found:,.1f} h" if found < 100 else f"{found:,.0f} h"


def count(value: float | None) -> str:
    """A whole number with its thousands apart; from ten million on in millions."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if abs(value) >= 9.995e9:
        return f"{value / 1e9:,.1f} G"
    return f"{value / 1e6:,.1f} M" if abs(value) >= 9.995e6 else f"{value:,.0f}"


def share(part: float | None, whole: float | None = 1.0) -> str:
    """A part in percent; what is little but there is never called nothing."""
    if part is None or not whole or not math.isfinite(part / whole):
        return UNKNOWN
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def ratio(value: float | None) -> str:
    """How a median changed: 32 % slower, 2.4 times slower, 10 % faster, as before."""
    if value is None or not math.isfinite(value) or value <= 0:
        return UNKNOWN
    if abs(value - 1) < 0.02:
        return "as before"
    if value >= 2:
        return f"{value:.2g} times slower" if value < 100 else f"{value:,.0f} times slower"
    word = "slower" if value > 1 else "faster"
    return f"{abs(value - 1) * 100:.0f} % {word}"


def moment(when: datetime | None) -> str:
    """2026-11-16 09:30, in UTC, as all times of the page."""
    return UNKNOWN if when is None else f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"


def day(when: datetime | None) -> str:
    return UNKNOWN if when is None else f"{when.astimezone(UTC):%Y-%m-%d}"
