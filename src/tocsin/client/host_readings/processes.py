"""How many processes there are, in which states, and which one uses the processor most.

On Linux one file a process is read, which costs a third of what psutil does for the same and so
decides what a monitor on every node costs; elsewhere psutil is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil

from tocsin.client.host_readings.readings import Process, Processes

PROCESSES_MAX = 65_536  # of more than these, the rest is counted only
PROC = "/proc"
STAT_BYTES_MAX = 2_048  # a line of some fifty numbers

_STATES = {
    b"R": "running",
    b"S": "sleeping",
    b"D": "disk-sleep",
    b"T": "stopped",
    b"t": "stopped",
    b"Z": "zombie",
    b"X": "dead",
    b"x": "dead",
    b"I": "idle",
}
# Where these are among the fields after the name (proc_pid_stat(5), 3 being the first of them).
_STATE, _USER_TICKS, _SYSTEM_TICKS, _STARTED = 0, 11, 12, 19


def processes() -> Processes:
    return linux_processes(PROC) if os.path.exists(f"{PROC}/self/stat") else _asked_processes()


def linux_processes(proc: str) -> Processes:
    """Those of a /proc file system."""
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    names = [name for name in os.listdir(proc) if name.isdecimal()]
    by_state: dict[str, int] = {}
    by_id: dict[int, Process] = {}
    for name in names[:PROCESSES_MAX]:
        found = parse_stat(_stat_of(f"{proc}/{name}/stat"), ticks_per_s)
        if found is not None:
            state, by_id[int(name)] = found
            by_state[state] = by_state.get(state, 0) + 1
    # One that ended while we looked is not there any more.
    ended = min(len(names), PROCESSES_MAX) - len(by_id)
    return Processes(len(names) - ended, by_state, by_id)


def _stat_of(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, STAT_BYTES_MAX)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parse_stat(line: bytes, ticks_per_s: int) -> tuple[str, Process] | None:
    """The state and the use of one process; None if the line is not as it should be."""
    # A name may itself hold blanks and brackets; the last bracket ends it.
    head, bracket, tail = line.rpartition(b") ")
    name = head.partition(b"(")[2]
    fields = tail.split(b" ", _STARTED + 1)
    if not bracket or len(fields) <= _STARTED:
        return None
    try:
        ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
        started = int(fields[_STARTED])
    except ValueError:
        return None
    state = _STATES.get(fields[_STATE], "other")
    return state, Process(started, name.decode("utf-8", "replace"), ticks / ticks_per_s)


def _asked_processes() -> Processes:
    by_state: dict[str, int] = {}
    by_id: dict[int, Process] = {}
    for number, state, process in _asked():
        by_state[state] = by_state.get(state, 0) + 1
        if len(by_id) < PROCESSES_MAX:
            by_id[number] = process
    return Processes(sum(by_state.values()), by_state, by_id)


def _asked() -> Iterator[tuple[int, str, Process]]:
    for each in psutil.process_iter(["status", "name", "create_time", "cpu_times"]):
        info = each.info
        times = info["cpu_times"]
        cpu_s = times.user + times.system if times else 0.0
        name = info["name"] or ""
        yield each.pid, info["status"] or "other", Process(info["create_time"] or 0, name, cpu_s)
