"""The writer and the readers of the log, each in a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
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

SLOW_S = 0.002  # ten times the sync of an idle disk; longer than that the loop must not stand still
SLOW_EVENT_S = 10e-6  # and so much for each event, twice what it takes
QUICK_IN_A_ROW = 64  # commits before the loop dares to make one itself again
INLINE_EVENTS_MAX = 256


class Writer:
    """Commits one batch after another. There is never more than one under way.

    A quick commit is made right on the loop: to hand it to a thread and back costs more than the
    commit itself, and while it lasts the next batch gathers in the sockets. As soon as one is slow,
    commits go to a thread, where they hold nobody up, until they have been quick for a while.
    """

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop, written: Written) -> None:
        self._store = store
        self._loop = loop
        self._written = written
        self._quick_in_a_row = QUICK_IN_A_ROW
        self._batches: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tocsin-writer", daemon=True)
        self._thread.start()

    def write(self, batch: Batch) -> None:
        """Put it on disk, then call `written` on the loop, in a later turn."""
        if self._quick_in_a_row >= QUICK_IN_A_ROW and len(batch.events) <= INLINE_EVENTS_MAX:
            failure = self._commit(batch)
            self._loop.call_soon(self._written, failure)
        else:
            self._batches.put(batch)

    def close(self) -> None:
        self._batches.put(None)
        self._thread.join()

    def _commit(self, batch: Batch) -> DiskFull | DiskFailed | None:
        begun_s = time.perf_counter()
        try:
            self._store.write(batch)
        except (DiskFull, DiskFailed) as error:
            return error
        except Exception as error:  # a bug, and then nothing is known of the disk either
            return DiskFailed(f"the log's writer failed: {error!r}", remedy="Please report this.")
        slow_s = SLOW_S + len(batch.events) * SLOW_EVENT_S
        quick = time.perf_counter() - begun_s < slow_s
        self._quick_in_a_row = self._quick_in_a_row + 1 if quick else 0
        return None

    def _work(self) -> None:
        while (batch := self._batches.get()) is not None:
            failure = self._commit(batch)
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
