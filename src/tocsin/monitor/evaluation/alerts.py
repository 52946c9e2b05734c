"""How good the alert "slower than usual" is: false alarms and what it finds, on recorded runs.

Every run is left out in turn and its activities are judged by the others. All of them count as
normal, so an alert is a false one; then each is taken to have lasted k times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.alerts.limits import (
    FALSE_ALARM_RATE,
    RUNS_MIN,
    SECONDS_MIN,
    DurationLimit,
    PastDuration,
    usual,
)
from tocsin.monitor.estimate.types import PastRun

TIMES = (2, 3, 5, 10)

Report = dict[str, object]


@dataclass(frozen=True, slots=True)
class Alerts:
    """Counts over the activities of some runs; `found` by how many times too long they took."""

    runs: int
    activities: int
    judged: int
    false_alarms: int
    found: Mapping[int, int]

    def as_dict(self) -> Report:
        def share(count: int) -> float | None:
            return count / self.judged if self.judged else None

        return {
            "runs": self.runs,
            "activities": self.activities,
            "judged": self.judged,
            "false_alarms": share(self.false_alarms),
            "detected": {str(times): share(count) for times, count in self.found.items()},
        }


def evaluate_alerts(
    runs: Sequence[PastRun], on_progress: Callable[[int], None] = lambda _: None
) -> Alerts:
    """Judge every activity of every run by the other runs."""
    durations = [_durations(number, run) for number, run in enumerate(runs)]
    total = Alerts(len(runs), 0, 0, 0, dict.fromkeys(TIMES, 0))
    for number, mine in enumerate(durations):
        for name, here in mine.items():
            past = [
                each
                for other, theirs in enumerate(durations)
                if other != number
                for each in theirs.get(name, ())
            ]
            total = add(total, _judge(usual(past, here[0].version), here))
        on_progress(number + 1)
    return total


def add(one: Alerts, other: Alerts) -> Alerts:
    return Alerts(
        one.runs + other.runs,
        one.activities + other.activities,
        one.judged + other.judged,
        one.false_alarms + other.false_alarms,
        {times: one.found[times] + other.found[times] for times in TIMES},
    )


def _durations(number: int, run: PastRun) -> dict[str, list[PastDuration]]:
    found: dict[str, list[PastDuration]] = {}
    for index, done in run.done.items():
        task = run.plan.tasks[index]
        found.setdefault(task.type, []).append(
            PastDuration(done.runtime_s, str(number), task.version, done.in_bytes)
        )
    return found


def _judge(known: DurationLimit | None, here: Sequence[PastDuration]) -> Alerts:
    if known is None:
        return Alerts(0, len(here), 0, 0, dict.fromkeys(TIMES, 0))
    over = np.array(
        [
            math.log(max(each.seconds, SECONDS_MIN)) - math.log(known.limit_s(each.input_bytes))
            for each in here
        ]
    )
    return Alerts(
        0,
        len(here),
        len(here),
        int((over > 0).sum()),
        {times: int((over + math.log(times) > 0).sum()) for times in TIMES},
    )


def as_report(applications: Mapping[str, Alerts]) -> Report:
    """The shape that `tocsin evaluate alerts --json` prints; shares are fractions."""
    everything = Alerts(0, 0, 0, 0, dict.fromkeys(TIMES, 0))
    for each in applications.values():
        everything = add(everything, each)
    return {
        "rate": FALSE_ALARM_RATE,
        "applications": {name: each.as_dict() for name, each in applications.items()},
        "all": everything.as_dict(),
    }


RUNS_NEEDED = RUNS_MIN + 1
