"""A task as Nextflow's trace record describes it: raw numbers, times in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tocsin.wire.engines.checked_values import (
    amount,
    decimal,
    filled,
    member,
    moment_ms,
    name,
    number,
    text,
    total,
    whole,
)

OUT_OF_MEMORY_EXIT: Final = 137  # killed by signal 9, as the kernel and batch systems do it
NO_EXIT: Final = 0x7FFFFFFF  # what Nextflow has where there was none

ENDS: Final[Mapping[str, str]] = {
    "COMPLETED": "ActivitySucceeded",
    "CACHED": "ActivityCached",
    "ABORTED": "ActivityCancelled",
    "FAILED": "ActivityFailed",
    "CLOSED": "ActivityClosed",  # our own word, for an end of which nobody says how
}


@dataclass(frozen=True, slots=True)
class Task:
    """One try of a task."""

    id: int | None
    name: str
    attempt: int
    status: str
    trace: Mapping[str, Any]


def read_task(trace: object, *, closed: bool) -> Task | None:
    """The task, `closed` if this comes with its end; None if the record does not say which."""
    if not isinstance(trace, Mapping):
        return None
    number_ = whole(trace.get("task_id"))
    called = name(trace.get("name")) or name(trace.get("process"))
    if called is None and number_ is None:
        return None
    attempt = whole(trace.get("attempt"))
    return Task(
        id=number_,
        name=called or f"task {number_}",
        attempt=attempt if attempt is not None and attempt > 0 else 1,
        status=_status(trace, closed=closed),
        trace=trace,
    )


def _status(trace: Mapping[str, Any], *, closed: bool) -> str:
    status = trace.get("status")
    if not isinstance(status, str):
        status = ""
    if not closed or status in ENDS:
        return status
    code = whole(trace.get("exit"))
    if code is None or code == NO_EXIT:
        return "CLOSED"
    return "FAILED" if code else "COMPLETED"


def task_pairs(task: Task, sent: str) -> tuple[str, dict[str, str], str]:
    """What happened last, all pairs of the task but whose it is, and the time."""
    trace = task.trace
    submitted, began = moment_ms(trace.get("submit")), moment_ms(trace.get("start"))
    times = {"ActivitySubmitted": submitted, "ActivityExecuting": began}
    ended = task.status in ENDS
    if ended:
        concept = _end(task)
        time = moment_ms(trace.get("complete")) or sent
        times = {concept: time, **times}
    elif task.status == "RUNNING" or began is not None:
        concept, time = "ActivityExecuting", began or sent
        times = {concept: time, "ActivitySubmitted": submitted}
    else:
        concept, time = "ActivitySubmitted", submitted or sent
        times = {concept: time}
    about = {**times, **_what(task)}
    if ended:
        about |= _used(trace)
        if concept != "ActivityCached":
            about |= _how_it_ended(trace)
    return concept, filled(about), time


def _end(task: Task) -> str:
    if task.status != "FAILED":
        return ENDS[task.status]
    if task.trace.get("error_action") == "RETRY":
        return "ActivityRetrying"
    if whole(task.trace.get("exit")) == OUT_OF_MEMORY_EXIT:
        return "ActivityOutOfMemory"
    return "ActivityFailed"


def _what(task: Task) -> dict[str, str | None]:
    trace = task.trace
    process = name(trace.get("process")) or name(task.name.partition(" (")[0])
    return {
        "ActivityType": process,
        "EngineName": "nextflow",
        "EngineJobId": name(trace.get("native_id")),
        "Host": name(trace.get("hostname")),
        "Container": text(trace.get("container")),
        "WorkingDirectory": text(trace.get("workdir")),
        "CpuCores": amount(trace.get("cpus")),
        "MemoryRequested": total(trace.get("memory")),
    }


def _used(trace: Mapping[str, Any]) -> dict[str, str | None]:
    realtime_ms = number(trace.get("realtime"))
    percent = number(trace.get("%cpu"))
    cores = number(trace.get("cpus")) or 1
    used: dict[str, str | None] = {
        "Duration": amount(realtime_ms, 0.001),
        "MemoryPeak": total(trace.get("peak_rss")),
        "MemoryVirtual": total(trace.get("peak_vmem")),
        "IoReadBytes": total(trace.get("rchar")),
        "IoWriteBytes": total(trace.get("wchar")),
    }
    if percent is not None and percent >= 0:
        # Nextflow says 400 of four busy cores; a percentage here is of what the task was given.
        used["CpuPercent"] = decimal(min(100.0, percent / max(1, cores)))
        if realtime_ms is not None and realtime_ms >= 0:
            used["CpuSeconds"] = decimal(realtime_ms * percent / 100_000)
    submitted, began = number(trace.get("submit")), number(trace.get("start"))
    if submitted is not None and began is not None:
        used["QueueTime"] = amount(began - submitted, 0.001)
    return used


def _how_it_ended(trace: Mapping[str, Any]) -> dict[str, str | None]:
    code = whole(member(trace, "exit"))
    workdir = text(trace.get("workdir"))
    return {
        "ExitCode": None if code is None or code == NO_EXIT else str(code),
        "CommandLine": text(trace.get("script")),
        "LogFile": f"{workdir}/.command.log" if workdir else None,
    }
