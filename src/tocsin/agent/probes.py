"""The events of a host: name, parameters, and how each is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tocsin.agent import elements, machine
from tocsin.agent.elements import Elements, Previous
from tocsin.agent.history import READINGS_MAX
from tocsin.client.host_readings.energy import energy_sources
from tocsin.client.host_readings.processes import processes
from tocsin.wire.gma.names import PERIOD, EventName

R = TypeVar("R")

NAMESPACE = "urn:tocsin:host:1"
PROCESS_READINGS_MAX = 6  # each holds every process there is


@dataclass(frozen=True, slots=True)
class Probe(Generic[R]):
    """One kind of event: a reading that costs something, and the events that come of it.

    `choice` is the parameter, and the element, that picks one of several.
    """

    name: EventName
    about: str
    read: Callable[[], R]
    elements: Callable[[R, Previous[R] | None], list[Elements]]
    choice: str | None = None
    readings_max: int = READINGS_MAX

    @property
    def parameters(self) -> tuple[str, ...]:
        return (PERIOD,) if self.choice is None else (PERIOD, self.choice)


def _ours(local: str) -> EventName:
    return EventName(local, NAMESPACE)


PROBES: tuple[Probe[Any], ...] = (
    Probe(
        EventName("UptimeCPULoad"),
        "processes that run or wait to, over 1, 5 and 15 minutes",
        machine.load,
        elements.load_elements,
        readings_max=2,
    ),
    Probe(
        _ours("CPUUsage"),
        "what the cores do: user, system, waiting, idle",
        machine.cpu_times,
        elements.cpu_elements,
    ),
    Probe(
        _ours("MemoryUsage"),
        "memory and swap: all, taken, available",
        machine.memory,
        elements.memory_elements,
        readings_max=2,
    ),
    Probe(
        _ours("DiskUsage"),
        "each local file system: how full it is",
        machine.file_systems,
        elements.file_system_elements,
        choice="MountPoint",
        readings_max=2,
    ),
    Probe(
        _ours("DiskIO"),
        "each disk: what is read from it and written to it",
        machine.disks,
        elements.disk_elements,
        choice="Device",
    ),
    Probe(
        _ours("NetworkTraffic"),
        "each network interface: what it carries, errors and drops",
        machine.interfaces,
        elements.interface_elements,
        choice="Interface",
    ),
    Probe(
        _ours("ProcessCount"),
        "processes in each state, and the busiest of them",
        processes,
        elements.process_elements,
        readings_max=PROCESS_READINGS_MAX,
    ),
    Probe(
        _ours("Temperature"),
        "each sensor: how warm it is, and what would be too warm",
        machine.temperatures,
        elements.temperature_elements,
        choice="Sensor",
        readings_max=2,
    ),
    Probe(
        _ours("Energy"),
        "each energy meter and battery: joules and watts",
        energy_sources,
        elements.energy_elements,
        choice="Source",
    ),
)
