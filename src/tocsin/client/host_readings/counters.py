"""Counters to rates: two counts and the time between them in, how fast it went out. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# Kernels count in words of these sizes. A count that fell from the last quarter of one to its
# first quarter went over the end; one that fell otherwise was set back to zero.
WORDS = (2**32, 2**64)


def growth(before: int, after: int, *, end: int | None = None) -> int:
    """How much was counted in between. `end` is where the counter starts over, if that is known.

    After a reset it is what was counted since: at least that much, and never less than nothing.
    """
    if after >= before:
        return after - before
    if end is not None:
        return after + end - before if before <= end else after
    for word in WORDS:
        if 3 * word // 4 <= before < word:
            return after + word - before if after < word // 4 else after
    return max(after, 0)


def rate(before: int, after: int, interval_s: float, *, end: int | None = None) -> float | None:
    """How much a second; None if no time went by, or the clock went backwards."""
    if interval_s <= 0:
        return None
    return growth(before, after, end=end) / interval_s


def shares(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How the time in between was spent, in percent of all of it; nothing if there was none.

    Linux lets the time spent idle and waiting fall a little now and then, which counts as none.
    """
    spent = {
        name: max(seconds - before.get(name, 0.0), 0.0)
        for name, seconds in after.items()
        if seconds >= 0
    }
    whole = sum(spent.values())
    if not 0 < whole < float("inf"):
        return {}
    return {name: min(100.0 * part / whole, 100.0) for name, part in spent.items()}
