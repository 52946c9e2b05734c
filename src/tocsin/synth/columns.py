"""Columns: rows in their order, as the columns of the archive's record."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tocsin.archive.facts import FACTS, MOMENT
from tocsin.archive.record import SCHEMA
from tocsin.monitor.fold import AHEAD_NS_MAX
from tocsin.synth import messages, texts, unrelated
from tocsin.synth.messages import Told, Words
from tocsin.synth.plans import Plans
from tocsin.synth.roster import Roster
from tocsin.synth.rows import IN_CONCEPTS, LEAD, US_PER_MS, At, Kind
from tocsin.synth.texts import Ints, pool
from tocsin.synth.world import World
from tocsin.wire.blackboard.normal import NO_LEAD, TYPE_PREFIX

AHEAD_US_MAX: Final = AHEAD_NS_MAX // 1_000

_TEXTS: Final = (*(each.name for each in fields(unrelated.Columns)), "run", "activity")


@dataclass(slots=True)
class _Pieces:
    """Parts of one column, each with the places where its values stand; the rest is null."""

    places: list[Ints] = field(default_factory=list)
    values: list[pa.Array] = field(default_factory=list)

    def put(self, places: Ints, values: pa.Array) -> None:
        self.places.append(places)
        self.values.append(values)

    def placed(self, count: int, kind: pa.DataType) -> pa.Array:
        if not self.values:
            return pa.nulls(count, kind)
        order = np.zeros(count, np.int64)
        missing = np.ones(count, np.bool_)
        places = np.concatenate(self.places)
        order[places] = np.arange(len(places))
        missing[places] = False
        joined = pa.concat_arrays(self.values)
        return joined.take(pa.array(order, mask=missing)).cast(kind)


@lru_cache(maxsize=1)
def _types() -> pa.StringArray:
    return pool([unrelated.TYPES.get(kind, TYPE_PREFIX + LEAD.get(kind, NO_LEAD)) for kind in Kind])


def batch_of(rows: Ints, seq: Ints, world: World, roster: Roster, salt: int) -> pa.RecordBatch:
    """The rows as they stand, which is by when they were received, and these are their numbers."""
    count = len(rows)
    kind = rows[:, At.KIND]
    is_message = np.isin(kind, IN_CONCEPTS)
    ours = np.flatnonzero(is_message)
    time = texts.times(rows[:, At.TIME_MS])
    words = Words(rows[ours], time.take(pa.array(ours)), world, roster, salt)
    plans = Plans(words)
    pieces = {name: _Pieces() for name in _TEXTS}
    _add_messages(pieces, words, ours, plans)
    _add_others(pieces, rows, time, world)
    received_us, time_us = rows[:, At.RECEIVED_US], rows[:, At.TIME_MS] * US_PER_MS
    ahead_us = time_us - received_us
    is_ahead = ahead_us > AHEAD_US_MAX
    facts = messages.facts_of(words, count, ours)
    facts["ahead_us"] = pa.array(ahead_us, mask=~(is_ahead & is_message))
    has_activity = is_message.copy()
    has_activity[ours[words.is_of_run]] = False
    arrays: dict[str, Any] = {
        "seq": pa.array(seq),
        "received": pa.array(received_us).cast(MOMENT),
        "type": texts.picked(_types(), kind),
        "time": time,
        "at": pa.array(np.where(is_ahead, received_us, time_us)).cast(MOMENT),
        "attempt": pa.array(rows[:, At.ATTEMPT].astype(np.int32), mask=~has_activity),
        "facts": _facts(facts, is_message, count),
        "plan": plans.column(count, ours),
    }
    for name, parts in pieces.items():
        arrays[name] = parts.placed(count, SCHEMA.field(name).type)
    return pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)


def _add_messages(pieces: dict[str, _Pieces], words: Words, ours: Ints, plans: Plans) -> None:
    pieces["id"].put(ours, words.id())
    pieces["source"].put(ours, words.source())
    pieces["topic"].put(ours, words.topic())
    pieces["subject"].put(ours, words.subject())
    pieces["run"].put(ours, words.run)
    pieces["activity"].put(ours, words.activity)
    pieces["datacontenttype"].put(ours, _same("application/json", len(ours)))
    for kind in IN_CONCEPTS:
        which = np.flatnonzero(words.kind == kind)
        if len(which):
            pieces["data"].put(ours[which], messages.data_of(words, kind, which, plans.texts))


def _add_others(pieces: dict[str, _Pieces], rows: Ints, time: pa.StringArray, world: World) -> None:
    for kind in unrelated.TYPES:
        places = np.flatnonzero(rows[:, At.KIND] == kind)
        if not len(places):
            continue
        columns = unrelated.columns_of(kind, rows[places], time.take(pa.array(places)), world)
        for each in fields(unrelated.Columns):
            values = getattr(columns, each.name)
            if isinstance(values, str):
                values = _same(values, len(places))
            if values is not None:
                pieces[each.name].put(places, values)


def _same(text: str, count: int) -> pa.StringArray:
    return pa.repeat(text, count)


def _facts(members: Told, is_message: Any, count: int) -> pa.StructArray:
    # What nobody says is null in all members of one type: they share one array.
    nothing = {each.type: pa.nulls(count, each.type) for each in FACTS}
    arrays = [members.get(each.name, nothing[each.type]) for each in FACTS]
    return pa.StructArray.from_arrays(arrays, fields=list(FACTS), mask=pa.array(~is_message))
