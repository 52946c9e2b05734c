"""Thinning: of the events that pass by, at most one per period and thing that they are about.

Who makes events to order makes one per period for each who asks. Who passes on what others made
can only leave some out: the first goes through, then none until the period is over. What an event
is about is its source and the texts in it: each disk and each interface of a host is another thing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from tocsin.event.event import Event

THINGS_MAX = 10_000  # those silent for longest are forgotten first
# A producer with the same period is never quite on time: what comes a little early counts as due.
SLACK = 0.1


def thing(event: Event) -> int:
    """What the event is about, as a number to know it again by."""
    texts = [value for value in event.attributes.values() if isinstance(value, str)]
    return hash((event.source, *texts))


class Thinning:
    """For one subscription with a Period."""

    def __init__(self, period_s: float) -> None:
        self._period_ns = int(period_s * 1e9)
        self._slack_ns = int(period_s * 1e9 * SLACK)
        self._due_ns: OrderedDict[Hashable, int] = OrderedDict()

    def passes(self, about: Hashable, now_ns: int) -> bool:
        """True if an event about this is due at this time."""
        due_ns = self._due_ns.pop(about, now_ns)
        passes = now_ns + self._slack_ns >= due_ns
        if passes:
            # Counted from when it was due, so that those a little early and a little late even
            # out; from when it came, if that was long after, so that none is owed for a silence.
            due_ns = max(due_ns, now_ns - self._slack_ns) + self._period_ns
        self._due_ns[about] = due_ns
        if len(self._due_ns) > THINGS_MAX:
            self._due_ns.popitem(last=False)
        return passes
