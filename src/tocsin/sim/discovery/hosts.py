"""A workload of real hosts: their readings, and requests for hosts that have little to do.

A host advertises the range of its readings over one day and has the last of them as its value. A
request asks for less than some reading of any host, rounded as people round. Nobody sets the
similarity of these requests: it is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nextafter
from random import Random

from tocsin.sim.discovery.boxes import Bounds
from tocsin.sim.discovery.workload import ResourcePlan

READINGS_A_DAY = 288  # one every five minutes


def draw_hosts(
    random: Random, series: Mapping[str, Sequence[float]], count: int
) -> list[ResourcePlan]:
    """Hosts whose readings are a day of each series, from a place of its own."""
    found = []
    for number in range(count):
        days = {name: _day(random, readings) for name, readings in series.items()}
        found.append(
            ResourcePlan(
                f"H{number + 1:04}",
                {name: (min(day), max(day)) for name, day in days.items()},
                {name: day[-1] for name, day in days.items()},
            )
        )
    return found


def _day(random: Random, readings: Sequence[float]) -> Sequence[float]:
    assert len(readings) >= READINGS_A_DAY
    start = random.randrange(len(readings) - READINGS_A_DAY + 1)
    return readings[start : start + READINGS_A_DAY]


def draw_host_requests(
    random: Random, series: Mapping[str, Sequence[float]], count: int
) -> list[Bounds]:
    """Each asks for less than a rounded reading, in one series or in several."""
    names = sorted(series)
    found: list[Bounds] = []
    for _ in range(count):
        asked = random.sample(names, random.randint(1, len(names)))
        found.append({name: (-inf, _below(random, series[name])) for name in sorted(asked)})
    return found


def _below(random: Random, readings: Sequence[float]) -> float:
    """The largest number that is less than a reading, rounded up to a whole number."""
    limit = int(random.choice(readings)) + 1
    return nextafter(float(limit), -inf)
