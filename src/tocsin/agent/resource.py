"""This machine as a resource that others find: what it has, and what is free of it now.

Sizes are in GB, so that `disk > 120` is asked as in paper 001.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tocsin.agent import machine
from tocsin.agent.gpus import Gpu, gpus
from tocsin.event.value import Scalar

GB: Final = 10**9


# What a value that changes is at most: another one, which does not. None is without a limit.
_CHANGING: Final[Mapping[str, str | None]] = {
    "load1": None,
    "load5": None,
    "load15": None,
    "free_memory": "memory",
    "free_disk": "disk",
    "free_gpu_memory": "gpu_memory",
    "gpu_usage": None,
}


class HostDescription:
    """What does not change while the agent runs, unless somebody adds a disk."""

    def __init__(self, attributes: Mapping[str, Scalar], processors: Sequence[Gpu] | None = None):
        found = gpus() if processors is None else processors
        self._fixed = {**_fixed(found), **attributes}
        self._has_gpu = bool(found)

    def values(self) -> dict[str, Any]:
        """What this machine is like now."""
        changing = {**_load(), **_memory(), **_disk()}
        if self._has_gpu:
            changing |= _gpu(gpus())
        own = {name: value for name, value in changing.items() if name not in self._fixed}
        return {**self._fixed, **own}

    def advertisement(self, values: Mapping[str, Any]) -> str:
        """In which ranges these values, and all that follow them, lie."""
        return ", ".join(_condition(name, value, values) for name, value in values.items())


def _condition(name: str, value: object, values: Mapping[str, Any]) -> str:
    if name not in _CHANGING:
        return f"[{name},=,{_written(value)}]"
    most = _CHANGING[name]
    if most is None or most not in values:
        return f"[{name},>=,0]"
    return f"[{name},<=,{_written(values[most])}]"


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _fixed(processors: Sequence[Gpu]) -> dict[str, Any]:
    described = machine.described()
    found = {
        "system": described.get("os"),
        "release": described.get("release"),
        "processor": described.get("machine"),
        "cores": described.get("cores"),
    }
    if processors:
        found["gpus"] = len(processors)
        found["gpu"] = processors[0].name
    return {name: value for name, value in found.items() if value}


def _load() -> dict[str, float]:
    load = machine.if_available(machine.load)
    if load is None:
        return {}
    return {"load1": load.one, "load5": load.five, "load15": load.fifteen}


def _memory() -> dict[str, float]:
    memory = machine.if_available(machine.memory)
    if memory is None:
        return {}
    return {"memory": _gb(memory.total), "free_memory": _gb(memory.available)}


def _disk() -> dict[str, float]:
    systems = (machine.if_available(machine.file_systems) or {}).values()
    total = sum(each.total for each in systems)
    free = sum(each.available for each in systems)
    return {"disk": _gb(total), "free_disk": _gb(min(free, total))} if total else {}


def _gpu(processors: Sequence[Gpu]) -> dict[str, float]:
    total = sum(each.memory_bytes for each in processors)
    used = sum(each.used_bytes for each in processors)
    found = {"gpu_memory": _gb(total), "free_gpu_memory": _gb(max(0, total - used))}
    usages = [each.usage for each in processors if each.usage is not None]
    return found | ({"gpu_usage": sum(usages) / len(usages)} if usages else {})


def _gb(size_bytes: int) -> float:
    return round(size_bytes / GB, 3)
