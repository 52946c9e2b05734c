"""Record: one archived event, as columns. The layout has a version; see docs/archive.md.

The first columns are the event to the byte, so that it can be published again. The others are what
it says of a run, read once by the functions of the monitor: see `facts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from tocsin.archive.facts import FACTS, MOMENT, FactsReader
from tocsin.event.event import Event, Value
from tocsin.event.instant import NS_PER_US, iso8601_ns
from tocsin.event.stored import Stored
from tocsin.event.value import Scalar
from tocsin.monitor.fold import RunMessage, attempt_number, believed_ns, planned_tasks
from tocsin.monitor.run_messages import BadRunId, run_message
from tocsin.monitor.values import NAME_CHARS_MAX

VERSION: Final = 1
VERSION_KEY: Final = b"tocsin.archive.version"

PLAN: Final = pa.list_(
    pa.struct(
        [
            pa.field("id", pa.string()),
            pa.field("type", pa.string()),
            pa.field("external_bytes", pa.int64()),
            pa.field("parents", pa.list_(pa.string())),
            pa.field("open", pa.bool_()),
        ]
    )
)

SCHEMA: Final = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("received", MOMENT, nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("time", pa.string()),
        pa.field("subject", pa.string()),
        pa.field("datacontenttype", pa.string()),
        pa.field("dataschema", pa.string()),
        pa.field("extensions", pa.string()),  # a JSON object
        pa.field("attributes", pa.string()),  # a JSON object; values may have a unit and accuracy
        pa.field("data", pa.binary()),
        # When it happened: what its source says, unless that cannot be believed.
        pa.field("at", MOMENT, nullable=False),
        pa.field("run", pa.string()),
        pa.field("activity", pa.string()),
        pa.field("attempt", pa.int32()),
        pa.field("facts", FACTS),
        pa.field("plan", PLAN),
    ],
    metadata={VERSION_KEY: str(VERSION).encode()},
)
EVENT_COLUMNS: Final = tuple(SCHEMA.names[: SCHEMA.names.index("at")])

_encode = msgspec.json.Encoder().encode
_read_extensions = msgspec.json.Decoder(dict[str, Scalar]).decode
_read_attributes = msgspec.json.Decoder(dict[str, Value]).decode


def to_batch(events: Sequence[Stored], facts_reader: FactsReader) -> pa.RecordBatch:
    """The events as one batch of the archive's schema."""
    arrays = {
        "seq": pa.array([each.seq for each in events], pa.int64()),
        "received": pa.array([each.received_ns // NS_PER_US for each in events], MOMENT),
        **_events(events),
        **_messages(events, facts_reader),
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def to_events(batch: pa.RecordBatch | pa.Table) -> list[Stored]:
    """The events of a batch, as they were in the log (`received` to the microsecond)."""
    rows = batch.select(EVENT_COLUMNS)
    received = rows.column("received").cast(pa.int64()).to_pylist()
    others = (rows.column(name).to_pylist() for name in EVENT_COLUMNS[2:])
    return [
        Stored(
            seq,
            received_us * NS_PER_US,
            Event(
                id=id,
                source=source,
                type=type_,
                topic=topic,
                time=time,
                subject=subject,
                datacontenttype=media,
                dataschema=schema,
                extensions=_read_extensions(extensions) if extensions else {},
                attributes=_read_attributes(attributes) if attributes else {},
                data=data,
            ),
        )
        for seq, received_us, (
            id,
            source,
            type_,
            topic,
            time,
            subject,
            media,
            schema,
            extensions,
            attributes,
            data,
        ) in zip(rows.column("seq").to_pylist(), received, zip(*others, strict=True), strict=True)
    ]


def _events(stored: Sequence[Stored]) -> dict[str, pa.Array]:
    events = [each.event for each in stored]
    text = pa.string()
    return {
        "id": pa.array([each.id for each in events], text),
        "source": pa.array([each.source for each in events], text),
        "type": pa.array([each.type for each in events], text),
        "topic": pa.array([each.topic for each in events], text),
        "time": pa.array([each.time for each in events], text),
        "subject": pa.array([each.subject for each in events], text),
        "datacontenttype": pa.array([each.datacontenttype for each in events], text),
        "dataschema": pa.array([each.dataschema for each in events], text),
        "extensions": pa.array([_json(each.extensions) for each in events], text),
        "attributes": pa.array([_json(each.attributes) for each in events], text),
        "data": pa.array([each.data for each in events], pa.binary()),
    }


def _json(members: dict[str, Any]) -> str | None:
    return _encode(members).decode() if members else None


def _messages(events: Sequence[Stored], facts_reader: FactsReader) -> dict[str, pa.Array]:
    count = len(events)
    at_us: list[int] = []
    columns: dict[str, list[Any]] = {}
    plans: list[Any] = [None] * count
    runs: list[str | None] = [None] * count
    activities: list[str | None] = [None] * count
    attempts: list[int | None] = [None] * count
    is_message = [False] * count
    for place, stored in enumerate(events):
        message = _run_message(stored, facts_reader)
        if message is None:
            at_us.append(_happened_us(stored))
            continue
        members, order_us = facts_reader.read(message)
        at_us.append(order_us)
        pairs = message.pairs
        runs[place] = pairs.get("RunId") or None
        activity = pairs.get("ActivityId", "")[:NAME_CHARS_MAX]
        if activity:
            activities[place] = activity
            attempts[place] = attempt_number(pairs.get("Attempt"))
        if message.derived:
            continue  # we said it ourselves: it belongs to the run, and is no news of it
        is_message[place] = True
        for name, value in members.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = [None] * count
            column[place] = value
        if "ActivityPlan" in pairs and runs[place]:
            plans[place] = _plan(pairs["ActivityPlan"])
    return {
        "at": pa.array(at_us, MOMENT),
        "run": pa.array(runs, pa.string()),
        "activity": pa.array(activities, pa.string()),
        "attempt": pa.array(attempts, pa.int32()),
        "facts": _facts(columns, is_message, count),
        "plan": pa.array(plans, PLAN),
    }


def _run_message(stored: Stored, facts_reader: FactsReader) -> RunMessage | None:
    try:
        return run_message(stored, facts_reader.reading.vocabulary)
    except BadRunId:
        return None


def _happened_us(stored: Stored) -> int:
    said_ns = iso8601_ns(stored.event.time)
    happened_ns = (
        stored.received_ns if said_ns is None else believed_ns(said_ns, stored.received_ns)
    )
    return happened_ns // NS_PER_US


def _facts(columns: dict[str, list[Any]], is_message: list[bool], count: int) -> pa.StructArray:
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in FACTS
    ]
    mask = pa.array([not each for each in is_message], pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(FACTS), mask=mask)


def _plan(text: str) -> list[dict[str, Any]]:
    """Its tasks; one without a name stays, as what shows that the plan is not all there."""
    return [
        {"id": None}
        if task is None
        else {
            "id": task.id,
            "type": task.type,
            "external_bytes": task.external_bytes,
            "parents": None if task.parents is None else list(task.parents),
            "open": task.open or None,
        }
        for task in planned_tasks(text)
    ]
