"""This machine, by way of psutil: each function takes one reading. Whatever psutil raises goes on
to the monitor, which turns it into words."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

# It comes without types; all of it that is used is in this module and in `processes`.
import psutil

from tocsin.client.host_readings.readings import (
    CpuTimes,
    DiskCounters,
    FileSystem,
    InterfaceCounters,
    Load,
    Memory,
    Sensor,
)

LISTED_MAX = 256  # disks, interfaces, sensors ...: more than anybody reads one by one
ROOT = "/"
SYSTEM_BLOCK_DEVICES = "/sys/block"

T = TypeVar("T")

_GUESTS = frozenset({"guest", "guest_nice"})  # counted in user and nice already
_IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs"})  # full by nature
_PRETENDED_DISKS = ("loop", "ram", "fd", "sr")


def described() -> dict[str, Any]:
    """What kind of machine it is, as attributes in a directory, as far as it is known."""
    memory = if_available(psutil.virtual_memory)
    found = {
        "os": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cores": if_available(psutil.cpu_count),
        "memory": {"value": memory.total, "unit": "B"} if memory else None,
    }
    return {name: value for name, value in found.items() if value}


def load() -> Load:
    return Load(*psutil.getloadavg())


def cpu_times() -> CpuTimes:
    times = psutil.cpu_times()._asdict()
    return CpuTimes(
        {name: seconds for name, seconds in times.items() if name not in _GUESTS},
        psutil.cpu_count() or 1,
        _frequency_mhz(),
    )


def _frequency_mhz() -> float | None:
    """What the cores run at, on average; many containers and virtual machines do not know."""
    found = if_available(lambda: psutil.cpu_freq())
    return found.current if found and found.current else None


def if_available(ask: Callable[[], T]) -> T | None:
    """The answer, or None where the system has none: a reading is worth having without it."""
    try:
        return ask()
    except Exception:  # a platform without it, a file that is missing, or one that reads oddly
        return None


def memory() -> Memory:
    found = psutil.virtual_memory()
    swap = if_available(psutil.swap_memory)
    return Memory(
        found.total,
        found.available,
        found.used,
        found.free,
        getattr(found, "buffers", None),
        getattr(found, "cached", None),
        swap.total if swap else 0,
        swap.used if swap else 0,
    )


def file_systems() -> dict[str, FileSystem]:
    """The local file systems with something of their own on them, by where they are mounted."""
    found: dict[str, FileSystem] = {}
    for device, mount_point, kind in _mounts()[:LISTED_MAX]:
        try:
            usage = psutil.disk_usage(mount_point)
        except OSError:  # unmounted just now, or not for us to look at
            continue
        if usage.total > 0:
            found[mount_point] = FileSystem(
                device, mount_point, kind, usage.total, usage.used, usage.free
            )
    return found


def _mounts() -> list[tuple[str, str, str]]:
    local = [
        (each.device, each.mountpoint, each.fstype)
        for each in psutil.disk_partitions(all=False)
        if each.fstype not in _IMAGES
    ]
    if not any(mount_point == ROOT for _, mount_point, _ in local):
        # In a container the root is a view of directories elsewhere, and is what matters there.
        local += [
            (each.device, each.mountpoint, each.fstype)
            for each in psutil.disk_partitions(all=True)
            if each.mountpoint == ROOT
        ][-1:]
    return one_mount_each(local, is_directory=_is_directory)


def one_mount_each(
    mounts: Iterable[tuple[str, str, str]], *, is_directory: Callable[[str], bool]
) -> list[tuple[str, str, str]]:
    """Of each device its most useful mount: a directory before a file, then the shortest.

    A container has single files of its host mounted, all of them from the same device.
    """
    best: dict[str, tuple[bool, int, tuple[str, str, str]]] = {}
    for mount in mounts:
        device, mount_point, _ = mount
        worth = (not is_directory(mount_point), len(mount_point), mount)
        if device not in best or worth < best[device]:
            best[device] = worth
    return sorted((mount for _, _, mount in best.values()), key=lambda mount: mount[1])


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def disks() -> dict[str, DiskCounters]:
    """Whole disks that were used at least once, by name."""
    counted = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
    whole = _whole_disks(counted)
    return {
        name: DiskCounters(
            each.read_bytes,
            each.write_bytes,
            each.read_count,
            each.write_count,
            getattr(each, "busy_time", None),
        )
        for name, each in sorted(counted.items())[:LISTED_MAX]
        if name in whole and (each.read_count or each.write_count)
    }


def _whole_disks(counted: Mapping[str, Any]) -> set[str]:
    """Without the partitions, which count the same again; all of them where that is not known."""
    try:
        listed = {name.replace("!", "/") for name in os.listdir(SYSTEM_BLOCK_DEVICES)}
    except OSError:
        listed = set(counted)
    return {name for name in listed & set(counted) if not _is_pretended(name)}


def _is_pretended(name: str) -> bool:
    kind = name.rstrip("0123456789")
    return kind in _PRETENDED_DISKS


def interfaces() -> dict[str, InterfaceCounters]:
    """Network interfaces that carried something, by name."""
    counted = psutil.net_io_counters(pernic=True, nowrap=False) or {}
    return {
        name: InterfaceCounters(
            each.bytes_recv,
            each.bytes_sent,
            each.packets_recv,
            each.packets_sent,
            each.errin,
            each.errout,
            each.dropin,
            each.dropout,
        )
        for name, each in sorted(counted.items())[:LISTED_MAX]
        if each.packets_recv or each.packets_sent
    }


def temperatures() -> dict[str, Sensor]:
    """Every sensor, by chip and label, as in coretemp/Core 0."""
    found: dict[str, Sensor] = {}
    for chip, sensors in sorted(psutil.sensors_temperatures().items()):
        for number, each in enumerate(sensors):
            name = f"{chip}/{each.label or number}"
            # Two processors have each a core 0.
            key = name if name not in found else f"{name} ({number})"
            if each.current is not None and len(found) < LISTED_MAX:
                found[key] = Sensor(each.current, each.high, each.critical)
    return found
