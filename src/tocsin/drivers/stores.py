"""Stores by name: where a broker keeps its log, and how that is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.broker.log import EventStore
from tocsin.config import LogSettings
from tocsin.drivers.plugins import STORES, plugins
from tocsin.store.loss import Loss
from tocsin.store.memory import memory_store
from tocsin.store.store import Store

SQLITE: Final = "sqlite"

Note = Callable[..., None]
"""Writes to the broker's own log: level, message, then fields by name."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a store is opened with. What is registered as `tocsin.stores` takes these, and gives an
    `EventStore`; message boxes are in a second store, whose directory is another."""

    url: str  # the setting `log.store`, whole
    directory: str
    synchronous: str
    note: Note


def store_name(log: LogSettings) -> str:
    """The name of the store in `log.store`, which may be a URL: its scheme."""
    return log.store.partition(":")[0]


def open_store(log: LogSettings, note: Note) -> EventStore:
    """The store that the settings name, to be written; raises BadSetting if there is none."""
    opener = plugins(STORES).load(store_name(log))
    store: EventStore = opener(StoreOptions(log.store, log.directory, log.synchronous, note))
    return store


def open_sqlite(options: StoreOptions) -> Store:
    """The log of a data directory; says what it lost that was to be expected."""
    store = Store.open(options.directory, synchronous=options.synchronous)
    if store.loss is not None:
        note_loss(options.note, options.directory, store.loss)
    return store


def open_memory(options: StoreOptions) -> EventStore:
    """A log that ends with the process."""
    Path(options.directory).mkdir(parents=True, exist_ok=True)  # other files may go there
    return memory_store()


def note_loss(note: Note, directory: str, loss: Loss) -> None:
    note(
        "warning",
        f"the log in {directory}: {loss.words}; the next event gets number {loss.through + 1}",
        after=loss.after,
        through=loss.through,
    )
