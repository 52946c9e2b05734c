"""The monitors that come with Tocsin. What this machine does not report has none.

Processor, memory and I/O are of this process and those that it started; disk, network, graphics
processors and energy are of the whole machine, which have no finer counters.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from functools import partial

import psutil

from tocsin.client.host_readings.counters import growth
from tocsin.client.host_readings.energy import RAPL, energy_sources
from tocsin.client.tracking.monitors import gpu, process
from tocsin.client.tracking.monitors.kinds import (
    Aggregation,
    BeforeAfter,
    Inline,
    Monitor,
    Periodic,
)
from tocsin.client.tracking.monitors.process import Shared, Snapshot
from tocsin.client.tracking.run import Value
from tocsin.errors import CannotMeasure

SETTLE_S = 0.1
SAMPLE_S = 2.0
SLOW_SAMPLE_S = 10.0
UJ_PER_KWH = 3.6e12
UJ_PER_J = 1e6
LOOPBACK = "lo"


class Rate:
    """How fast a count grows, from one reading to the next."""

    def __init__(self, count: Callable[[], float], factor: float = 1.0) -> None:
        self._count = count
        self._factor = factor
        self._last: tuple[float, float] | None = None

    def __call__(self) -> float | None:
        now, counted = time.monotonic(), self._count()
        last, self._last = self._last, (now, counted)
        if last is None or now <= last[0]:
            return None
        return max(0.0, counted - last[1]) / (now - last[0]) * self._factor


def built_in_monitors() -> dict[str, Monitor]:
    """By concept; new ones for each caller, as some remember their last reading."""
    return {**_of_processes(), **_of_disk_and_network(), **_of_gpu(), **_of_energy()}


def _of_processes() -> dict[str, Monitor]:
    cores = process.cores()
    share = Rate(process.family_cpu_seconds, 100.0 / cores)
    return {
        "CpuSeconds": Inline(lambda before, now: max(0.0, now.cpu_s - before.cpu_s)),
        "CpuCores": Inline(lambda before, now: cores),
        "CpuPercent": Periodic(share, SAMPLE_S, Aggregation.EACH, SETTLE_S),
        "MemoryRss": Inline(lambda before, now: now.memory and now.memory[0]),
        "MemoryVirtual": Inline(lambda before, now: now.memory and now.memory[1]),
        "MemoryPeak": Periodic(process.family_memory, 0.5, Aggregation.PEAK, SETTLE_S),
        "IoReadBytes": Inline(partial(_grown, 0)),
        "IoWriteBytes": Inline(partial(_grown, 1)),
        "IoReadRate": Periodic(Rate(partial(_counted, 0)), SAMPLE_S, Aggregation.EACH, SETTLE_S),
        "IoWriteRate": Periodic(Rate(partial(_counted, 1)), SAMPLE_S, Aggregation.EACH, SETTLE_S),
    }


def _grown(which: int, before: Snapshot, now: Snapshot) -> int | None:
    """Bytes read (0) or written (1) between the two."""
    if before.storage_io is None or now.storage_io is None:
        return None
    return max(0, now.storage_io[which] - before.storage_io[which])


def _counted(which: int) -> float:
    """Bytes read (0) or written (1) so far."""
    used = process.storage_io()
    return 0.0 if used is None else used[which]


def _of_disk_and_network() -> dict[str, Monitor]:
    disk = Shared(lambda: shutil.disk_usage(os.getcwd()), 1.0)
    return {
        "DiskUsed": Periodic(lambda: disk().used, SLOW_SAMPLE_S, Aggregation.EACH, SETTLE_S),
        "DiskFree": Periodic(lambda: disk().free, SLOW_SAMPLE_S, Aggregation.EACH, SETTLE_S),
        "NetRxBytes": _more_carried("bytes_recv"),
        "NetTxBytes": _more_carried("bytes_sent"),
    }


def _more_carried(count: str) -> BeforeAfter:
    return BeforeAfter(
        lambda: _carried(count), lambda before: growth(before, _carried(count)), SETTLE_S
    )


def _carried(count: str) -> int:
    interfaces = psutil.net_io_counters(pernic=True)
    return sum(getattr(each, count) for name, each in interfaces.items() if name != LOOPBACK)


def _of_gpu() -> dict[str, Monitor]:
    if not gpu.can_read():
        return {}
    use = Shared(gpu.read, 1.0)

    def part(name: str) -> Value:
        return getattr(use(), name, None)

    return {
        "GpuPercent": Periodic(partial(part, "percent"), SAMPLE_S, Aggregation.EACH, SETTLE_S),
        "GpuMemory": Periodic(partial(part, "memory_bytes"), SAMPLE_S, Aggregation.EACH, SETTLE_S),
        "GpuPower": Periodic(partial(part, "power_w"), SAMPLE_S, Aggregation.AVERAGE, SETTLE_S),
    }


def _of_energy() -> dict[str, Monitor]:
    try:
        counted_uj()
    except CannotMeasure:
        return {}
    return {
        "EnergyUsed": BeforeAfter(
            counted_uj, lambda before: used_uj(before, counted_uj()) / UJ_PER_KWH, SETTLE_S
        ),
        "PowerDraw": Periodic(Power(), SAMPLE_S, Aggregation.EACH, SETTLE_S),
    }


Counters = dict[str, tuple[int, int | None]]


def counted_uj(system: str = "/sys") -> Counters:
    """What each whole processor package counted, and where its counter starts over."""
    sources = energy_sources(system)
    found = {
        name: (source.counted_uj, source.counter_end_uj)
        for name, source in sources.items()
        if source.kind == RAPL and source.counted_uj is not None and "/" not in name
    }
    if not found:
        raise CannotMeasure("there is no energy counter", remedy="Virtual machines have none.")
    return found


def used_uj(before: Counters, after: Counters) -> int:
    """By all packages in between."""
    return sum(
        growth(before[name][0], count, end=end)
        for name, (count, end) in after.items()
        if name in before
    )


class Power:
    """Watts of all packages, from one reading to the next."""

    def __init__(self) -> None:
        self._last: tuple[float, Counters] | None = None

    def __call__(self) -> float | None:
        now, counters = time.monotonic(), counted_uj()
        last, self._last = self._last, (now, counters)
        if last is None or now <= last[0]:
            return None
        return used_uj(last[1], counters) / UJ_PER_J / (now - last[0])
