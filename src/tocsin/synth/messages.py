"""Messages: the events of runs, as the adapters of engines publish them.

Each field is given once, as the text that its JSON has and as the typed fact that readers get.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.record import PLAN
from tocsin.synth.rows import (
    CONCEPTS,
    ENDS,
    FAILURES,
    RUN_KINDS,
    US_PER_MS,
    Col,
    Kind,
    RunTable,
)
from tocsin.synth.texts import Floats, Ints, Part, decimal, hexadecimal, join, mix, pick, whole
from tocsin.synth.world import ENGINES, FAULTS, USERS, World
from tocsin.wire.blackboard.normal import TOPIC_ROOT

_FAULT_NUMBER: Final = 97  # the second number in a fault's message is the first one modulo this
_EXIT_CODES: Final = np.array([fault.exit_code for fault in FAULTS])


@dataclass(frozen=True, slots=True)
class Context:
    """What rows refer to by number."""

    world: World
    runs: RunTable
    salt: int


class _Field(NamedTuple):
    """A text that is null leaves the field out of the JSON."""

    name: str
    text: Part
    fact: pa.Array | Ints | Floats | None = None


def _text(name: str, text: pa.StringArray) -> _Field:
    return _Field(name, text, text)


def _number(name: str, values: Ints) -> _Field:
    return _Field(name, whole(values), values)


def columns_of(
    kind: Kind, rows: Ints, time: pa.StringArray, context: Context
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the archive's record that rows of one kind have, and their facts."""
    world, runs = context.world, context.runs
    number = rows[:, Col.RUN]
    workflow = runs.of(number, RunTable.WORKFLOW)
    run = hexadecimal(mix(number, context.salt))
    name = pick(world.workflows, workflow)
    fields = [_Field("RunId", run), _text("WorkflowName", name)]
    if kind in CONCEPTS:
        fields.append(_Field(CONCEPTS[kind], time, rows[:, Col.TIME_MS] * US_PER_MS))
    # Adapters name a message by what it is about, so that it may be repeated. Of one attempt there
    # is one event of each kind.
    id_parts: list[Part] = [run, "@", whole(runs.of(number, RunTable.START_MS)), "/"]
    columns: dict[str, Any] = {"run": run, "subject": run}
    if kind not in RUN_KINDS:
        kind_of_activity = pick(world.types, rows[:, Col.TYPE])
        activity = join(kind_of_activity, "-", whole(rows[:, Col.ACTIVITY]))
        attempt = whole(rows[:, Col.ATTEMPT])
        id_parts += [activity, "/", attempt, "/"]
        columns |= {"activity": activity, "subject": activity, "attempt": rows[:, Col.ATTEMPT]}
        fields += [_Field("ActivityId", activity), _text("ActivityType", kind_of_activity)]
        fields += [_Field("Attempt", attempt), *_activity_fields(kind, rows, world)]
    elif kind == Kind.STARTED:
        plans = [
            _tasks(world, int(each), int(scale)) if scale else None
            for each, scale in zip(workflow, runs.of(number, RunTable.PLAN_SCALE), strict=True)
        ]
        columns["plan"] = pa.array(plans, PLAN)
        fields += _start_fields(rows, workflow, plans, context)
    facts = {each.name: each.fact for each in fields if each.fact is not None}
    if kind == Kind.STARTED:
        facts["PlannedActivities_list"] = _lists_of_one(whole(rows[:, Col.PLANNED]))
    engine = pick([f"/engines/{each}/" for each in ENGINES], world.engine_of[workflow])
    return columns | {
        "id": join(*id_parts, CONCEPTS.get(kind, "sample")),
        "source": join(engine, run),
        "topic": join(f"{TOPIC_ROOT}/", name, "/", run),
        "datacontenttype": "application/json",
        "data": _json(fields),
    }, facts


def _json(fields: list[_Field]) -> pa.StringArray:
    parts: list[Part] = []
    for number, (name, text, _) in enumerate(fields):
        key = f'","{name}":"' if number else f'{{"{name}":"'
        has_null = isinstance(text, pa.Array) and text.null_count
        parts += [pc.fill_null(join(key, text), "")] if has_null else [key, text]
    return join(*parts, '"}')


