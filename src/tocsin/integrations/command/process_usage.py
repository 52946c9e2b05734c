"""What a command uses while it runs: it and all that descend from it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from typing import Final

from tocsin.client.tracking.monitors.process import PROC, family

BLOCK_BYTES: Final = 512  # as Linux counts in rusage
RSS_UNIT_BYTES: Final = 1_024
# In /proc/PID/stat, after the name: own time, and that of children that have ended.
_TIMES: Final = slice(11, 15)
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class ProcessUsage:
    """The most that was seen of each."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self.cpu_s = 0.0
        self._io: dict[int, tuple[int, int]] = {}  # by process; those that ended stay counted

    def sample(self, root: int) -> dict[str, float]:
        """What is used now, by concept."""
        members = family(root)
        memory_bytes = _memory_of(members)
        self.peak_bytes = max(self.peak_bytes, memory_bytes)
        self.cpu_s = max(self.cpu_s, _cpu_of(members))
        for pid in members:
            io = _io_of(pid)
            if io is not None:
                self._io[pid] = io
        read, written = self.io_bytes
        return {
            "MemoryRss": memory_bytes,
            "MemoryPeak": self.peak_bytes,
            "CpuSeconds": self.cpu_s,
            "IoReadBytes": read,
            "IoWriteBytes": written,
        }

    @property
    def io_bytes(self) -> tuple[int, int]:
        return sum(each[0] for each in self._io.values()), sum(
            each[1] for each in self._io.values()
        )

    def total(self, used: resource.struct_rusage | None) -> dict[str, float]:
        """All that it used, with what the system says at its end."""
        if used is None:
            return {}
        read, written = self.io_bytes
        return {
            "CpuSeconds": max(self.cpu_s, used.ru_utime + used.ru_stime),
            "MemoryPeak": max(self.peak_bytes, used.ru_maxrss * RSS_UNIT_BYTES),
            "IoReadBytes": max(read, used.ru_inblock * BLOCK_BYTES),
            "IoWriteBytes": max(written, used.ru_oublock * BLOCK_BYTES),
        }


def _io_of(pid: int) -> tuple[int, int] | None:
    try:
        with open(f"{PROC}/{pid}/io", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file.read().splitlines())
        return int(lines[b"read_bytes"]), int(lines[b"write_bytes"])
    except (OSError, ValueError, KeyError):
        return None


def _memory_of(members: Iterable[int]) -> int:
    """Bytes in memory of all together; what they share counts for each."""
    pages = (_fields(pid, "statm") for pid in members)
    return sum(int(each[1]) for each in pages if len(each) > 1) * _PAGE_BYTES


def _cpu_of(members: Iterable[int]) -> float:
    ticks = 0
    for pid in members:
        ticks += sum(map(int, _fields(pid, "stat")[_TIMES]))
    return ticks / _TICKS_PER_S


def _fields(pid: int, name: str) -> list[bytes]:
    try:
        with open(f"{PROC}/{pid}/{name}", "rb", buffering=0) as file:
            return file.read(2_048).rpartition(b")")[2].split()
    except OSError:
        return []
