"""Strikes: where in its work a broker process ends, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from random import Random


class Fall(Enum):
    """How a broker process ends."""

    KILL = "kill"  # what it wrote is there, synced or not
    POWER = "power cut"  # what was not synced is lost, kept or torn
    STOP = "stop"  # told to stop, it finishes what it can


class Point(Enum):
    """Where a process can be struck."""

    COMMIT_ASKED = "a commit is asked for"
    COMMIT_WRITING = "a commit is being written"
    COMMIT_WRITTEN = "a commit is written and the broker not told"
    REPLY = "an answer has left"
    PUSH_SENT = "a push has left"
    SINK_TOOK = "a sink took events and the broker was not told"
    LOG_READ = "the log was read and the broker not told"
    STARTING = "the log is being opened"
    ANY_STEP = "anything happens"


@dataclass(frozen=True, slots=True)
class Strike:
    """The process ends the so-many-th time that it comes to the point."""

    point: Point
    countdown: int
    fall: Fall


COUNTDOWN_MAX = 30
COUNTDOWN_MAX_AT = {Point.STARTING: 2, Point.LOG_READ: 5, Point.ANY_STEP: 500}


class Strikes:
    """Those still to come."""

    def __init__(self, strikes: Iterable[Strike]) -> None:
        self._left = [(strike, strike.countdown) for strike in strikes]

    def due(self, point: Point) -> Strike | None:
        """The process comes to the point: the strike that it is time for, if any."""
        left: list[tuple[Strike, int]] = []
        found: Strike | None = None
        for strike, countdown in self._left:
            if strike.point is point and found is None:
                countdown -= 1
                if countdown <= 0:
                    found = strike
                    continue
            left.append((strike, countdown))
        self._left = left
        return found


def draw_strike(random: Random) -> Strike:
    point = random.choice(list(Point))
    fall = random.choice((Fall.KILL, Fall.POWER, Fall.POWER))
    if point is Point.ANY_STEP:
        fall = random.choice(list(Fall))
    return Strike(point, random.randint(1, COUNTDOWN_MAX_AT.get(point, COUNTDOWN_MAX)), fall)
