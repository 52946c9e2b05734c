"""Schedules: the ticks of a Period, and waits between attempts.

Time and chance are arguments, in seconds of a monotonic clock and as a number from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

PAUSE_S_MIN = 0.1
PAUSE_S_MAX = 30.0
_DOUBLINGS_MAX = 16


@dataclass(slots=True)
class PeriodTicks:
    """One subscription's own schedule: a tick at its start, and one each Period after that.

    Ticks keep to their grid however late they are noticed; missed ones are skipped.
    """

    began_s: float
    period_s: float
    count: int = 0  # ticks that are past, or skipped

    def next_s(self, now_s: float) -> float:
        """When the next tick is; each call goes on by at least one."""
        # A timer may go off a little early: the tick it was set for must not come again.
        self.count = max(self.count + 1, floor((now_s - self.began_s) / self.period_s) + 1)
        return self.began_s + self.count * self.period_s


def pause_s(attempt: int, chance: float) -> float:
    """How long to wait after so many attempts in vain: doubling, capped, no less than half."""
    assert 0 <= chance <= 1
    whole_s = min(PAUSE_S_MIN * (1 << min(attempt, _DOUBLINGS_MAX)), PAUSE_S_MAX)
    return whole_s * (1 + chance) / 2
