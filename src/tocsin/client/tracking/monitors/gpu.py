"""What the graphics processors do, where NVIDIA's own tool or library is installed."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from typing import Any, NamedTuple

TOOL = "nvidia-smi"
ASK_S_MAX = 4.0
MEBIBYTE = 1 << 20

_ASKED = "utilization.gpu,memory.used,power.draw"


class GpuUse(NamedTuple):
    """Of all that there are: the average share, bytes in all, watts in all."""

    percent: float
    memory_bytes: int
    power_w: float | None


def can_read() -> bool:
    return shutil.which(TOOL) is not None or find_spec("pynvml") is not None


def read() -> GpuUse | None:
    """Now. May take a second, and hangs when a driver does."""
    if find_spec("pynvml") is not None:
        return _from_library()
    asked = subprocess.run(
        [TOOL, f"--query-gpu={_ASKED}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        timeout=ASK_S_MAX,
        check=True,
    )
    return parse(asked.stdout)


def parse(text: str) -> GpuUse | None:
    """What the tool says, one line for each processor; [N/A] is unknown."""
    shares: list[float] = []
    memory_bytes = 0
    watts: list[float] = []
    for line in text.splitlines():
        fields = [_number(field) for field in line.split(",")]
        if len(fields) != 3 or fields[0] is None:
            continue
        shares.append(fields[0])
        memory_bytes += int((fields[1] or 0.0) * MEBIBYTE)
        if fields[2] is not None:
            watts.append(fields[2])
    if not shares:
        return None
    return GpuUse(sum(shares) / len(shares), memory_bytes, sum(watts) if watts else None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _from_library() -> GpuUse | None:
    from importlib import import_module

    library: Any = import_module("pynvml")
    library.nvmlInit()
    try:
        handles = [
            library.nvmlDeviceGetHandleByIndex(number)
            for number in range(library.nvmlDeviceGetCount())
        ]
        if not handles:
            return None
        shares = [library.nvmlDeviceGetUtilizationRates(handle).gpu for handle in handles]
        used = [library.nvmlDeviceGetMemoryInfo(handle).used for handle in handles]
        watts = [library.nvmlDeviceGetPowerUsage(handle) / 1_000 for handle in handles]
        return GpuUse(sum(shares) / len(shares), sum(used), sum(watts))
    finally:
        library.nvmlShutdown()
