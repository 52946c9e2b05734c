"""Asks the probes, and shares what they read among all who ask at about the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic, thread_time, time_ns
from typing import Any

from tocsin.agent.elements import Elements, Previous
from tocsin.agent.history import History, Reading
from tocsin.agent.probes import PROBES, Probe
from tocsin.errors import BadMessage, CannotMeasure, TocsinError
from tocsin.event.instant import rfc3339
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.gma.messages import Element, Parameters, PerformanceEvent
from tocsin.wire.gma.names import HOST_NAME, PERIOD, EventName
from tocsin.wire.gma.parameters import period_of

SampleRequest = Mapping[str, Scalar | Quantity]

PERIOD_S = 10.0
# A reading serves everybody who asks within a tenth of their period, or half a second ...
SHARED_PERIODS, SHARED_S_MAX = 0.1, 0.5
# ... and, however often somebody asks, no probe takes more than a fiftieth of one processor.
COST_RATIO = 50.0
NAMED_MAX = 12  # of what there is, in an error

Clock = Callable[[], float]


def stamp_now() -> str:
    """The time, as events have it."""
    return rfc3339(time_ns())


class Monitor:
    """What can be measured on this machine (`probes`), and why the rest cannot (`missing`).

    The first reading of each probe is taken here, so that there is one to compare with. May be
    used by several threads.
    """

    def __init__(
        self,
        host: str,
        probes: Iterable[Probe[Any]] = PROBES,
        *,
        period_s: float = PERIOD_S,
        clock: Clock = monotonic,
        stamp: Callable[[], str] = stamp_now,
    ) -> None:
        self.host = host
        self.probes: dict[EventName, Probe[Any]] = {}
        self.missing: dict[EventName, str] = {}
        self._period_s = period_s
        self._kept: dict[EventName, _ReadingCache] = {}
        self._counts: dict[EventName, int] = {}
        for probe in probes:
            kept = _ReadingCache(probe, clock, stamp)
            try:
                taken = kept.take(period_s)
            except TocsinError as error:
                self.missing[probe.name] = error.problem.removeprefix(f"{probe.name.local} ")
                continue
            found = probe.elements(taken.reading, None)
            if not found:
                self.missing[probe.name] = "this machine has none"
                continue
            self.probes[probe.name] = probe
            self._kept[probe.name] = kept
            self._counts[probe.name] = len(found)

    def counted(self, name: EventName) -> int:
        """How many events of this name there were in the first reading."""
        return self._counts[name]

    def sample(self, name: EventName, asked: SampleRequest | None = None) -> list[PerformanceEvent]:
        """The events of this name as of now; BadMessage for what is not asked as it should be,
        CannotMeasure if the machine does not report it."""
        probe = self.probes[name]
        asked = asked or {}
        period_s = self._period(name, asked)
        wanted = _choice(probe, asked)
        kept = self._kept[name]
        taken = kept.take(period_s)
        found = kept.elements(taken, period_s)
        if wanted is not None:
            found = _chosen(probe, found, wanted)
        host = Element(HOST_NAME, self.host)
        return [PerformanceEvent(name, taken.time, (*elements, host)) for elements in found]

    def maker(self, name: EventName) -> Callable[[SampleRequest], list[PerformanceEvent]]:
        """The same as a producer wants it: what to call with the parameters of who asks."""
        return partial(self.sample, name)

    def _period(self, name: EventName, asked: SampleRequest) -> float:
        if PERIOD not in asked:
            return self._period_s
        value = asked[PERIOD]
        element = (
            Element(PERIOD, value.value, value.unit)
            if isinstance(value, Quantity)
            else Element(PERIOD, value)
        )
        return period_of(Parameters(name, (element,))) or self._period_s


class _ReadingCache:
    """The readings of one probe."""

    def __init__(self, probe: Probe[Any], clock: Clock, stamp: Callable[[], str]) -> None:
        self._probe = probe
        self._clock = clock
        self._stamp = stamp
        self._lock = threading.Lock()
        self._history: History[Any] = History(probe.readings_max)

    def take(self, period_s: float) -> Reading[Any]:
        """A reading that is fresh enough for this period: the last one, or a new one."""
        with self._lock:
            newest = self._history.newest
            now_s = self._clock()
            if newest is not None and now_s - newest.at_s < _shared_s(newest, period_s):
                return newest
            began_s = thread_time()
            reading = _read(self._probe)
            taken = Reading(reading, now_s, self._stamp(), thread_time() - began_s)
            self._history.add(taken)
            return taken

    def elements(self, taken: Reading[Any], period_s: float) -> list[Elements]:
        with self._lock:
            base = self._history.about(period_s, taken)
        earlier = None if base is None else Previous(base.reading, taken.at_s - base.at_s)
        return self._probe.elements(taken.reading, earlier)


def _shared_s(newest: Reading[Any], period_s: float) -> float:
    """How long this reading will do for somebody with that period."""
    return max(min(period_s * SHARED_PERIODS, SHARED_S_MAX), newest.cost_s * COST_RATIO)


def _read(probe: Probe[Any]) -> Any:
    try:
        return probe.read()
    except TocsinError:
        raise
    except Exception as error:
        # psutil passes on whatever a file under /proc made of it: missing, forbidden, cut short,
        # in the words of a kernel that nobody has seen yet. None of it may end the monitor.
        said = f"{type(error).__name__}: {error}"[:200]
        raise CannotMeasure(
            f"{probe.name.local} cannot be read here ({said})",
            remedy="See what `tocsin agent --list` says on that machine.",
        ) from error


def _choice(probe: Probe[Any], asked: SampleRequest) -> str | None:
    """Which one of several is asked for."""
    odd = asked.keys() - set(probe.parameters)
    if odd:
        raise BadMessage(
            f"{probe.name.local} has no parameter {min(odd)[:80]!r}",
            remedy=f"It has: {', '.join(probe.parameters)}.",
        )
    if probe.choice is None or probe.choice not in asked:
        return None
    value = asked[probe.choice]
    return str(value.value if isinstance(value, Quantity) else value)


def _chosen(probe: Probe[Any], found: list[Elements], wanted: str) -> list[Elements]:
    assert probe.choice is not None
    names = {_named(elements, probe.choice): elements for elements in found}
    if wanted in names:
        return [names[wanted]]
    there_is = ", ".join(sorted(names)[:NAMED_MAX]) or "none"
    raise BadMessage(
        f"there is no {probe.choice} {wanted[:80]!r} here",
        remedy=f"There is: {there_is}{', ...' if len(names) > NAMED_MAX else ''}.",
    )


def _named(elements: Elements, choice: str) -> str:
    return next(str(each.value) for each in elements if each.name == choice)
