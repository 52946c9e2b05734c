"""The graphics processors of this machine, where NVIDIA's tool is installed."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final, NamedTuple

TOOL: Final = "nvidia-smi"
ASK_S_MAX: Final = 4.0
_ASKED: Final = "name,memory.total,memory.used,utilization.gpu"
_MEBIBYTE: Final = 1 << 20


class Gpu(NamedTuple):
    """One processor; its use in percent is not known everywhere."""

    name: str
    memory_bytes: int
    used_bytes: int
    usage: float | None


def gpus() -> list[Gpu]:
    """Those that there are; none if the tool is missing, fails or takes too long."""
    if shutil.which(TOOL) is None:
        return []
    try:
        asked = subprocess.run(
            [TOOL, f"--query-gpu={_ASKED}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=ASK_S_MAX,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return parse(asked.stdout)


def parse(text: str) -> list[Gpu]:
    """What the tool prints, one line for each processor; [N/A] is unknown."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 4 or not fields[1].isdecimal() or not fields[2].isdecimal():
            continue
        name, total, used, usage = fields
        is_known = usage.replace(".", "", 1).isdecimal()
        found.append(
            Gpu(
                name,
                int(total) * _MEBIBYTE,
                int(used) * _MEBIBYTE,
                float(usage) if is_known else None,
            )
        )
    return found
