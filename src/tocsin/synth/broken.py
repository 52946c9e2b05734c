"""Broken: records as no publisher should send them and every archive has some.

They stand beside the others, never in place of one, so that the truth about runs stays what it is.
Those that can be heard tell of runs of their own, named `broken-N`, of the workflow `broken`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.facts import FactsReader
from tocsin.archive.record import SCHEMA, to_batch
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.monitor.times import NS_PER_US, format_ns

WORKFLOW: Final = "broken"
SOURCE: Final = "/engines/broken"
HUGE_BYTES: Final = 2 << 20
HUGE_MAX: Final = 5  # in one archive
BURSTS_MAX: Final = 3  # in one window: whoever sends broken records sends some in a row

# A column that may hold no null, and does: readers refuse such a file as a whole. No broker writes
# one, so they are made only if asked for; few of them, and with nothing else in them.
NULLS: Final = ("null_id", "null_source", "null_type", "null_received", "null_at")
SPOILED_EVERY: Final = 8  # windows have what spoils a file; the first is one of them


def _event(number: int, pairs: dict[str, str], time: str | None) -> Event:
    return Event(
        id=f"broken-{number}",
        source=SOURCE,
        type="bb.ActivitySucceeded",
        topic=f"blackboard/{WORKFLOW}/broken-{number}",
        time=time,
        subject="step-1",
        datacontenttype="application/json",
        data=json.dumps(pairs, separators=(",", ":")).encode(),
    )


def _pairs(number: int, time: str) -> dict[str, str]:
    return {
        "RunId": f"broken-{number}",
        "WorkflowName": WORKFLOW,
        "ActivitySucceeded": time,
        "ActivityId": "step-1",
        "ActivityType": "step",
        "Attempt": "1",
        "ExitCode": "0",
    }


def _with_data(number: int, time: str, change: Callable[[bytes], bytes]) -> Event:
    whole = _event(number, _pairs(number, time), time)
    return msgspec.structs.replace(whole, data=change(whole.data or b""))


def _not_json(number: int, time: str) -> Event:
    return _with_data(number, time, lambda data: data[: len(data) // 2])


def _not_an_object(number: int, time: str) -> Event:
    return _with_data(number, time, lambda data: b'["RunId",' + data + b"]")


def _no_run(number: int, time: str) -> Event:
    pairs = {k: v for k, v in _pairs(number, time).items() if k not in ("RunId", "WorkflowName")}
    return _event(number, pairs, time)


def _bad_run(number: int, time: str) -> Event:
    name = f"broken\n{number}" if number % 2 else f"broken-{number}-" + "x" * 1_000
    return _event(number, {**_pairs(number, time), "RunId": name}, time)


def _bad_time(number: int, time: str) -> Event:
    words = ("yesterday", "2026-13-45T99:99:99Z", "9999-12-31T23:59:59Z", "12345")[number % 4]
    return _event(number, _pairs(number, words), words)


def _bad_number(number: int, time: str) -> Event:
    wrong = {"ExitCode": "many", "InputBytes": "-", "MemoryPeak": "1e999", "CpuSeconds": "NaN"}
    return _event(number, {**_pairs(number, time), **wrong, "Attempt": "second"}, time)


def _huge(number: int, time: str) -> Event:
    return _event(number, {**_pairs(number, time), "ErrorMessage": "x" * HUGE_BYTES}, time)


def _plain(number: int, time: str) -> Event:
    return _event(number, _pairs(number, time), time)


REPEATS: Final = "seq_repeats"
NOT_UTF8: Final = "not_utf8"
HUGE: Final = "huge"
SPOILING: Final = frozenset({*NULLS, REPEATS})  # what makes its whole file a damaged one
MAKERS: Final[dict[str, Callable[[int, str], Event]]] = {
    **dict.fromkeys(NULLS, _plain),
    REPEATS: _plain,
    "not_json": _not_json,
    NOT_UTF8: _plain,
    "not_an_object": _not_an_object,
    "no_run": _no_run,
    "bad_run": _bad_run,
    "bad_time": _bad_time,
    "bad_number": _bad_number,
    HUGE: _huge,
}


class Breaking:
    """Deals out kinds of damage, and counts them."""

    def __init__(self, *, files: bool) -> None:
        """`files`: also those that make their whole file a damaged one."""
        self.counts = {kind: 0 for kind in MAKERS if files or kind not in SPOILING}
        self._made = 0

    def kinds(self, count: int, *, spoiling: bool) -> list[str]:
        """So many, each time the kind of which there are fewest."""
        return [self._next(spoiling=spoiling) for _ in range(count)]

    def _next(self, *, spoiling: bool) -> str:
        among = [
            kind
            for kind, count in self.counts.items()
            if (spoiling or kind not in SPOILING) and (kind != HUGE or count < HUGE_MAX)
        ]
        kind = min(among, key=lambda each: self.counts[each])
        self.counts[kind] += 1
        return kind

    def event(self, kind: str, received_us: int) -> tuple[Event, bytes | None]:
        """The event, and the bytes to put in place of its data if it cannot be read at all."""
        self._made += 1
        event = MAKERS[kind](self._made, format_ns(received_us * NS_PER_US))
        if kind != NOT_UTF8 or event.data is None:
            return event, None
        raw = event.data.replace(b"step-1", b"\xff\xfe\xc3(")
        return msgspec.structs.replace(event, data=None), raw


def nullable(schema: pa.Schema) -> pa.Schema:
    fields = [each.with_nullable(True) for each in schema]
    return pa.schema(fields, metadata=schema.metadata)


def with_nulls(
    events: Sequence[tuple[str, Event]], first_seq: int, received_us: int, facts_reader: FactsReader
) -> pa.RecordBatch:
    """The events, each with a null in the column that its kind of damage names."""
    batch = to_batch(
        [
            Stored(seq, received_us * NS_PER_US, event)
            for seq, (_, event) in enumerate(events, first_seq)
        ],
        facts_reader,
    )
    arrays = []
    for name, column in zip(SCHEMA.names, batch.columns, strict=True):
        hit = pa.array([kind == f"null_{name}" for kind, _ in events])
        missing = pa.scalar(None, column.type)
        arrays.append(pc.if_else(hit, missing, column) if pc.any(hit).as_py() else column)
    return pa.RecordBatch.from_arrays(arrays, schema=nullable(SCHEMA))
