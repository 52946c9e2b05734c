"""How long commands take to start, beside a bare interpreter. CPU time of the whole process.

python bench/startup.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

import report

ROOT = Path(__file__).parent.parent
TARGET = 6.0

COMMANDS = (
    ("python -c pass", [sys.executable, "-c", "pass"]),
    ("tocsin pub --help", [sys.executable, "-m", "tocsin", "pub", "--help"]),
    ("tocsin sub --help", [sys.executable, "-m", "tocsin", "sub", "--help"]),
    ("tocsin --help", [sys.executable, "-m", "tocsin", "--help"]),
    ("tocsin explain T101", [sys.executable, "-m", "tocsin", "explain", "T101"]),
)


def cpu_ms(command: list[str], times: int) -> float:
    """The least of several runs: what is above it is other work on the machine."""
    least = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = min(least, used * 1000)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    times = 7 if arguments.quick else 25
    measured = {name: cpu_ms(command, times) for name, command in COMMANDS}
    bare = measured["python -c pass"]
    report.table(
        ["command", "CPU ms", "ratio", "target"],
        [
            [name, ms, ms / bare, TARGET if name == "tocsin pub --help" else None]
            for name, ms in measured.items()
        ],
    )
    if arguments.json:
        ratios = {name: ms / bare for name, ms in measured.items()}
        report.write("startup", {"cpu_ms": measured, "ratio": ratios}, arguments.json)


if __name__ == "__main__":
    main()
