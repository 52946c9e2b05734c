"""Stores by name: where a broker keeps its log, and how that is opened."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.broker.log import EventStore, OpenLogReader
from tocsin.broker.state.state import CLOCK
from tocsin.config import LogSettings
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.plugins import LOG_READERS, STORES, plugins
from tocsin.errors import BadSetting
from tocsin.event.stored import Append, StateChange
from tocsin.store.directory import LOG_NAME
from tocsin.store.loss import Loss
from tocsin.store.mark import MARK_SUFFIX
from tocsin.store.memory import memory_store
from tocsin.store.reader import Reader
from tocsin.store.store import Store

SQLITE: Final = "sqlite"
BOXES_DIRECTORY: Final = "boxes"  # beside the log: the log of the message boxes


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a store is opened with. What is registered as `tocsin.stores` takes these, and gives an
    `EventStore`; message boxes are in a second store, whose directory is another."""

    url: str  # the setting `log.store`, whole
    directory: str
    synchronous: str
    note: WriteLog


def store_name(url: str) -> str:
    """The name of the store in the setting `log.store`, which may be a URL: its scheme."""
    return url.partition(":")[0]


def open_store(log: LogSettings, note: WriteLog) -> EventStore:
    """The store that the settings name, to be written; raises BadSetting if there is none."""
    opener = plugins(STORES).load(store_name(log.store))
    store: EventStore = opener(StoreOptions(log.store, log.directory, log.synchronous, note))
    return store


def has_log_reader(log: LogSettings) -> bool:
    """Whether another process can read the log of this store while the broker writes it."""
    return store_name(log.store) in plugins(LOG_READERS).names


def open_log_reader(url: str, directory: str) -> OpenLogReader:
    """Read the log of a store that another process writes. What is registered as
    `tocsin.log_readers` takes the same: the setting `log.store`, whole, and the data directory."""
    reader: OpenLogReader = plugins(LOG_READERS).load(store_name(url))(url, directory)
    return reader


def open_sqlite(options: StoreOptions) -> Store:
    """The log of a data directory; says what it lost that was to be expected."""
    store = Store.open(options.directory, synchronous=options.synchronous)
    if store.loss is not None:
        note_loss(options.note, options.directory, store.loss)
    return store


def read_sqlite(url: str, directory: str) -> OpenLogReader:
    return Reader.open(directory)


def open_memory(options: StoreOptions) -> EventStore:
    """A log that ends with the process."""
    Path(options.directory).mkdir(parents=True, exist_ok=True)  # other files may go there
    return memory_store()


def note_loss(note: WriteLog, directory: str, loss: Loss) -> None:
    note(
        "warning",
        f"the log in {directory}: {loss.words}; the next event gets number {loss.through + 1}",
        after=loss.after,
        through=loss.through,
    )


def accept_losses(log: LogSettings, note: WriteLog) -> None:
    """Go on without what the logs of this directory lack. Numbers are not given twice."""
    for place in _sqlite_directories(log, "--accept-loss"):
        if any((place / f"{LOG_NAME}{suffix}").exists() for suffix in ("", MARK_SUFFIX)):
            store = Store.open(place, accept_loss=True)
            store.close()
            if store.loss is not None:
                note_loss(note, str(place), store.loss)


def accept_the_clock(log: LogSettings, note: WriteLog) -> None:
    """The machine's clock is right, however far it is from the last time in these logs."""
    for place in _sqlite_directories(log, "--accept-clock"):
        if (place / LOG_NAME).exists():
            store = Store.open(place)
            try:
                store.commit(Append(), StateChange(cursors={CLOCK: time.time_ns()}))
            finally:
                store.close()
            note("warning", f"the clock is accepted for the log in {place}")


def _sqlite_directories(log: LogSettings, flag: str) -> tuple[Path, Path]:
    """Of the broker's log, and of the message boxes'."""
    if store_name(log.store) != SQLITE:
        raise BadSetting(
            f"{flag} is for the store {SQLITE!r}, and log.store is {log.store!r}",
            remedy=f"Start without {flag}; what this store does about losses is in its own manual.",
        )
    return Path(log.directory), Path(log.directory) / BOXES_DIRECTORY
