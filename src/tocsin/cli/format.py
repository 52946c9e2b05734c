"""Values as text for a person: durations, times, sizes, states, progress of runs.

Exact values are what `--json` is for; here a time is local and a number has three digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tocsin.monitor.end_states import done_count

Clock = Callable[[], datetime]

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
BAR_CELLS = 20
NAMED_MAX = 3  # activities that are named in a line

ENDED = frozenset({"completed", "failed", "aborted"})
COLOURS = {
    "running": "36",
    "retrying": "33",
    "completed": "32",
    "succeeded": "32",
    "cached": "32",
    "failed": "31",
    "aborted": "31",
    "cancelled": "33",
    "lost": "33",
    "held": "33",
    "suspended": "33",
}

_UNITS = {"PERCENT": "%", "KiloW-HR": " kWh", "W": " W", "GM": " g"}


def duration_text(duration_s: float | None) -> str:
    """A duration with its two largest units: 850ms, 4.2s, 3m20s, 2h05m, 3d04h."""
    if duration_s is None:
        return "-"
    whole = round(duration_s)
    if duration_s < 0.9995:
        return f"{max(0.0, duration_s) * 1000:.0f}ms"
    if duration_s < 9.95:
        return f"{duration_s:.1f}s"
    if whole < MINUTE_S:
        return f"{whole}s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S}m{whole % MINUTE_S:02}s"
    minutes = round(duration_s / MINUTE_S)
    if minutes < DAY_S // MINUTE_S:
        return f"{minutes // 60}h{minutes % 60:02}m"
    hours = round(duration_s / HOUR_S)
    return f"{hours // 24}d{hours % 24:02}h"


def instant(text: str | None) -> datetime | None:
    """A time of the API in this machine's zone."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def at(text: str | None, now: datetime, *, to_the_second: bool = False) -> str:
    """A moment as short as possible `now`: today by the clock, else with the day."""
    moment = instant(text)
    if moment is None:
        return text or "-"
    here = now.astimezone()
    if moment.date() == here.date():
        return f"{moment:%H:%M:%S}"
    day = f"{moment:%b %d}" if abs((moment - here).days) < 180 else f"{moment:%Y-%m-%d}"
    return f"{day} {moment:%H:%M:%S}" if to_the_second else f"{day} {moment:%H:%M}"


def size(count: float) -> str:
    """Bytes: 512 B, 1.2 kB, 3.4 GB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.4g} PB"


def measured(concept: str, value: object) -> str:
    """The value of a resource with the unit that the ontology gives it."""
    number = _number(value)
    if number is None:
        return str(value)
    unit = _unit(concept)
    if unit == "SEC":
        return duration_text(number)
    if unit.startswith("BYTE"):
        return size(number) + ("/s" if unit.endswith("SEC") else "")
    shown = f"{number:,.0f}" if number == int(number) else f"{number:.3g}"
    return f"{shown}{_UNITS.get(unit, '')}"


def _unit(concept: str) -> str:
    from tocsin.ontology import built_in

    known = built_in().concepts.get(concept)
    return known.unit if known is not None else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None


def spaced(concept: str) -> str:
    """The name of a concept with spaces: CpuSeconds is `cpu seconds`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in concept).split()
    return " ".join(words) or concept


def percent(fraction: float | None) -> str:
    """A fraction in percent. Only a whole is shown as 100%."""
    if fraction is None:
        return "-"
    shown = int(fraction * 100) if fraction < 1 else round(fraction * 100)
    return f"{shown}%"


def bar(fraction: float | None, cells: int = BAR_CELLS) -> str:
    """A bar for a fraction; an empty one where it is not known."""
    full = 0 if fraction is None else max(0, min(cells, int(fraction * cells)))
    return "█" * full + "░" * (cells - full)


def counted(run: Mapping[str, Any], *, named: bool = False) -> str:
    """How many activities are done, of how many: `9 of 20`; `9 so far` without a plan.

    Activities beyond the plan count too, as they do in the percentage.
    """
    activities = run.get("activities") or {}
    done = done_count(activities, str(run.get("state")))
    total, known = activities.get("total"), activities.get("known") or 0
    if total is not None or (run.get("state") in ENDED and activities.get("lost")):
        whole = max(int(total or 0), known)
        return f"{done:,} of {whole:,}{_activities(whole) if named else ''}"
    text = f"{done:,}{_activities(done) if named else ''}"
    return text + ("" if run.get("state") in ENDED else " so far")