def _lists_of_one(values: pa.StringArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)


def _escaped(text: str | None) -> str | None:
    return text and json.dumps(text, ensure_ascii=False)[1:-1]


def _start_fields(
    rows: Ints, workflow: Ints, plans: list[list[dict[str, Any]] | None], context: Context
) -> Iterator[_Field]:
    world, runs, number = context.world, context.runs, rows[:, Col.RUN]
    version = runs.of(number, RunTable.VERSION)
    width = max(map(len, world.versions))
    versions = [name for names in world.versions for name in (*names, *[""] * (width - len(names)))]
    yield _text("WorkflowVersion", pick(versions, workflow * width + version))
    yield _text("EngineName", pick(ENGINES, world.engine_of[workflow]))
    yield _text("UserName", pick(USERS, runs.of(number, RunTable.USER)))
    yield _number("PlannedActivities", rows[:, Col.PLANNED])
    in_json = [plan and _escaped(json.dumps(plan, separators=(",", ":"))) for plan in plans]
    yield _Field("ActivityPlan", pa.array(in_json, pa.string()))


def _activity_fields(kind: Kind, rows: Ints, world: World) -> Iterator[_Field]:
    if kind == Kind.QUEUED:
        yield _number("MemoryRequested", rows[:, Col.MEMORY])
        yield _number("CpuCores", rows[:, Col.CPU])
    if kind in (Kind.EXECUTING, Kind.SAMPLE, *ENDS):
        yield _text("Host", pick(world.hosts, rows[:, Col.HOST]))
    if kind == Kind.SAMPLE:
        percent = rows[:, Col.CPU]
        yield _Field("CpuPercent", decimal(percent, 1), percent / 10)
        yield _number("MemoryRss", rows[:, Col.MEMORY])
        yield _number("IoReadBytes", rows[:, Col.READ])
    if kind in ENDS:
        yield from _end_fields(kind, rows)


def _end_fields(kind: Kind, rows: Ints) -> Iterator[_Field]:
    fault, number = rows[:, Col.FAULT], rows[:, Col.FAULT_NUMBER]
    if kind != Kind.CANCELLED:
        codes = np.zeros_like(fault) if kind == Kind.SUCCEEDED else _EXIT_CODES[fault]
        yield _number("ExitCode", codes)
    yield _Field("CpuSeconds", decimal(rows[:, Col.CPU], 2), rows[:, Col.CPU] / 100)
    yield _number("InputBytes", rows[:, Col.INPUT])
    yield _number("OutputBytes", rows[:, Col.OUTPUT])
    yield _number("MemoryPeak", rows[:, Col.MEMORY])
    yield _number("IoReadBytes", rows[:, Col.READ])
    yield _number("IoWriteBytes", rows[:, Col.WRITTEN])
    if kind in FAILURES:
        before, between, after = zip(*(each.message.split("{}") for each in FAULTS), strict=True)
        message = join(
            *(pick(before, fault), whole(number), pick(between, fault)),
            *(whole(number % _FAULT_NUMBER), pick(after, fault)),
        )
        yield _text("ErrorMessage", message)
        traces = [each.trace for each in FAULTS]
        yield _Field("ErrorTrace", pick(list(map(_escaped, traces)), fault), pick(traces, fault))


def _tasks(world: World, workflow: int, scale_millionths: int) -> list[dict[str, Any]]:
    """The plan that a run publishes, in the order in which its activities are numbered."""
    ids: dict[int, list[str]] = {}
    tasks: list[dict[str, Any]] = []
    for place in world.types_of(workflow):
        width, name = int(world.width_of[place]), world.types[place]
        count = 1 if width == 1 else max(round(width * scale_millionths / 1_000_000), 1)
        begin = len(tasks) + 1
        ids[place] = [f"{name}-{number}" for number in range(begin, begin + count)]
        for number, task in enumerate(ids[place]):
            parents = [ids[each][number % len(ids[each])] for each in world.parents_of[place]]
            size = {} if parents else {"external_bytes": int(world.input_of[place])}
            tasks.append({"id": task, "type": name, **size, "parents": parents})
    return tasks
