"""Recorded runs: one JSON object each, checked on the way in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.errors import BadRunsFile
from tocsin.monitor.estimate.shape import TASKS_MAX
from tocsin.monitor.estimate.types import Done, PastRun, Plan, Planned

REMEDY = "docs/estimates.md shows what a line must hold. Fix the line, or leave it out."
COUNT_MAX = 1_000_000
SECONDS_MAX = 1e10


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of an application."""

    application: str
    run: PastRun


def parse_run(value: object, where: str) -> Recorded:
    """The run that a line holds; `where` names the line in errors."""
    if not isinstance(value, Mapping):
        raise BadRunsFile(f"{where} is not a JSON object", remedy=REMEDY)
    application = value.get("app")
    if not isinstance(application, str) or not application:
        raise _bad(where, "app", "is not a name")
    makespan_s = _number(value.get("makespan"), where, "makespan")
    if makespan_s <= 0:
        raise _bad(where, "makespan", "is 0")
    types = _list(value, "type", where)
    count = len(types)
    if not count:
        raise _bad(where, "type", "is empty")
    runtimes = _list(value, "runtime", where, count)
    parents = _list(value, "parents", where, count)
    external = _list(value, "external_bytes", where, count)
    tasks = []
    for index, name in enumerate(types):
        if not isinstance(name, str):
            raise _bad(where, f"type[{index}]", "is not a text")
        above = _parents(parents[index], count, where, index)
        size = _bytes(external[index], where, f"external_bytes[{index}]")
        tasks.append(Planned(name, above, size))
    _refuse_cycles(tasks, where)
    done = _done(value, runtimes, where)
    plan = Plan(
        tuple(tasks),
        machines=_count(value.get("machines"), where, "machines"),
        cores=_count(value.get("cores"), where, "cores"),
    )
    return Recorded(application, PastRun(plan, makespan_s, done, str(value.get("file", where))))


def _done(value: Mapping[str, Any], runtimes: Sequence[Any], where: str) -> dict[int, Done]:
    count = len(runtimes)
    columns = {
        name: _list(value, name, where, count) if name in value else [None] * count
        for name in ("started", "ended", "in_bytes", "out_bytes")
    }
    return {
        index: Done(
            _number(runtime_s, where, f"runtime[{index}]"),
            started_s=_time(columns["started"][index], where, f"started[{index}]"),
            ended_s=_time(columns["ended"][index], where, f"ended[{index}]"),
            in_bytes=_bytes(columns["in_bytes"][index], where, f"in_bytes[{index}]"),
            out_bytes=_bytes(columns["out_bytes"][index], where, f"out_bytes[{index}]"),
        )
        for index, runtime_s in enumerate(runtimes)
    }


def _time(value: object, where: str, field: str) -> float | None:
    return None if value is None else _number(value, where, field)


def _bad(where: str, field: str, problem: str) -> BadRunsFile:
    return BadRunsFile(f"{where}: {field} {problem}", remedy=REMEDY)


def _list(value: Mapping[str, Any], field: str, where: str, count: int | None = None) -> list[Any]:
    found = value.get(field)
    if not isinstance(found, list):
        raise _bad(where, field, "is missing" if found is None else "is not a list")
    if len(found) > TASKS_MAX:
        raise _bad(where, field, f"has {len(found):,} tasks; at most {TASKS_MAX:,} are read")
    if count is not None and len(found) != count:
        raise _bad(where, field, f"has {len(found)} entries for {count} tasks")
    return found


def _number(value: object, where: str, field: str) -> float:
    if value is None:
        raise _bad(where, field, "is missing")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(where, field, "is not a number")
    if not 0 <= value <= SECONDS_MAX or not math.isfinite(value):
        raise _bad(where, field, f"is {value:.4g}; it must be 0 to {SECONDS_MAX:.0e} seconds")
    return float(value)


def _count(value: object, where: str, field: str) -> int:
    """Machines or cores; 1 where the record has none, as some engines do not report it."""
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        raise _bad(where, field, f"must be a whole number, at most {COUNT_MAX:,}")
    return max(value, 1)


def _bytes(value: object, where: str, field: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise _bad(where, field, "is not a number of bytes")
    return int(value)


def _parents(value: object, count: int, where: str, index: int) -> tuple[int, ...]:
    field = f"parents[{index}]"
    if not isinstance(value, list):
        raise _bad(where, field, "is not a list")
    for parent in value:
        if isinstance(parent, bool) or not isinstance(parent, int) or not 0 <= parent < count:
            raise _bad(where, field, f"names a task that is not there; there are {count}")
        if parent == index:
            raise _bad(where, field, "names the task itself")
    return tuple(value)


def _refuse_cycles(tasks: Sequence[Planned], where: str) -> None:
    waits = [len(set(task.parents)) for task in tasks]
    children: list[list[int]] = [[] for _ in tasks]
    for index, task in enumerate(tasks):
        for parent in set(task.parents):
            children[parent].append(index)
    order = [index for index, wait in enumerate(waits) if not wait]
    for index in order:
        for child in children[index]:
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    if len(order) < len(tasks):
        stuck = next(index for index, wait in enumerate(waits) if wait)
        raise _bad(where, f"parents[{stuck}]", "leads back to the task itself")
