"""Special: the few events that are made one by one, and where they stand among the many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tocsin.archive.facts import FactsReader
from tocsin.archive.record import SCHEMA, to_batch
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_US
from tocsin.event.stored import Stored
from tocsin.synth.columns import batch_of
from tocsin.synth.roster import Roster
from tocsin.synth.texts import Ints
from tocsin.synth.world import World


@dataclass(frozen=True, slots=True)
class Special:
    """An event that stands before the row at `place`.

    `raw` is put in place of the event's data, of which nobody can have heard anything.
    `repeats`: it stands under the number before it.
    """

    place: int
    received_us: int
    event: Event
    raw: bytes | None = None
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Telling:
    """What is needed to put rows in words."""

    world: World
    roster: Roster
    salt: int
    facts_reader: FactsReader


def batches_of(
    rows: Ints, specials: Sequence[Special], first_seq: int, telling: Telling
) -> Iterator[pa.RecordBatch]:
    """Rows and special events in one order, numbered from `first_seq`."""
    ordered = sorted(specials, key=lambda each: each.place)
    places = np.array([each.place for each in ordered], np.int64)
    counted = np.array([not each.repeats for each in ordered], np.int64)
    before = np.concatenate(([0], np.cumsum(counted)))
    own = np.arange(len(rows))
    seq = first_seq + own + before[np.searchsorted(places, own, side="right")]
    batch = batch_of(rows, seq, telling.world, telling.roster, telling.salt)
    done = 0
    for place in np.unique(places):
        if place > done:
            yield batch.slice(done, int(place) - done)
            done = int(place)
        here = np.flatnonzero(places == place)
        seqs = [int(place + before[each] - ordered[each].repeats) for each in here]
        yield _made_singly(
            [ordered[each] for each in here],
            [first_seq + seq for seq in seqs],
            telling.facts_reader,
        )
    if done < len(rows):
        yield batch.slice(done)


def _made_singly(
    specials: Sequence[Special], seqs: Sequence[int], facts_reader: FactsReader
) -> pa.RecordBatch:
    batch = to_batch(
        [
            Stored(seq, each.received_us * NS_PER_US, each.event)
            for seq, each in zip(seqs, specials, strict=True)
        ],
        facts_reader,
    )
    if all(each.raw is None for each in specials):
        return batch
    data = [
        each.event.data if each.raw is None else each.raw  # an empty one is one too
        for each in specials
    ]
    place = SCHEMA.get_field_index("data")
    return batch.set_column(place, SCHEMA.field(place), pa.array(data, pa.binary()))


def numbers_used(rows: int, specials: Sequence[Special]) -> int:
    """How many sequence numbers they take."""
    return rows + sum(not each.repeats for each in specials)
