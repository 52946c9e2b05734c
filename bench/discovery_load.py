"""Resources and requests of the discovery benchmark, and its rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from random import Random
from typing import Any

from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Answered
from tocsin.overlay.discovery.requests import ModelType, Registration, Request
from tocsin.overlay.region import Region, Regions

SEED = 20_090_706
RESULTS = 20
SYSTEMS = ("Linux", "Solaris", "AIX", "Darwin", "FreeBSD")
SYSTEM, DISK, MEMORY = ("system", "s"), ("disk", "n"), ("memory", "n")


def draw_resources(size: int) -> list[Region]:
    """Machines as the paper describes them: what each is, and the most that it can give."""
    dice = Random(SEED)
    return [
        Region(
            {
                SYSTEM: dice.choice(SYSTEMS),
                ("cores", "n"): (-inf, float(dice.randint(1, 128))),
                MEMORY: (-inf, dice.uniform(1, 1_000)),
                DISK: (-inf, dice.uniform(1, 10_000)),
            }
        )
        for _ in range(size)
    ]


def selective_requests(resources: Sequence[Region], count: int) -> list[Region]:
    """Requests that 20 resources match: those of one system with the largest disks."""
    dice = Random(SEED + 1)
    disks = {
        system: sorted(
            (most(each, DISK) for each in resources if each.bounds[SYSTEM] == system), reverse=True
        )
        for system in SYSTEMS
    }
    found = []
    for _ in range(count):
        system = dice.choice(SYSTEMS)
        last, next_one = disks[system][RESULTS - 1 : RESULTS + 1]
        assert next_one < last
        least = next_one + dice.uniform(0.1, 0.9) * (last - next_one)
        found.append(Region({SYSTEM: system, DISK: (least, inf)}))
    return found


def share(resources: Sequence[Region], count: int) -> list[Region]:
    """Requests that one in a hundred matches: a tenth has the memory, a tenth the disk."""
    dice = Random(SEED + 2)
    return [
        Region(
            {
                MEMORY: (900 * dice.uniform(0.99, 1.01), inf),
                DISK: (9_000 * dice.uniform(0.99, 1.01), inf),
            }
        )
        for _ in range(count)
    ]


REQUESTS: Mapping[str, Callable[[Sequence[Region], int], list[Region]]] = {
    "few": selective_requests,
    "share": share,
}


def most(resource: Region, key: tuple[str, str]) -> float:
    bound = resource.bounds[key]
    assert not isinstance(bound, str)
    return bound[1]


def filled(resources: Sequence[Region], regions: Callable[[], Regions[Any]]) -> DiscoveryCore:
    """One broker with these resources, whose ids are their numbers."""
    core = DiscoveryCore("bench", regions=regions)
    for number, resource in enumerate(resources):
        core.register(Registration(str(number), ModelType.STATIC, resource), 0)
    return core


def found_by(core: DiscoveryCore, requests: Sequence[Region]) -> Iterator[tuple[str, ...]]:
    """The ids that answer each request."""
    for number, region in enumerate(requests):
        effects = core.discover(Request(f"q{number}", ModelType.STATIC, region), 0)
        answers = [each.results for each in effects if isinstance(each, Answered)]
        yield tuple(each.id for results in answers for each in results)


def counts_of(core: DiscoveryCore, requests: Sequence[Region]) -> list[int]:
    """How many resources answer each request."""
    counts = []
    for number, region in enumerate(requests):
        effects = core.discover(Request(f"q{number}", ModelType.STATIC, region), 0)
        counts.append(sum(len(each.results) for each in effects if isinstance(each, Answered)))
    return counts


def cpu_s_of(work: Callable[[], object], seconds: float) -> float:
    """Processor seconds of one call, of as many as fit into this time."""
    calls, begin = 0, time.process_time()
    while True:
        work()
        calls += 1
        taken_s = time.process_time() - begin
        if taken_s >= seconds:
            return taken_s / calls


def medians(ways: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of each way, all of which are measured once in every round."""
    measured: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, measure in ways.items():
            measured[name].append(measure())
    return {name: statistics.median(each) for name, each in measured.items()}
