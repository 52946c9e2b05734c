"""Readings of the recent past, so that everybody gets the changes of their own last period.

Who asks every second and who asks every hour are served from the same readings: each is compared
with the one that is about a period old. So that there is one for every period, however many were
taken in between, few are kept of long ago and many of just now.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Generic, TypeVar

R = TypeVar("R")

READINGS_MAX = 48  # from a second to a week, neighbours are less than a third apart
INTERVAL_S_MIN = 0.1  # kernels count time in hundredths of a second: below this, rates are noise


@dataclass(frozen=True, slots=True)
class Reading(Generic[R]):
    """A reading: when it was taken, by a clock that only goes forward, and what that cost."""

    reading: R
    at_s: float
    time: str
    cost_s: float = 0.0


class History(Generic[R]):
    """The newest reading, and some of those before it."""

    def __init__(self, size_max: int = READINGS_MAX) -> None:
        assert size_max >= 2
        self.size_max = size_max
        self._taken: list[Reading[R]] = []  # oldest first

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def newest(self) -> Reading[R] | None:
        return self._taken[-1] if self._taken else None

    def add(self, taken: Reading[R]) -> None:
        """Keep it, and give up the one that is missed least if there are too many."""
        if self._taken and taken.at_s <= self._taken[-1].at_s:
            self._taken[-1] = taken
            return
        self._taken.append(taken)
        if len(self._taken) > self.size_max:
            del self._taken[self._missed_least()]

    def _missed_least(self) -> int:
        """The one whose neighbours are nearest to each other, seen from now."""
        times_s = [taken.at_s for taken in self._taken]
        now_s = times_s[-1]
        if self.size_max == 2:
            return 0

        def gap(index: int) -> float:
            return (times_s[index + 1] - times_s[index - 1]) / (now_s - times_s[index - 1])

        # The oldest goes when it has become much older than anybody's period could be.
        if now_s - times_s[0] > AGE_S_MAX:
            return 0
        return min(range(1, len(times_s) - 1), key=gap)

    def about(self, period_s: float, before: Reading[R]) -> Reading[R] | None:
        """The reading that was taken about a period before this one, if there is any."""
        best: Reading[R] | None = None
        best_ratio = 0.0
        for taken in self._taken:
            age_s = before.at_s - taken.at_s
            if age_s < INTERVAL_S_MIN:
                break
            ratio = abs(log(age_s / period_s))
            if best is None or ratio < best_ratio:
                best, best_ratio = taken, ratio
        return best


AGE_S_MAX = 366 * 86_400.0  # the longest Period there may be
