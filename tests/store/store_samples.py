"""Events and batches for the tests of the store."""

from __future__ import annotations

import os
from pathlib import Path

import tocsin
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.event.value import Quantity
from tocsin.store.reader import Reader
from tocsin.store.store import Store

SECOND_NS = 1_000_000_000

# For a program in another process: it finds the package and this module.
IMPORTED_FROM = (Path(__file__).parent, Path(tocsin.__file__).parents[1])
CHILD_ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, IMPORTED_FROM))}


def make_event(seq: int, data_bytes: int = 40) -> Stored:
    event = Event(
        f"id-{seq}",
        f"urn:source:{seq % 3}",
        "com.example.sample",
        topic="weather/ohio/radar",
        extensions={"run": seq, "ratio": seq / 7},
        attributes={"load": Quantity(1.5, "min", "+/-0.1")},
        data=bytes((seq + i) % 256 for i in range(data_bytes)),
    )
    return Stored(seq, seq * SECOND_NS, event)


def make_events(first: int, count: int, data_bytes: int = 40) -> list[Stored]:
    return [make_event(seq, data_bytes) for seq in range(first, first + count)]


def append(store: Store, count: int, data_bytes: int = 40) -> list[Stored]:
    events = make_events(store.last_seq + 1, count, data_bytes)
    store.write(Batch(events=events))
    return events


def read_all(reader: Reader, limit: int = 100) -> list[Stored]:
    events: list[Stored] = []
    after = 0
    while True:
        page = reader.read(after, limit)
        assert page.corrupt == []
        if page.next == after or (not page.events):
            return events
        events += page.events
        after = page.next


def log_of(directory: Path) -> Path:
    return directory / "log.sqlite"