def _activities(count: int) -> str:
    return " activity" if count == 1 else " activities"


def progress(run: Mapping[str, Any]) -> str:
    """The progress of a run in a table."""
    fraction = run.get("progress")
    return counted(run) if fraction is None else f"{percent(fraction):>4} {counted(run)}"


def states(activities: Mapping[str, Any]) -> str:
    """The other states of a run's activities: `3 running, 1 failed`."""
    shown = ("running", "queued", "held", "retrying", "failed", "cancelled", "lost")
    of_these = ("skipped", "cached", "retried")  # however they ended
    names = (*shown, *of_these)
    return ", ".join(f"{activities[name]:,} {name}" for name in names if activities.get(name))


def left(estimate: Mapping[str, Any] | None, *, brief: bool = False) -> str:
    """The time left in a table, with its interval where there is room."""
    if not estimate or estimate.get("remaining_s") is None:
        return "-"
    if brief:
        return duration_text(estimate["remaining_s"])
    low, high = estimate.get("low_s"), estimate.get("high_s")
    between = (
        "" if low is None or high is None else f" ({duration_text(low)} to {duration_text(high)})"
    )
    return f"{duration_text(estimate['remaining_s'])}{between}"


def basis(estimate: Mapping[str, Any]) -> str:
    """The basis of an estimate, and how far off such estimates were."""
    runs, error = estimate.get("past_runs"), estimate.get("past_error")
    attempts = (estimate.get("learned") or {}).get("attempts")
    if runs:
        text = f"from {runs:,} past run{'' if runs == 1 else 's'}"
    elif attempts:
        text = "from the tables: no past run to learn from"
    else:
        text = "from this run alone: no past run to learn from"
    if error is not None:
        text += f", usually off by {percent(error)}"
    return text + (f"; method: {estimate['method']}" if estimate.get("method") else "")


def table_origin(answer: Mapping[str, Any]) -> str | None:
    """Which of the pipeline's tables an answer comes from, their age, and problems with them."""
    learned = answer.get("learned") or {}
    parts: list[str] = []
    attempts, age_s = learned.get("attempts"), learned.get("age_s")
    if attempts and age_s is not None:
        plural = "" if attempts == 1 else "s"
        since, until = (instant(learned.get(name)) for name in ("since", "until"))
        origin = [f"from {attempts:,} past attempt{plural} in tables made {ago(age_s)}"]
        parts.append(", ".join([*origin, *window_text(since, until)]))
        if learned.get("old"):
            parts.append("they are old: `tocsin pipeline run` rebuilds them")
        others = learned.get("other_versions") or ()
        if others:
            more = f" and {len(others) - NAMED_MAX:,} more" if len(others) > NAMED_MAX else ""
            named = ", ".join(map(str, others[:NAMED_MAX]))
            parts.append(f"of other versions for {named}{more}")
    if learned.get("problem"):
        parts.append(str(learned["problem"]))
    return "; ".join(parts) or None


def window_text(since: datetime | None, until: datetime | None) -> list[str]:
    """The time window that tables cover, if not everything; in UTC, as the pipeline's days."""
    first = None if since is None else _to_the_minute(since)
    end = None if until is None else _to_the_minute(until)
    if first is not None and end is not None:
        return [f"of what was received from {first} to {end} UTC"]
    if first is not None:
        return [f"of what was received since {first} UTC"]
    return [] if end is None else [f"of what was received before {end} UTC"]


def _to_the_minute(moment: datetime) -> str:
    """Or to the second, where it has any."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def ago(age_s: float) -> str:
    """How long ago, in one unit: 40 s ago, 3 h ago, 12 days ago."""
    if age_s >= 2 * DAY_S:
        return f"{age_s // DAY_S:,.0f} days ago"
    if age_s >= HOUR_S:
        return f"{age_s // HOUR_S:.0f} h ago"
    if age_s >= MINUTE_S:
        return f"{age_s // MINUTE_S:.0f} min ago"
    return f"{age_s:.0f} s ago"


def excerpt(text: str, lines_max: int) -> Iterator[str]:
    """The last lines of a text, and how many came before them."""
    lines = text.rstrip().splitlines()
    if len(lines) > lines_max:
        yield f"... {len(lines) - lines_max:,} lines before"
    yield from lines[-lines_max:]
