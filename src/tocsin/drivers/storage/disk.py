"""The writer and the readers of the log, each in a thread of its own."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.effects import Commit
from tocsin.broker.log import EventStore, StoreReader
from tocsin.errors import DiskFailed, DiskFull

T = TypeVar("T")

Written = Callable[[Commit, Applied | DiskFull | DiskFailed], None]

SLOW_S = 0.005  # a checkpoint of the log takes 3 ms, every sixty commits or so; longer is too long
SLOW_EVENT_S = 10e-6  # and so much for each event, twice what it takes
THREADED_FIRST = 16  # commits in the thread after a slow one; doubled each time it happens again
THREADED_MAX = 4096
INLINE_EVENTS_MAX = 512


class Writer:
    """Makes one commit after another. There is never more than one under way.

    A quick commit is made right on the loop: to hand it to a thread and back costs more than the
    commit itself, and while it lasts the next batch gathers in the sockets. After a slow one, those
    that follow go to a thread, where they hold nobody up; now and then one is made on the loop
    again, to see whether the disk is quick by now, ever more rarely as long as it is not.
    """

    def __init__(
        self, store: EventStore, loop: asyncio.AbstractEventLoop, written: Written
    ) -> None:
        self._store = store
        self._loop = loop
        self._written = written
        self._threaded_left = 0  # so many commits go to the thread before the next try
        self._threaded_next = THREADED_FIRST
        self._commits: queue.SimpleQueue[Commit | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tocsin-writer", daemon=True)
        self._thread.start()

    def write(self, commit: Commit) -> None:
        """Put it on disk, then call `written` on the loop, in a later turn."""
        if self._threaded_left or commit.append.count > INLINE_EVENTS_MAX:
            self._threaded_left = max(0, self._threaded_left - 1)
            self._commits.put(commit)
            return
        begun_s = time.perf_counter()
        outcome = self._commit(commit)
        self._judge(time.perf_counter() - begun_s, commit.append.count)
        self._loop.call_soon(self._written, commit, outcome)

    def _judge(self, took_s: float, events: int) -> None:
        """The loop stood still for so long: was that too much?"""
        if took_s < SLOW_S + events * SLOW_EVENT_S:
            self._threaded_next = max(THREADED_FIRST, self._threaded_next // 2)
        else:
            self._threaded_left = self._threaded_next
            self._threaded_next = min(THREADED_MAX, self._threaded_next * 2)

    def close(self) -> None:
        self._commits.put(None)
        self._thread.join()

    def _commit(self, commit: Commit) -> Applied | DiskFull | DiskFailed:
        try:
            return self._store.commit(commit.append, commit.change)
        except (DiskFull, DiskFailed) as error:
            return error
        except Exception as error:  # a bug, and then nothing is known of the disk either
            return DiskFailed(f"the log's writer failed: {error!r}", remedy="Please report this.")

    def _work(self) -> None:
        while (commit := self._commits.get()) is not None:
            outcome = self._commit(commit)
            try:
                self._loop.call_soon_threadsafe(self._written, commit, outcome)
            except RuntimeError:
                return  # the loop is closed: nobody waits for the answer


class Readers:
    """Two threads that read: one catches subscribers up, the other answers people's questions,
    so that a long question does not hold up a delivery."""

    def __init__(self, store: EventStore) -> None:
        self._catchup = store.reader()
        self._questions = store.reader()
        self._catchup_thread = ThreadPoolExecutor(1, thread_name_prefix="tocsin-catchup")
        self._questions_thread = ThreadPoolExecutor(1, thread_name_prefix="tocsin-reader")

    async def catch_up(self, work: Callable[[StoreReader], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._catchup_thread, work, self._catchup)

    async def ask(self, work: Callable[[StoreReader], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._questions_thread, work, self._questions)

    def close(self) -> None:
        for thread, reader in (
            (self._catchup_thread, self._catchup),
            (self._questions_thread, self._questions),
        ):
            thread.shutdown(wait=True, cancel_futures=True)
            reader.close()
