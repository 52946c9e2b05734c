"""Broken records: what no publisher should send and every archive has some of.

They are added to the other events and replace none, so that the truth about runs stays the same.
Those that readers can use are about runs of their own, `broken-N` of the workflow `broken`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.facts import FactsReader
from tocsin.archive.record import SCHEMA, to_batch
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.monitor.times import NS_PER_US, shown

WORKFLOW: Final = "broken"
SOURCE: Final = "/engines/broken"
HUGE_BYTES: Final = 2 << 20
HUGE_MAX: Final = 5  # in one archive
BURSTS_MAX: Final = 3  # in one window: whoever sends broken records sends several in a row

# A null in a column that allows none: readers refuse the whole file. No broker writes such files,
# so they are made only if asked for; few of them, and with nothing else in them.
NULLS: Final = ("null_id", "null_source", "null_type", "null_received", "null_at")
REPEATED_SEQ: Final = "seq_repeats"
FILE_DAMAGE: Final = frozenset({*NULLS, REPEATED_SEQ})
FILE_DAMAGE_EVERY: Final = 8  # windows, from the first on
NOT_UTF8: Final = "not_utf8"
HUGE: Final = "huge"
KINDS: Final = (
    *(*NULLS, REPEATED_SEQ, "not_json", NOT_UTF8, "not_an_object", "no_run", "bad_run"),
    *("bad_time", "bad_number", HUGE),
)
_BAD_TIMES: Final = ("yesterday", "2026-13-45T99:99:99Z", "9999-12-31T23:59:59Z", "12345")


class BrokenRecords:
    """Makes broken records of all kinds in turn, and counts them."""

    def __init__(self, *, files: bool) -> None:
        """`files`: also those that make their whole file unreadable."""
        self.counts = {kind: 0 for kind in KINDS if files or kind not in FILE_DAMAGE}
        self._made = 0

    def next_kinds(self, count: int, *, file_damage: bool) -> list[str]:
        """Each time the kind of which there are fewest."""
        kinds = []
        for _ in range(count):
            allowed = (
                kind
                for kind, made in self.counts.items()
                if (file_damage or kind not in FILE_DAMAGE) and (kind != HUGE or made < HUGE_MAX)
            )
            kind = min(allowed, key=self.counts.__getitem__)
            self.counts[kind] += 1
            kinds.append(kind)
        return kinds

    def event(self, kind: str, received_us: int) -> tuple[Event, bytes | None]:
        """The event, and the bytes to put in place of its data if these are not UTF-8."""
        self._made += 1
        event = _event(kind, self._made, shown(received_us * NS_PER_US))
        if kind != NOT_UTF8 or event.data is None:
            return event, None
        raw = event.data.replace(b"step-1", b"\xff\xfe\xc3(")
        return msgspec.structs.replace(event, data=None), raw


def _event(kind: str, number: int, time: str) -> Event:
    name = f"broken-{number}"
    if kind == "bad_time":
        time = _BAD_TIMES[number % len(_BAD_TIMES)]
    pairs = {
        "RunId": name,
        "WorkflowName": WORKFLOW,
        "ActivitySucceeded": time,
        "ActivityId": "step-1",
        "ActivityType": "step",
        "Attempt": "1",
        "ExitCode": "0",
    }
    if kind == "no_run":
        del pairs["RunId"], pairs["WorkflowName"]
    elif kind == "bad_run":
        pairs["RunId"] = f"broken\n{number}" if number % 2 else f"{name}-" + "x" * 1_000
    elif kind == "bad_number":
        pairs |= {"ExitCode": "many", "InputBytes": "-", "MemoryPeak": "1e999"}
        pairs |= {"CpuSeconds": "NaN", "Attempt": "second"}
    elif kind == HUGE:
        pairs["ErrorMessage"] = "x" * HUGE_BYTES
    data = json.dumps(pairs, separators=(",", ":")).encode()
    if kind == "not_json":
        data = data[: len(data) // 2]
    elif kind == "not_an_object":
        data = b'["RunId",' + data + b"]"
    return Event(
        id=name,
        source=SOURCE,
        type="bb.ActivitySucceeded",
        topic=f"blackboard/{WORKFLOW}/{name}",
        time=time,
        subject="step-1",
        datacontenttype="application/json",
        data=data,
    )


def batch_with_nulls(
    events: Sequence[tuple[str, Event]], first_seq: int, received_us: int, facts_reader: FactsReader
) -> pa.RecordBatch:
    """The events, each with a null in the column that its kind names."""
    stored = [
        Stored(seq, received_us * NS_PER_US, event)
        for seq, (_, event) in enumerate(events, first_seq)
    ]
    arrays = []
    for name, column in zip(SCHEMA.names, to_batch(stored, facts_reader).columns, strict=True):
        hit = pa.array([kind == f"null_{name}" for kind, _ in events])
        missing = pa.scalar(None, column.type)
        arrays.append(pc.if_else(hit, missing, column) if pc.any(hit).as_py() else column)
    nullable = pa.schema([each.with_nullable(True) for each in SCHEMA], metadata=SCHEMA.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=nullable)
