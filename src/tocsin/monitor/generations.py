"""Generations: the runs that were given one id, distinguished in the order of the log.

Publishers may use a run id again: a nightly job with a fixed name, a DAG run that was cleared and
started again. Each use is a run of its own: the first is `ID`, the next ones are `ID~2`, `ID~3`.

What a message belongs to follows from the messages before it in the log, and from no later one. So
it never changes, and whoever reads the log in parts comes to the same answer as who reads it at
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tocsin.event.instant import seconds_between
from tocsin.monitor.fold import ParsedMessage, RunMessage, believed_ns
from tocsin.monitor.states import CLOCKS_APART_S_MAX, is_zone_apart

GENERATIONS_MAX: Final = 10_000  # of one id; what comes then belongs to the last one
MARK: Final = "~"  # needs no quoting in an address, a shell or a file name


def named(run_id: str, number: int) -> str:
    """What the run is called in which an id was used for the n-th time."""
    return run_id if number == 1 else f"{run_id}{MARK}{number}"


@dataclass(frozen=True, slots=True)
class Boundary:
    """A message that says that a run was created, was started, or ended; and when."""

    created_ns: int | None
    started_ns: int | None
    ended_ns: int | None
    received_ns: int

    @property
    def opened_ns(self) -> int | None:
        times = [each for each in (self.created_ns, self.started_ns) if each is not None]
        return min(times, default=None)


def boundary_of(parsed: ParsedMessage, message: RunMessage) -> Boundary | None:
    """Whether the message says that its run was created, was started or ended, and when."""
    row, received_ns = parsed.run_row, message.received_ns
    created_ns, started_ns, ended_ns = (
        believed_ns(row[name], received_ns) if name in row else None
        for name in ("created", "started", "ended")
    )
    if created_ns is None and started_ns is None and ended_ns is None:
        return None
    return Boundary(created_ns, started_ns, ended_ns, received_ns)


@dataclass(slots=True)
class Generation:
    """What the log has so far of the beginning and end of one of the runs."""

    number: int
    opened_ns: int | None = None
    """When it was created or started, the earliest."""
    opened_last_ns: int | None = None
    created_ns: int | None = None
    started_ns: int | None = None
    """The latest start."""
    ended_ns: int | None = None
    received_ns: int = 0
    """When its last beginning was received."""

    def add(self, boundary: Boundary) -> None:
        opened_ns = boundary.opened_ns
        if opened_ns is not None:
            self.opened_ns = _least(self.opened_ns, opened_ns)
            self.opened_last_ns = _greatest(self.opened_last_ns, opened_ns)
            self.received_ns = max(self.received_ns, boundary.received_ns)
        self.created_ns = _least(self.created_ns, boundary.created_ns)
        self.started_ns = _greatest(self.started_ns, boundary.started_ns)
        self.ended_ns = _greatest(self.ended_ns, boundary.ended_ns)


class Generations:
    """All runs of one id, as far as the log was read."""

    def __init__(self, known: Iterable[Generation] = ()) -> None:
        self.known = list(known)

    def take(self, boundary: Boundary) -> int:
        """The number of the run that the message belongs to; it may be the first word of it."""
        opened_ns = boundary.opened_ns
        at_ns = opened_ns if opened_ns is not None else boundary.ended_ns
        found = self._at(at_ns or 0)
        if found is None or self._is_another(found, boundary):
            number = 1 + max((each.number for each in self.known), default=0)
            found = Generation(number)
            self.known.append(found)
        found.add(boundary)
        return found.number

    def number_at(self, at_ns: int) -> int:
        """The number of the run that a message of this time belongs to."""
        found = self._at(at_ns)
        return 1 if found is None else found.number

    def _at(self, at_ns: int) -> Generation | None:
        """The one that began last before this time; before all beginnings, the earliest."""
        if not self.known:
            return None
        begun = [each for each in self.known if _begin(each) <= at_ns]
        if begun:
            return max(begun, key=lambda each: (_begin(each), each.number))
        return min(self.known, key=lambda each: (_begin(each), each.number))

    def _is_another(self, found: Generation, boundary: Boundary) -> bool:
        if boundary.opened_ns is None or len(self.known) >= GENERATIONS_MAX:
            return False
        return is_another(found, boundary, boundary.opened_ns)


def is_another(run: Generation, boundary: Boundary, at_ns: int) -> bool:
    """True if this beginning cannot be that of the run: it is another run with the same id.

    It came after the run's end; or, where no end is known, so long after or before the beginning
    that this cannot be two clocks. Two times as far apart as time zones are may be one, unless they
    were also received so far apart.
    """
    if run.opened_ns is None:
        return run.ended_ns is not None and run.ended_ns < at_ns
    last_ns = run.opened_last_ns or run.opened_ns
    if run.opened_ns <= at_ns <= last_ns:
        return False
    apart_s = seconds_between(last_ns if at_ns > last_ns else run.opened_ns, at_ns)
    received_s = seconds_between(run.received_ns, boundary.received_ns)
    if is_zone_apart(apart_s) and received_s < abs(apart_s) / 2:
        return False
    if at_ns > last_ns:
        if run.ended_ns is not None and run.ended_ns < at_ns:
            return True
        return run.started_ns is not None and apart_s > CLOCKS_APART_S_MAX
    known_ns = run.started_ns if boundary.started_ns is not None else run.created_ns
    return known_ns is not None and -apart_s > CLOCKS_APART_S_MAX


def _begin(run: Generation) -> int:
    return -1 if run.opened_ns is None else run.opened_ns


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _greatest(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)
