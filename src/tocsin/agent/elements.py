"""Readings to the elements of events, each measured value with its units. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from tocsin.client.host_readings import readings as r
from tocsin.client.host_readings.counters import growth, rate, shares
from tocsin.event.xml_form import FORBIDDEN
from tocsin.wire.gma.messages import Element
from tocsin.wire.gma.values import INT64_MAX

R = TypeVar("R")
Elements = tuple[Element, ...]

TEXT_CHARS_MAX = 1_024
BYTES, BYTES_PER_S = "B", "B/s"
OPERATIONS, OPERATIONS_PER_S = "operations", "operations/s"
PACKETS, PACKETS_PER_S = "packets", "packets/s"
PROCESSES, CORES = "processes", "cores"
PERCENT, SECONDS, MEGAHERTZ, CELSIUS, JOULES, WATTS = "%", "s", "MHz", "degC", "J", "W"
DIGITS = 3

_CPU_STATES = {
    "user": "User",
    "nice": "Nice",
    "system": "System",
    "idle": "Idle",
    "iowait": "IOWait",
    "irq": "IRQ",
    "softirq": "SoftIRQ",
    "steal": "Steal",
    "interrupt": "Interrupt",
    "dpc": "DPC",
}
_AT_REST = ("idle", "iowait")
_PROCESS_STATES = {
    "running": "Running",
    "sleeping": "Sleeping",
    "disk-sleep": "DiskSleep",
    "idle": "Idle",
    "stopped": "Stopped",
    "zombie": "Zombie",
}
OTHER = "Other"


@dataclass(frozen=True, slots=True)
class Previous(Generic[R]):
    """A reading to compare with, and how long before the other it was taken."""

    reading: R
    interval_s: float


def load_elements(load: r.Load, earlier: Previous[r.Load] | None) -> list[Elements]:
    """As in the paper, section 3.1: without units, and as fine as `uptime` shows it."""
    named = (("Load1", load.one), ("Load5", load.five), ("Load15", load.fifteen))
    return [_all(_number(name, value, None, digits=2) for name, value in named)]


def cpu_elements(cpu: r.CpuTimes, earlier: Previous[r.CpuTimes] | None) -> list[Elements]:
    """In percent of the time of all cores since the earlier reading."""
    spent = {} if earlier is None else shares(earlier.reading.seconds, cpu.seconds)
    found = [_number(_CPU_STATES[n], spent[n], PERCENT) for n in _CPU_STATES if n in spent]
    if spent and "idle" in spent:
        at_rest = sum(spent.get(name, 0.0) for name in _AT_REST)
        found.insert(0, _number("Usage", max(100.0 - at_rest, 0.0), PERCENT))
    found.append(_number("Cores", cpu.cores, CORES))
    found.append(_number("Frequency", cpu.frequency_mhz, MEGAHERTZ))
    return [_all((*found, _interval(earlier if spent else None)))]


def memory_elements(memory: r.Memory, earlier: Previous[r.Memory] | None) -> list[Elements]:
    taken = 100.0 * (memory.total - memory.available) / memory.total if memory.total > 0 else None
    sizes = (
        ("Total", memory.total),
        ("Available", memory.available),
        ("Used", memory.used),
        ("Free", memory.free),
        ("Buffers", memory.buffers),
        ("Cached", memory.cached),
        ("SwapTotal", memory.swap_total),
        ("SwapUsed", memory.swap_used),
    )
    found = [_number("Usage", taken, PERCENT)]
    return [_all((*found, *(_number(name, size, BYTES) for name, size in sizes)))]


def file_system_elements(
    mounted: Mapping[str, r.FileSystem], earlier: Previous[Mapping[str, r.FileSystem]] | None
) -> list[Elements]:
    return [_file_system(each) for each in mounted.values()]


def _file_system(each: r.FileSystem) -> Elements:
    # Of what people may use, as df has it: a part is kept back for root.
    usable = each.used + each.available
    return _all(
        (
            _text("Device", each.device),
            _text("MountPoint", each.mount_point),
            _text("FileSystem", each.kind),
            _number("Usage", 100.0 * each.used / usable if usable > 0 else None, PERCENT),
            _number("Total", each.total, BYTES),
            _number("Used", each.used, BYTES),
            _number("Available", each.available, BYTES),
        )
    )


def disk_elements(
    disks: Mapping[str, r.DiskCounters],
    earlier: Previous[Mapping[str, r.DiskCounters]] | None,
) -> list[Elements]:
    return [_disk(name, each, _same(name, earlier)) for name, each in disks.items()]


def _same(name: str, earlier: Previous[Mapping[str, R]] | None) -> Previous[R] | None:
    """The earlier reading of one of many; None if it was not there then."""
    if earlier is None or name not in earlier.reading:
        return None
    return Previous(earlier.reading[name], earlier.interval_s)


def _disk(name: str, now: r.DiskCounters, earlier: Previous[r.DiskCounters] | None) -> Elements:
    found: list[Element | None] = [_text("Device", name)]
    if earlier is not None:
        then, interval_s = earlier.reading, earlier.interval_s
        found += [
            _rate("ReadRate", then.read_bytes, now.read_bytes, interval_s, BYTES_PER_S),
            _rate("WriteRate", then.written_bytes, now.written_bytes, interval_s, BYTES_PER_S),
            _rate("ReadOperationRate", then.reads, now.reads, interval_s, OPERATIONS_PER_S),
            _rate("WriteOperationRate", then.writes, now.writes, interval_s, OPERATIONS_PER_S),
            _number("Busy", _busy_percent(then.busy_ms, now.busy_ms, interval_s), PERCENT),
        ]
    found += [
        _number("Read", now.read_bytes, BYTES),
        _number("Written", now.written_bytes, BYTES),
        _number("ReadOperations", now.reads, OPERATIONS),
        _number("WriteOperations", now.writes, OPERATIONS),
        _interval(earlier),
    ]
    return _all(found)


def _busy_percent(then_ms: int | None, now_ms: int | None, interval_s: float) -> float | None:
    if then_ms is None or now_ms is None or interval_s <= 0:
        return None
    # The kernel rounds up to a tick, so that it can be a little more than all of the time.
    return min(growth(then_ms, now_ms) / 10.0 / interval_s, 100.0)


def interface_elements(
    interfaces: Mapping[str, r.InterfaceCounters],
    earlier: Previous[Mapping[str, r.InterfaceCounters]] | None,
) -> list[Elements]:
    return [_interface(name, each, _same(name, earlier)) for name, each in interfaces.items()]


def _interface(
    name: str, now: r.InterfaceCounters, earlier: Previous[r.InterfaceCounters] | None
) -> Elements:
    found: list[Element | None] = [_text("Interface", name)]
    if earlier is not None:
        then = earlier.reading
        grown = (
            ("ReceiveRate", then.received_bytes, now.received_bytes, BYTES_PER_S),
            ("SendRate", then.sent_bytes, now.sent_bytes, BYTES_PER_S),
            ("ReceivePacketRate", then.received_packets, now.received_packets, PACKETS_PER_S),
            ("SendPacketRate", then.sent_packets, now.sent_packets, PACKETS_PER_S),
        )
        found += [_rate(name, a, b, earlier.interval_s, units) for name, a, b, units in grown]
    found += [
        _number("Received", now.received_bytes, BYTES),
        _number("Sent", now.sent_bytes, BYTES),
        _number("PacketsReceived", now.received_packets, PACKETS),
        _number("PacketsSent", now.sent_packets, PACKETS),
        _number("ReceiveErrors", now.receive_errors, PACKETS),
        _number("SendErrors", now.send_errors, PACKETS),
        _number("ReceiveDrops", now.receive_drops, PACKETS),
        _number("SendDrops", now.send_drops, PACKETS),
        _interval(earlier),
    ]
    return _all(found)


def process_elements(now: r.Processes, earlier: Previous[r.Processes] | None) -> list[Elements]:
    states = {name: now.by_state.get(state, 0) for state, name in _PROCESS_STATES.items()}
    states[OTHER] = sum(now.by_state.values()) - sum(states.values())
    found = [_number("Total", now.total, PROCESSES)]
    found += [_number(name, count, PROCESSES) for name, count in states.items()]
    top = None if earlier is None else busiest(earlier.reading, now)
    if earlier is not None and top is not None:
        number, cpu_s = top
        found += [
            _text("TopProcess", now.by_id[number].name),
            _number("TopProcessID", number, None),
            _number("TopProcessUsage", 100.0 * cpu_s / earlier.interval_s, PERCENT),
            _interval(earlier),
        ]
    return [_all(found)]


def busiest(then: r.Processes, now: r.Processes) -> tuple[int, float] | None:
    """The process that used the processors most in between, and for how many seconds."""
    best: tuple[int, float] | None = None
    for number, process in now.by_id.items():
        before = then.by_id.get(number)
        is_same = before is not None and before.started == process.started
        cpu_s = process.cpu_s - (before.cpu_s if before is not None and is_same else 0.0)
        if cpu_s > (best[1] if best is not None else 0.0):
            best = number, cpu_s
    return best


def temperature_elements(
    sensors: Mapping[str, r.Sensor], earlier: Previous[Mapping[str, r.Sensor]] | None
) -> list[Elements]:
    return [
        _all(
            (
                _text("Sensor", name),
                _number("Temperature", sensor.current, CELSIUS),
                _number("High", sensor.high, CELSIUS),
                _number("Critical", sensor.critical, CELSIUS),
            )
        )
        for name, sensor in sensors.items()
    ]


def energy_elements(
    sources: Mapping[str, r.EnergySource],
    earlier: Previous[Mapping[str, r.EnergySource]] | None,
) -> list[Elements]:
    return [_source(name, each, _same(name, earlier)) for name, each in sources.items()]


def _source(name: str, now: r.EnergySource, earlier: Previous[r.EnergySource] | None) -> Elements:
    used_j = None if earlier is None else _used_j(earlier.reading, now)
    power_w = now.power_w
    if earlier is not None and used_j is not None and earlier.interval_s > 0:
        power_w = used_j / earlier.interval_s
    return _all(
        (
            _text("Source", name),
            _text("Kind", now.kind),
            _number("Energy", used_j, JOULES),
            _number("Power", power_w, WATTS),
            _number("Charge", now.charge_percent, PERCENT),
            _number("EnergyLeft", now.left_j, JOULES),
            None if now.is_on_mains is None else Element("OnMains", now.is_on_mains),
            _interval(None if used_j is None else earlier),
        )
    )


def _used_j(then: r.EnergySource, now: r.EnergySource) -> float | None:
    if then.counted_uj is None or now.counted_uj is None:
        return None
    return growth(then.counted_uj, now.counted_uj, end=now.counter_end_uj) / 1e6


def _all(found: Iterable[Element | None]) -> Elements:
    return tuple(_present(found))


def _present(found: Iterable[Element | None]) -> Iterator[Element]:
    for element in found:
        if element is not None:
            yield element


def _interval(earlier: Previous[R] | None) -> Element | None:
    """Over what time the rates were taken."""
    return None if earlier is None else _number("Interval", earlier.interval_s, SECONDS)


def _rate(name: str, then: int, now: int, interval_s: float, units: str) -> Element | None:
    return _number(name, rate(then, now, interval_s), units)


def _number(
    name: str, value: float | None, units: str | None, *, digits: int = DIGITS
) -> Element | None:
    """None for what was not read, or is no number that can be sent."""
    if value is None or not abs(value) <= INT64_MAX:  # which NaN is not
        return None
    return Element(name, value if isinstance(value, int) else round(value, digits), units)


def _text(name: str, text: str) -> Element:
    return Element(name, FORBIDDEN.sub("\ufffd", text[:TEXT_CHARS_MAX]))
