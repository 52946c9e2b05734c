"""PeriodFilter: of the events that pass by, at most one sample per period and source.

Who makes events to order makes one per period for each who asks. Who passes on what others made
can only leave some out: the first goes through, then none until the period is over. Events of one
source with one time stamp and different texts are about different things, such as the disks of a
host: they are one sample, and go together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tocsin.event.event import Event

SOURCES_MAX = 10_000  # those silent for longest are forgotten first
SOURCES_OF_ALL_MAX = 300_000  # some 50 MB; each gets its share when there are many
SOURCES_MIN = 100
THINGS_MAX = 1_000  # of one sample
# A source with the same period is never quite on time: what comes a little early counts as due.
SLACK = 0.1


@dataclass(slots=True)
class _Source:
    due_ns: int
    stamp: str | None = None  # of the sample that passed last
    things: frozenset[int] = frozenset()  # that it had an event about


class PeriodFilter:
    """For one subscription with a Period."""

    def __init__(self, period_s: float, count: Callable[[], int] = lambda: 1) -> None:
        """`count` says how many of these there are now."""
        self._count = count
        self._period_ns = int(period_s * 1e9)
        self._slack_ns = int(period_s * 1e9 * SLACK)
        self._sources: OrderedDict[str, _Source] = OrderedDict()

    def passes(self, event: Event, now_ns: int) -> bool:
        """True if the event is due, or belongs to the sample that was."""
        source = self._sources.pop(event.source, None) or _Source(now_ns)
        self._sources[event.source] = source
        if len(self._sources) > SOURCES_MIN:
            share = max(SOURCES_MIN, SOURCES_OF_ALL_MAX // max(1, self._count()))
            while len(self._sources) > min(SOURCES_MAX, share):
                self._sources.popitem(last=False)
        thing = _thing(event)
        if event.time is not None and event.time == source.stamp and thing not in source.things:
            if len(source.things) < THINGS_MAX:
                source.things |= {thing}
                return True
            return False
        if now_ns + self._slack_ns < source.due_ns:
            return False
        # Counted from when it was due, so that those a little early and a little late even out;
        # from when it came, if that was long after, so that none is owed for a silence.
        source.due_ns = max(source.due_ns, now_ns - self._slack_ns) + self._period_ns
        source.stamp, source.things = event.time, frozenset((thing,))
        return True


def _thing(event: Event) -> int:
    """What the event is about: the texts in it distinguish disks or interfaces."""
    return hash(tuple(value for value in event.attributes.values() if isinstance(value, str)))
