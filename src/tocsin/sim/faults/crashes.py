"""Crashes: where in its work a broker process ends, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from random import Random


class CrashKind(Enum):
    """How a broker process ends."""

    KILL = "kill"  # what it wrote is there, synced or not
    POWER_CUT = "power cut"  # what was not synced is lost, kept or torn
    STOP = "stop"  # asked to stop, it finishes what it can


class CrashPoint(Enum):
    """Where a process can crash."""

    COMMIT_ASKED = "a commit is asked for"
    COMMIT_WRITING = "a commit is being written"
    COMMIT_WRITTEN = "a commit is written and the broker does not know"
    REPLY = "an answer has left"
    PUSH_SENT = "a push has left"
    SINK_TOOK = "a sink took events and the broker does not know"
    LOG_READ = "the log was read and the broker does not know"
    STARTING = "the log is being opened"
    ANY_STEP = "anything happens"


@dataclass(frozen=True, slots=True)
class PlannedCrash:
    """The process ends the so-many-th time that it comes to the point."""

    point: CrashPoint
    countdown: int
    kind: CrashKind


COUNTDOWN_MAX = 30
COUNTDOWN_MAX_AT = {
    CrashPoint.STARTING: 2,
    CrashPoint.LOG_READ: 5,
    CrashPoint.ANY_STEP: 500,
}


class PlannedCrashes:
    """Those still to come."""

    def __init__(self, crashes: Iterable[PlannedCrash]) -> None:
        self._left = [(crash, crash.countdown) for crash in crashes]

    def due(self, point: CrashPoint) -> PlannedCrash | None:
        """The process comes to the point: the crash that it is time for, if any."""
        if not self._left:
            return None
        left: list[tuple[PlannedCrash, int]] = []
        found: PlannedCrash | None = None
        for crash, countdown in self._left:
            if crash.point is point and found is None:
                countdown -= 1
                if countdown <= 0:
                    found = crash
                    continue
            left.append((crash, countdown))
        self._left = left
        return found


def draw_crash(random: Random) -> PlannedCrash:
    point = random.choice(list(CrashPoint))
    kind = random.choice((CrashKind.KILL, CrashKind.POWER_CUT, CrashKind.POWER_CUT))
    if point is CrashPoint.ANY_STEP:
        kind = random.choice(list(CrashKind))
    return PlannedCrash(point, random.randint(1, COUNTDOWN_MAX_AT.get(point, COUNTDOWN_MAX)), kind)
