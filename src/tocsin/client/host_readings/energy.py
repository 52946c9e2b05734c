"""What the machine uses: the counters of the powercap framework (RAPL), and batteries.

Both are small files under /sys. Most systems let only root read the counters, because their
fine grain gives away what a processor computes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tocsin.client.host_readings.readings import EnergySource
from tocsin.errors import CannotMeasure

SYSTEM = "/sys"
FILE_BYTES_MAX = 4_096
SOURCES_MAX = 256

RAPL = "rapl"
BATTERY = "battery"
JOULES_PER_WATT_HOUR = 3_600.0

_ZONE = re.compile(r"intel-rapl:\d+(?::\d+)*")
_DISCHARGING = "Discharging"


def energy_sources(system: str = SYSTEM) -> dict[str, EnergySource]:
    """Every meter and battery that can be read, by name; CannotMeasure if there is none."""
    found: dict[str, EnergySource] = {}
    refused: OSError | None = None
    for zone in _zones(system):
        try:
            name = _zone_name(system, zone)
            key = name if name not in found else f"{name} ({zone})"
            found[key] = _counted(f"{system}/class/powercap/{zone}")
        except OSError as error:
            refused = error
    for name, battery in _batteries(system):
        found[name] = battery
    if not found:
        raise _nothing_to_read(refused)
    return found


def _nothing_to_read(refused: OSError | None) -> CannotMeasure:
    if refused is None:
        return CannotMeasure(
            "there is no energy counter and no battery",
            remedy="Virtual machines have none; on hardware, load the kernel's intel_rapl driver.",
        )
    return CannotMeasure(
        f"{refused.filename} cannot be read: {refused.strerror}",
        remedy="Let the user that runs this read it, or run it as root.",
    )


def _zones(system: str) -> list[str]:
    try:
        listed = os.listdir(f"{system}/class/powercap")
    except OSError:
        return []
    return sorted(zone for zone in listed if _ZONE.fullmatch(zone))[:SOURCES_MAX]


def _zone_name(system: str, zone: str) -> str:
    """As in package-0, or package-0/dram for a part of it."""
    whole, _, part = zone.rpartition(":")
    own = _text(f"{system}/class/powercap/{zone}/name")
    return own if whole.count(":") == 0 or not part else f"{_zone_name(system, whole)}/{own}"


def _counted(directory: str) -> EnergySource:
    return EnergySource(
        RAPL,
        counted_uj=_number(f"{directory}/energy_uj"),
        counter_end_uj=_number_if_any(f"{directory}/max_energy_range_uj"),
    )


def _batteries(system: str) -> Iterator[tuple[str, EnergySource]]:
    supplies = f"{system}/class/power_supply"
    try:
        names = sorted(os.listdir(supplies))[:SOURCES_MAX]
    except OSError:
        return
    for name in names:
        directory = f"{supplies}/{name}"
        try:
            if _text(f"{directory}/type") == "Battery":
                yield name, _battery(directory)
        except OSError:
            continue


def _battery(directory: str) -> EnergySource:
    power_uw = _number_if_any(f"{directory}/power_now")
    left_uwh = _number_if_any(f"{directory}/energy_now")
    return EnergySource(
        BATTERY,
        power_w=None if power_uw is None else abs(power_uw) / 1e6,
        charge_percent=_number_if_any(f"{directory}/capacity"),
        left_j=None if left_uwh is None else left_uwh / 1e6 * JOULES_PER_WATT_HOUR,
        is_on_mains=_text(f"{directory}/status") != _DISCHARGING,
    )


def _text(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(FILE_BYTES_MAX).decode("utf-8", "replace").strip()


def _number(path: str) -> int:
    text = _text(path)
    try:
        return int(text)
    except ValueError:
        raise OSError(0, f"it says {text[:40]!r}", path) from None


def _number_if_any(path: str) -> int | None:
    try:
        return _number(path)
    except OSError:
        return None
