"""What this process uses, and the processes that it started, from the kernel's own small files."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

import psutil

from tocsin.client.host_readings.processes import parse_stat

PROC = "/proc"
# Activities may follow each other within a millisecond; a reading serves all within this time.
SHARED_S = 0.05
FAMILY_MAX = 10_000

T = TypeVar("T")

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Shared(Generic[T]):
    """A reading that is made again only when the last one is old."""

    def __init__(self, read: Callable[[], T], age_s_max: float = SHARED_S) -> None:
        self._read = read
        self._age_s_max = age_s_max
        self._at: float | None = None
        self._last: T | None = None

    def __call__(self) -> T:
        now = time.monotonic()
        if self._at is None or now - self._at > self._age_s_max:
            self._last = self._read()
            self._at = now
        return self._last  # type: ignore[return-value]


def cpu_seconds() -> float:
    """Of this process and of its children that have ended, so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def memory() -> tuple[int, int] | None:
    """Bytes in memory, and in the address space."""
    try:
        with open(f"{PROC}/self/statm", "rb", buffering=0) as file:
            size, resident = file.read(256).split()[:2]
        return int(resident) * _PAGE_BYTES, int(size) * _PAGE_BYTES
    except (OSError, ValueError):
        with suppress(psutil.Error):
            used = psutil.Process().memory_info()
            return used.rss, used.vms
        return None


def storage_io() -> tuple[int, int] | None:
    """Bytes read from and written to storage, children that have ended included."""
    try:
        with open(f"{PROC}/self/io", "rb", buffering=0) as file:
            lines = dict(line.split(b": ") for line in file.read(1_024).splitlines())
        return int(lines[b"read_bytes"]), int(lines[b"write_bytes"])
    except (OSError, ValueError, KeyError):
        return None


class Snapshot(NamedTuple):
    """What this process had used by a moment; None for what the system does not report."""

    cpu_s: float
    memory: tuple[int, int] | None
    storage_io: tuple[int, int] | None


class SnapshotReader:
    """Takes snapshots of a few microseconds: what costs more is read again only when it is old."""

    def __init__(self) -> None:
        self._read_at = float("-inf")
        self._memory: tuple[int, int] | None = None
        self._storage_io: tuple[int, int] | None = None

    def __call__(self) -> Snapshot:
        now = time.monotonic()
        if now - self._read_at > SHARED_S:
            self._read_at = now
            self._memory = memory()
            self._storage_io = storage_io()
        return Snapshot(cpu_seconds(), self._memory, self._storage_io)


def family(root: int | None = None) -> list[int]:
    """This process and all that descend from it and live."""
    found = [root or os.getpid()]
    if not os.path.exists(f"{PROC}/{found[0]}/task/{found[0]}/children"):
        with suppress(psutil.Error):
            found += [child.pid for child in psutil.Process(found[0]).children(recursive=True)]
        return found
    for process in found:
        if len(found) > FAMILY_MAX:
            break
        found.extend(_children(process))
    return found


def _children(process: int) -> Iterator[int]:
    tasks = f"{PROC}/{process}/task"
    with suppress(OSError):
        for task in os.listdir(tasks):
            with suppress(OSError), open(f"{tasks}/{task}/children", "rb", buffering=0) as file:
                yield from map(int, file.read(1 << 16).split())


def family_memory() -> int:
    """Bytes in memory of all of them together; what they share counts for each."""
    total = 0
    for process in family():
        with (
            suppress(OSError, ValueError, IndexError),
            open(f"{PROC}/{process}/statm", "rb", buffering=0) as file,
        ):
            total += int(file.read(256).split()[1]) * _PAGE_BYTES
    return total or psutil.Process().memory_info().rss


def family_cpu_seconds() -> float:
    """Processor time of all of them so far, those that have ended included."""
    total = cpu_seconds()
    for process in family()[1:]:
        with suppress(OSError), open(f"{PROC}/{process}/stat", "rb", buffering=0) as file:
            found = parse_stat(file.read(2_048), _TICKS_PER_S)
            total += found[1].cpu_s if found is not None else 0.0
    return total


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
