"""The writer and the readers of the log, each in a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tocsin.broker.snapshot import Snapshot, take_snapshot
from tocsin.errors import DiskFailed, DiskFull
from tocsin.event.stored import Batch
from tocsin.store.reach import retention_reach as retention_reach
from tocsin.store.reader import Reader
from tocsin.store.store import Store

T = TypeVar("T")

Written = Callable[[DiskFull | DiskFailed | None], None]


class Writer:
    """Commits one batch after another. There is never more than one under way."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop, written: Written) -> None:
        self._store = store
        self._loop = loop
        self._written = written
        self._batches: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tocsin-writer", daemon=True)
        self._thread.start()

    def write(self, batch: Batch) -> None:
        """Put it on disk, then call `written` on the loop."""
        self._batches.put(batch)

    def close(self) -> None:
        self._batches.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            failure: DiskFull | DiskFailed | None = None
            try:
                self._store.write(batch)
            except (DiskFull, DiskFailed) as error:
                failure = error
            except Exception as error:  # a bug, and then nothing is known of the disk either
                failure = DiskFailed(
                    f"the log's writer failed: {error!r}", remedy="Please report this."
                )
            try:
                self._loop.call_soon_threadsafe(self._written, failure)
            except RuntimeError:
                return  # the loop is closed: nobody waits for the answer


class Readers:
    """Two threads that read: one catches subscribers up, the other answers people's questions,
    so that a long question does not hold up a delivery."""

    def __init__(self, store: Store) -> None:
        self._catchup = store.reader()
        self._questions = store.reader()
        self._catchup_thread = ThreadPoolExecutor(1, thread_name_prefix="tocsin-catchup")
        self._questions_thread = ThreadPoolExecutor(1, thread_name_prefix="tocsin-reader")

    async def catch_up(self, work: Callable[[Reader], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._catchup_thread, work, self._catchup)

    async def ask(self, work: Callable[[Reader], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._questions_thread, work, self._questions)

    def close(self) -> None:
        for thread, reader in (
            (self._catchup_thread, self._catchup),
            (self._questions_thread, self._questions),
        ):
            thread.shutdown(wait=True, cancel_futures=True)
            reader.close()


def snapshot(store: Store, duplicates_window: int) -> Snapshot:
    """What a broker needs to go on where the last one stopped."""
    reader = store.reader()
    try:
        return take_snapshot(reader, store.first_seq, store.last_seq, duplicates_window)
    finally:
        reader.close()
