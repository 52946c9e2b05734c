"""What is read from a machine: plain values, as its kernel has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Load:
    """How many processes ran or waited to run, on average over 1, 5 and 15 minutes."""

    one: float
    five: float
    fifteen: float


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Seconds since the start of the machine that all cores together spent in each state."""

    seconds: Mapping[str, float]
    cores: int
    frequency_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes; what a system does not report is None."""

    total: int
    available: int
    used: int
    free: int
    buffers: int | None
    cached: int | None
    swap_total: int
    swap_used: int


@dataclass(frozen=True, slots=True)
class FileSystem:
    """Sizes in bytes. `available` is what is left for those who are not root."""

    device: str
    mount_point: str
    kind: str
    total: int
    used: int
    available: int


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """Of one disk, since the start of the machine."""

    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    busy_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Of one network interface, since it came up."""

    received_bytes: int
    sent_bytes: int
    received_packets: int
    sent_packets: int
    receive_errors: int
    send_errors: int
    receive_drops: int
    send_drops: int


class Process(NamedTuple):
    """Which one it is (a number is used again, a number and a start time are not), and its use of
    the processor so far."""

    started: float
    name: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Processes:
    """How many there are in each state, and all of them by their number."""

    total: int
    by_state: Mapping[str, int]
    by_id: Mapping[int, Process] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sensor:
    """A temperature in degrees Celsius, and where its maker says that it becomes too much."""

    current: float
    high: float | None = None
    critical: float | None = None


@dataclass(frozen=True, slots=True)
class EnergySource:
    """A meter that counts what was used (`counted_uj`), or a battery and what is left in it."""

    kind: str
    counted_uj: int | None = None
    counter_end_uj: int | None = None
    power_w: float | None = None
    charge_percent: float | None = None
    left_j: float | None = None
    is_on_mains: bool | None = None
