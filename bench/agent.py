"""What `tocsin agent` takes of the host that it watches: CPU seconds an hour, and memory.

    python bench/agent.py [--quick] [--json FILE]

One agent with everything this machine offers, told to a broker beside it, at a period of 10 s and
of 1 s; then with 1,000 idle processes around, because counting processes is what grows. Time is
what the kernel's scheduler gave the agent's threads, to the nanosecond.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import load  # noqa: F401  # with it, what the tests have is within reach
import report
from served import ROOT, Served, served

SETTLE_S = 3.0
CROWD = 1_000
RUNS = (("10s", 0), ("1s", 0), ("1s", CROWD))


def cpu_s(pid: int) -> float:
    """Of all threads of a process so far."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [found] = [line for line in lines if line.startswith("VmRSS:")]
    return int(found.split()[1]) * 1024 / 1e6


@contextlib.contextmanager
def agent(broker: Served, period: str) -> Iterator[tuple[int, int]]:
    """A running one: its process id, and how many kinds of events it offers."""
    command = [sys.executable, "-m", "tocsin", "agent", "--json", "--period", period]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--broker", broker.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield process.pid, len(json.loads(process.stdout.readline())["events"])
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def crowd(count: int) -> Iterator[None]:
    """So many processes that do nothing."""
    idle = [subprocess.Popen(["sleep", "3600"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in idle:
            process.kill()
        for process in idle:
            process.wait()


def measured(period: str, processes: int, length_s: float) -> dict[str, Any]:
    with crowd(processes), served() as broker, agent(broker, period) as (pid, kinds):
        time.sleep(SETTLE_S)
        before_s, began_s = cpu_s(pid), time.monotonic()
        time.sleep(length_s)
        used_s, took_s = cpu_s(pid) - before_s, time.monotonic() - began_s
        return {
            "period": period,
            "processes_more": processes,
            "kinds": kinds,
            "cpu_s_per_hour": used_s / took_s * 3_600,
            "core_percent": 100 * used_s / took_s,
            "resident_mb": resident_mb(pid),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    lengths_s = {"10s": 30.0 if arguments.quick else 120.0, "1s": 10.0 if arguments.quick else 40.0}
    results = [measured(period, more, lengths_s[period]) for period, more in RUNS]
    report.table(
        ["period", "more processes", "kinds", "CPU s/hour", "% of a core", "resident MB"],
        [list(each.values()) for each in results],
    )
    if arguments.json:
        report.write("agent", results, arguments.json)


if __name__ == "__main__":
    main()
