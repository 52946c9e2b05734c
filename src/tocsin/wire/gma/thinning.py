"""Thinning: of the events that pass by, at most one per period and source.

Who makes events to order makes one per period for each who asks. Who passes on what others made
can only leave some out: the first of a source goes through, then none until its period is over.
"""

from __future__ import annotations

from collections import OrderedDict

SOURCES_MAX = 10_000  # those silent for longest are forgotten first
# A source with the same period is never quite on time: what comes a little early counts as due.
SLACK = 0.1


class Thinning:
    """For one subscription with a Period."""

    def __init__(self, period_s: float) -> None:
        self._period_ns = int(period_s * 1e9)
        self._slack_ns = int(period_s * 1e9 * SLACK)
        self._due_ns: OrderedDict[str, int] = OrderedDict()

    def passes(self, source: str, now_ns: int) -> bool:
        """True if an event of this source is due at this time."""
        due_ns = self._due_ns.pop(source, now_ns)
        passes = now_ns + self._slack_ns >= due_ns
        if passes:
            # Counted from when it was due, so that those a little early and a little late even
            # out; from when it came, if that was long after, so that none is owed for a silence.
            due_ns = max(due_ns, now_ns - self._slack_ns) + self._period_ns
        self._due_ns[source] = due_ns
        if len(self._due_ns) > SOURCES_MAX:
            self._due_ns.popitem(last=False)
        return passes
