"""Columns: rows as record batches of the archive, with events made one by one among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tocsin.archive.facts import FACTS, FactsReader
from tocsin.archive.record import SCHEMA, to_batch
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_US
from tocsin.event.stored import Stored
from tocsin.monitor.fold import AHEAD_NS_MAX
from tocsin.synth import background, messages
from tocsin.synth.messages import Context
from tocsin.synth.rows import CONCEPTS, US_PER_MS, Col, Kind
from tocsin.synth.texts import Ints, pick, times
from tocsin.wire.blackboard.normal import NO_LEAD, TYPE_PREFIX

AHEAD_US_MAX: Final = AHEAD_NS_MAX // NS_PER_US
_TYPES: Final = [
    background.TYPES.get(kind, TYPE_PREFIX + CONCEPTS.get(kind, NO_LEAD)) for kind in Kind
]


class _Columns:
    """Columns that are filled kind by kind; rows for which nothing was put are null."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._parts: dict[str, list[tuple[Ints, pa.Array]]] = defaultdict(list)
        self._nulls: dict[pa.DataType, pa.Array] = {}
        self._orders: dict[tuple[int, ...], pa.Array] = {}

    def put(self, places: Ints, columns: Mapping[str, Any]) -> None:
        """Values for the rows at these places. A text alone is the value of all of them."""
        for name, values in columns.items():
            array = pa.repeat(values, len(places)) if isinstance(values, str) else _array(values)
            self._parts[name].append((places, array))

    def array(self, field: pa.Field) -> pa.Array:
        parts = self._parts.get(field.name)
        if not parts:
            # Columns of one type without any value share one array.
            return self._nulls.setdefault(field.type, pa.nulls(self._count, field.type))
        values = pa.concat_arrays([each for _, each in parts])
        return values.take(self._order([places for places, _ in parts])).cast(field.type)

    def _order(self, places: list[Ints]) -> pa.Array:
        """For each row, which of the values put at these places it gets."""
        key = tuple(map(id, places))  # columns put together share their places
        if key not in self._orders:
            joined = np.concatenate(places)
            order = np.zeros(self._count, np.int64)
            is_missing = np.ones(self._count, np.bool_)
            order[joined] = np.arange(len(joined))
            is_missing[joined] = False
            self._orders[key] = pa.array(order, mask=is_missing)
        return self._orders[key]


def _array(values: Any) -> pa.Array:
    return pa.array(values) if isinstance(values, np.ndarray) else values


def batch_of(rows: Ints, seq: Ints, context: Context) -> pa.RecordBatch:
    """The rows in their order, which is that of their arrival, with these sequence numbers."""
    kinds, received_us = rows[:, Col.KIND], rows[:, Col.RECEIVED_US]
    time, time_us = times(rows[:, Col.TIME_MS]), rows[:, Col.TIME_MS] * US_PER_MS
    is_ahead = time_us - received_us > AHEAD_US_MAX
    columns, facts = _Columns(len(rows)), _Columns(len(rows))
    for kind in Kind:
        places = np.flatnonzero(kinds == kind)
        if not len(places):
            continue
        args = kind, rows[places], time.take(pa.array(places))
        if kind in background.TYPES:
            columns.put(places, background.columns_of(*args, context.world))
            continue
        columns_of_kind, facts_of_kind = messages.columns_of(*args, context)
        columns.put(places, columns_of_kind)
        facts.put(places, facts_of_kind)
        ahead = places[is_ahead[places]]
        facts.put(ahead, {"ahead_us": time_us[ahead] - received_us[ahead]})
    complete = {
        "seq": seq,
        "received": received_us,
        "type": pick(_TYPES, kinds),
        "time": time,
        "at": np.where(is_ahead, received_us, time_us),
        "facts": pa.StructArray.from_arrays(
            [facts.array(each) for each in FACTS],
            fields=list(FACTS),
            mask=pa.array(np.isin(kinds, list(background.TYPES))),
        ),
    }
    return pa.RecordBatch.from_arrays(
        [
            _array(complete[each.name]).cast(each.type)
            if each.name in complete
            else columns.array(each)
            for each in SCHEMA
        ],
        schema=SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class SingleEvent:
    """An event made by hand, to be inserted before the row at `place`.

    `raw` replaces the event's data after its facts were read: none could be read from it.
    `repeats_seq`: it gets the sequence number of the event before it.
    """

    place: int
    received_us: int
    event: Event
    raw: bytes | None = None
    repeats_seq: bool = False


def batches_of(
    rows: Ints,
    singles: Sequence[SingleEvent],
    first_seq: int,
    context: Context,
    facts_reader: FactsReader,
) -> Iterator[pa.RecordBatch]:
    """Rows and single events in one order, numbered from `first_seq`."""
    ordered = sorted(singles, key=lambda each: each.place)
    places = np.array([each.place for each in ordered], np.int64)
    before = np.cumsum([0, *(not each.repeats_seq for each in ordered)])
    own = np.arange(len(rows))
    seq = first_seq + own + before[np.searchsorted(places, own, side="right")]
    batch = batch_of(rows, seq, context)
    done = 0
    for place in np.unique(places).tolist():
        if place > done:
            yield batch.slice(done, place - done)
            done = place
        here = np.flatnonzero(places == place).tolist()
        seqs = [first_seq + place + int(before[n]) - ordered[n].repeats_seq for n in here]
        yield _batch_of_singles([ordered[n] for n in here], seqs, facts_reader)
    if done < len(rows):
        yield batch.slice(done)


def _batch_of_singles(
    singles: Sequence[SingleEvent], seqs: Sequence[int], facts_reader: FactsReader
) -> pa.RecordBatch:
    stored = [
        Stored(seq, each.received_us * NS_PER_US, each.event)
        for seq, each in zip(seqs, singles, strict=True)
    ]
    batch = to_batch(stored, facts_reader)
    data = [each.event.data if each.raw is None else each.raw for each in singles]
    place = SCHEMA.get_field_index("data")
    return batch.set_column(place, SCHEMA.field(place), pa.array(data, pa.binary()))
