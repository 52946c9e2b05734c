"""Messages: rows that tell of runs, in the words that the adapters of engines use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.facts import MOMENT
from tocsin.synth import texts
from tocsin.synth.faults import FAULTS
from tocsin.synth.roster import Of, Roster
from tocsin.synth.rows import FAILURES, LEAD, OF_RUNS, US_PER_MS, At, Kind, figure
from tocsin.synth.texts import Ints, Part, join, picked, pool
from tocsin.synth.world import ENGINES, USERS, World
from tocsin.wire.blackboard.normal import TOPIC_ROOT

Told = dict[str, pa.Array]

ENDS: Final = (Kind.SUCCEEDED, *FAILURES, Kind.CANCELLED)
_BYTES: Final = ("InputBytes", "OutputBytes", "MemoryPeak", "IoReadBytes", "IoWriteBytes")
_FAULT_NUMBER: Final = 97  # the second number of a fault's message is the first one modulo this


class Words:
    """The columns of some rows that tell of runs, all of them in the order of the rows."""

    def __init__(
        self, rows: Ints, time: pa.StringArray, world: World, roster: Roster, salt: int
    ) -> None:
        self.rows = rows
        self.world = world
        self.roster = roster
        run = rows[:, At.RUN]
        self.kind = rows[:, At.KIND]
        self.workflow = roster.of(run, Of.WORKFLOW)
        self.time = time
        self.run = texts.hexadecimal(texts.mixed(run, salt))
        of_runs = np.isin(self.kind, OF_RUNS)
        self.is_of_run = of_runs
        named = join(_types(world, "", "-", rows[:, At.TYPE]), texts.whole(rows[:, At.ACTIVITY]))
        self.activity = pc.if_else(pa.array(of_runs), pa.scalar(None, pa.string()), named)

    def id(self) -> pa.StringArray:
        """As an adapter names a message: by what it is about, so that it may be repeated."""
        began = texts.whole(self.roster.of(self.rows[:, At.RUN], Of.START_MS))
        attempt = picked(_attempts(), self.rows[:, At.ATTEMPT])
        of_activity = pc.if_else(
            pa.array(self.is_of_run),
            "/",
            join("/", pc.fill_null(self.activity, ""), attempt),
        )
        # Of one attempt there is one event of each kind.
        return join(self.run, "@", began, of_activity, picked(_endings(), self.kind))

    def source(self) -> pa.StringArray:
        engine = self.world.engine_of[self.workflow]
        return join(picked(pool([f"/engines/{name}/" for name in ENGINES]), engine), self.run)

    def topic(self) -> pa.StringArray:
        places = pool([f"{TOPIC_ROOT}/{name}/" for name in self.world.workflows])
        return join(picked(places, self.workflow), self.run)

    def subject(self) -> pa.StringArray:
        return pc.coalesce(self.activity, self.run)


@lru_cache(maxsize=1)
def _attempts() -> pa.StringArray:
    return pool([f"/{number}/" for number in range(16)])


@lru_cache(maxsize=1)
def _endings() -> pa.StringArray:
    return pool([LEAD.get(kind, "sample") for kind in Kind])


def _types(world: World, before: str, after: str, places: Ints) -> pa.StringArray:
    return picked(pool([f"{before}{name}{after}" for name in world.types]), places)


# Data: JSON to the byte


def data_of(words: Words, kind: Kind, which: Ints, plans: Mapping[int, str]) -> pa.StringArray:
    """The payload of the rows of one kind, in their order; `plans` are JSON by row."""
    rows = words.rows[which]
    places = pa.array(which)
    run, time = words.run.take(places), words.time.take(places)
    lead = f'","{LEAD[kind]}":"' if kind in LEAD else ""
    names = pool([f'","WorkflowName":"{name}{lead}' for name in words.world.workflows])
    head: list[Part] = ['{"RunId":"', run, picked(names, words.workflow[which])]
    if lead:
        head.append(time)
    if kind in OF_RUNS:
        return join(*head, *_run_pairs(words, kind, rows, which, plans), '"}')
    activity = words.activity.take(places)
    types = _types(words.world, '","ActivityType":"', '","Attempt":"', rows[:, At.TYPE])
    head += ['","ActivityId":"', activity, types, texts.whole(rows[:, At.ATTEMPT])]
    return join(*head, *_activity_pairs(words, kind, rows), '"}')


def _run_pairs(
    words: Words, kind: Kind, rows: Ints, which: Ints, plans: Mapping[int, str]
) -> list[Part]:
    if kind != Kind.STARTED:
        return []
    run, world, roster = rows[:, At.RUN], words.world, words.roster
    workflow = words.workflow[which]
    engines = pool([f'","EngineName":"{name}' for name in ENGINES])
    users = pool([f'","UserName":"{name}' for name in USERS])
    planned = pool([f'","ActivityPlan":"{plans[row]}' if row in plans else "" for row in which])
    return [
        *('","WorkflowVersion":"', _versions(world, workflow, roster.of(run, Of.VERSION))),
        picked(engines, world.engine_of[workflow]),
        picked(users, roster.of(run, Of.USER)),
        *('","PlannedActivities":"', texts.whole(rows[:, figure(0)])),
        planned,
    ]


def _activity_pairs(words: Words, kind: Kind, rows: Ints) -> list[Part]:
    hosts = pool([f'","Host":"{name}' for name in words.world.hosts])
    host = picked(hosts, rows[:, At.HOST])
    if kind == Kind.EXECUTING:
        return [host]
    if kind == Kind.QUEUED:
        memory, cores = (texts.whole(rows[:, figure(place)]) for place in range(2))
        return ['","MemoryRequested":"', memory, '","CpuCores":"', cores]
    if kind == Kind.SAMPLE:
        resident, read = (texts.whole(rows[:, figure(place)]) for place in (1, 2))
        percent = texts.decimal(rows[:, figure(0)], 1)
        return [
            *(host, '","CpuPercent":"', *percent),
            *('","MemoryRss":"', resident, '","IoReadBytes":"', read),
        ]
    return [host, *_end_pairs(kind, rows)] if kind in ENDS else []


def _end_pairs(kind: Kind, rows: Ints) -> list[Part]:
    numbers = [texts.whole(rows[:, figure(place)]) for place in (0, 1, 3, 4, 5)]
    pairs: list[Part] = ['","CpuSeconds":"', *texts.decimal(rows[:, figure(2)], 2)]
    for name, number in zip(_BYTES, numbers, strict=True):
        pairs += [f'","{name}":"', number]
    if kind == Kind.CANCELLED:
        return pairs
    if kind == Kind.SUCCEEDED:
        return ['","ExitCode":"0', *pairs]
    fault = rows[:, figure(6)]
    codes = pool([f'","ExitCode":"{each.exit_code}' for each in FAULTS])
    traces = pool(['","ErrorTrace":"' + in_json(f.trace) if f.trace else "" for f in FAULTS])
    return [
        *(picked(codes, fault), *pairs, '","ErrorMessage":"', _fault_words(rows)),
        picked(traces, fault),
    ]


def in_json(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _fault_words(rows: Ints) -> pa.StringArray:
    fault, number = rows[:, figure(6)], rows[:, figure(7)]
    return join(
        picked(pool([each.before for each in FAULTS]), fault),
        texts.whole(number),
        picked(pool([each.between for each in FAULTS]), fault),
        texts.whole(number % _FAULT_NUMBER),
        picked(pool([each.after for each in FAULTS]), fault),
    )


def _versions(world: World, workflow: Ints, version: Ints) -> pa.StringArray:
    width = max(map(len, world.versions))
    padded = [(*names, *[""] * (width - len(names))) for names in world.versions]
    return picked(pool([name for names in padded for name in names]), workflow * width + version)


# Told: what the same says, typed


def facts_of(words: Words, count: int, at: Ints) -> Told:
    """The members that are said, over all `count` rows of a file; `at` are the places of ours."""
    rows, world, roster = words.rows, words.world, words.roster
    put = _Placing(count, at)
    found: Told = {"WorkflowName": put.texts(pool(world.workflows), words.workflow)}
    for kind, lead in LEAD.items():
        which = np.flatnonzero(words.kind == kind)
        found[lead] = put.moments(rows[which, At.TIME_MS], which)
    of_activity = np.flatnonzero(~words.is_of_run)
    found["ActivityType"] = put.texts(pool(world.types), rows[of_activity, At.TYPE], of_activity)
    on_host = np.flatnonzero(np.isin(words.kind, (Kind.EXECUTING, Kind.SAMPLE, *ENDS)))
    found["Host"] = put.texts(pool(world.hosts), rows[on_host, At.HOST], on_host)
    found |= _figure_facts(words, put)
    found |= _fault_facts(words, put)
    began = np.flatnonzero(words.kind == Kind.STARTED)
    run, workflow = rows[began, At.RUN], words.workflow[began]
    found["WorkflowVersion"] = put.any(
        _versions(world, workflow, roster.of(run, Of.VERSION)), began
    )
    found["EngineName"] = put.texts(pool(ENGINES), world.engine_of[workflow], began)
    found["UserName"] = put.texts(pool(USERS), roster.of(run, Of.USER), began)
    planned = rows[began, figure(0)]
    found["PlannedActivities"] = put.numbers(planned, began, pa.int64())
    found["PlannedActivities_list"] = put.lists(texts.whole(planned), began)
    return found


def _figure_facts(words: Words, put: _Placing) -> Told:
    rows, kind = words.rows, words.kind
    queued = np.flatnonzero(kind == Kind.QUEUED)
    sample = np.flatnonzero(kind == Kind.SAMPLE)
    ended = np.flatnonzero(np.isin(kind, ENDS))
    read = np.concatenate([sample, ended])
    read_bytes = np.concatenate([rows[sample, figure(2)], rows[ended, figure(4)]])
    return {
        "MemoryRequested": put.numbers(rows[queued, figure(0)], queued),
        "CpuCores": put.numbers(rows[queued, figure(1)], queued),
        "CpuPercent": put.numbers(rows[sample, figure(0)] / 10, sample),
        "MemoryRss": put.numbers(rows[sample, figure(1)], sample),
        "IoReadBytes": put.numbers(read_bytes, read),
        "InputBytes": put.numbers(rows[ended, figure(0)], ended, pa.int64()),
        "OutputBytes": put.numbers(rows[ended, figure(1)], ended, pa.int64()),
        "CpuSeconds": put.numbers(rows[ended, figure(2)] / 100, ended),
        "MemoryPeak": put.numbers(rows[ended, figure(3)], ended),
        "IoWriteBytes": put.numbers(rows[ended, figure(5)], ended),
    }


def _fault_facts(words: Words, put: _Placing) -> Told:
    failed = np.flatnonzero(np.isin(words.kind, FAILURES))
    coded = np.flatnonzero(np.isin(words.kind, (Kind.SUCCEEDED, *FAILURES)))
    codes = np.where(
        words.kind[coded] == Kind.SUCCEEDED,
        0,
        np.array([each.exit_code for each in FAULTS])[words.rows[coded, figure(6)]],
    )
    fault = words.rows[failed, figure(6)]
    return {
        "ExitCode": put.numbers(codes, coded, pa.int64()),
        "ErrorMessage": put.any(_fault_words(words.rows[failed]), failed),
        "ErrorTrace": put.texts(pool([each.trace for each in FAULTS]), fault, failed),
    }


class _Placing:
    """Puts values of some of our rows where those stand in the file; the rest is null."""

    def __init__(self, count: int, at: Ints) -> None:
        self._count = count
        self._at = at

    def numbers(self, values: Any, which: Ints, kind: pa.DataType | None = None) -> pa.Array:
        """Of eight bytes each: numbers with a point, unless another type is asked for."""
        return self._spread(values, which, kind or pa.float64())

    def moments(self, values_ms: Ints, which: Ints) -> pa.Array:
        return self._spread(values_ms * US_PER_MS, which, MOMENT)

    def texts(self, choice: pa.StringArray, values: Ints, which: Ints | None = None) -> pa.Array:
        return choice.take(self._spread(values, which, pa.int64()))

    def any(self, values: pa.Array, which: Ints) -> pa.Array:
        return values.take(self._spread(np.arange(len(values)), which, pa.int64()))

    def lists(self, values: pa.StringArray, which: Ints) -> pa.Array:
        """Each value as a list of one."""
        offsets = pa.array(np.arange(len(values) + 1, dtype=np.int32))
        return self.any(pa.ListArray.from_arrays(offsets, values), which)

    def _spread(self, values: Any, which: Ints | None, kind: pa.DataType) -> pa.Array:
        places = self._at if which is None else self._at[which]
        full = np.zeros(self._count, np.float64 if kind == pa.float64() else np.int64)
        known = np.zeros(self._count, np.bool_)
        full[places] = values
        known[places] = True
        # The buffers as Arrow wants them: nothing is copied once more, as `pa.array` would.
        bits = pa.py_buffer(np.packbits(known, bitorder="little"))
        return pa.Array.from_buffers(kind, self._count, [bits, pa.py_buffer(full)])
