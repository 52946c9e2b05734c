"""TopicCatalog: the catalog as the event loop sees it. Writes share commits, and searches run in
threads, those that evaluate XPath and XQuery in threads of their own, so that they are in nobody's
way."""

from __future__ import annotations

import asyncio
import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, Self

from tocsin.drivers.topics.evaluators import AT_ONCE_MAX, Evaluators
from tocsin.drivers.topics.frames import Language
from tocsin.errors import (
    AdvertisementEnded,
    BadAdvertisement,
    Busy,
    TocsinError,
    TopicCatalogFull,
)
from tocsin.store.topics.catalog import Catalog, CatalogLimits
from tocsin.store.topics.query_connection import connect_for_queries
from tocsin.store.topics.rows import Rows, rows_of
from tocsin.store.topics.search import Searcher
from tocsin.topics.queries.cursor import KEY_BYTES
from tocsin.topics.queries.indexed import IndexedAdvertisement, IndexedWithdrawal, Outcome
from tocsin.topics.queries.plan import Plan, plan
from tocsin.topics.queries.query import Page, Query

Given = IndexedAdvertisement | IndexedWithdrawal

WRITES_WAITING_MAX: Final = 1_000  # some 100 MB at worst; a disk that hangs must not take more
WRITES_AT_ONCE: Final = 128  # of one commit: some 50 ms
SEARCHES_WAITING_MAX: Final = 64  # of each of the two kinds; each takes a second at worst
PLAIN_AT_ONCE: Final = 2


class _Lane:
    """Threads that search, each with a connection of its own, and how many queries wait."""

    def __init__(self, name: str, searchers: Sequence[Searcher]) -> None:
        self._searchers: queue.SimpleQueue[Searcher] = queue.SimpleQueue()
        for searcher in searchers:
            self._searchers.put(searcher)
        self._all = searchers
        self._threads = ThreadPoolExecutor(len(searchers), thread_name_prefix=name)
        self._asked = 0
        self.refused = 0

    async def search(
        self, query: Query, planned: Plan, labels: frozenset[str], now_ns: int
    ) -> Page:
        if self._asked >= SEARCHES_WAITING_MAX + len(self._all):
            self.refused += 1
            raise Busy(
                f"{SEARCHES_WAITING_MAX} queries for topics wait already",
                remedy="Try again in a few seconds.",
            )
        self._asked += 1
        run = partial(self._search, query, planned, labels, now_ns)
        done = asyncio.get_running_loop().run_in_executor(self._threads, run)
        # Not when whoever asked goes away: the thread is at work until it has finished.
        done.add_done_callback(self._answered)
        return await done

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        for searcher in self._all:
            searcher.close()

    @property
    def damaged(self) -> int:
        return sum(searcher.damaged for searcher in self._all)

    def _search(self, query: Query, planned: Plan, labels: frozenset[str], now_ns: int) -> Page:
        searcher = self._searchers.get()
        try:
            return searcher.search(query, planned, labels, now_ns)
        finally:
            self._searchers.put(searcher)

    def _answered(self, _done: asyncio.Future[Page]) -> None:
        self._asked -= 1


class TopicCatalog:
    """Advertisements of topics on disk: kept, taken back, and searched. For one event loop."""

    def __init__(
        self,
        catalog: Catalog,
        now_ns: Callable[[], int],
        on_stopped: Callable[[Language, str], None],
    ) -> None:
        self._catalog = catalog
        self._now_ns = now_ns
        self.evaluators = Evaluators(on_stopped=on_stopped)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="topics-writer")
        self._waiting: deque[tuple[Given, asyncio.Future[Outcome]]] = deque()
        self._writing: asyncio.Task[None] | None = None
        cursor_key = secrets.token_bytes(KEY_BYTES)
        self._plain = _Lane("topics", self._searchers(PLAIN_AT_ONCE, cursor_key))
        self._xml = _Lane("topics-xml", self._searchers(AT_ONCE_MAX, cursor_key))

    @classmethod
    def open(
        cls,
        directory: Path | str,
        limits: CatalogLimits | None = None,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        on_stopped: Callable[[Language, str], None] = lambda language, why: None,
    ) -> Self:
        """Made new if there is none. `on_stopped` hears of each evaluation that was stopped."""
        return cls(Catalog.open(directory, limits), now_ns, on_stopped)

    async def put(self, given: Given) -> bool:
        """Keep an advertisement or a withdrawal; it is on disk when this returns. False if it was
        there before.

        Raises AdvertisementEnded if it has expired or something newer is known, BadAdvertisement if
        it cannot be kept or the topic is another creator's, TopicCatalogFull, Busy, and what the
        disk may raise: nothing of it is kept then.
        """
        if len(self._waiting) >= WRITES_WAITING_MAX:
            raise Busy(
                f"{WRITES_WAITING_MAX} advertisements wait for the disk already",
                remedy="Advertise again in a few seconds.",
            )
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((given, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        outcome = await done
        _raise_for(outcome, given)
        return outcome is Outcome.STORED

    async def search(self, query: Query, labels: frozenset[str]) -> Page:
        """What is valid now, has one of the labels, and is asked for. Nothing else is looked at.

        Raises BadTopicQuery, TopicQueryTooCostly, XQueryMissing and Busy.
        """
        planned = plan(query)
        lane = self._plain if planned.xml is None else self._xml
        return await lane.search(query, planned, labels, self._now_ns())

    async def expire(self) -> int:
        """Remove what has expired; how much that was."""
        loop = asyncio.get_running_loop()
        removed = 0
        while some := await loop.run_in_executor(
            self._writer, self._catalog.expire, self._now_ns()
        ):
            removed += some
        return removed

    async def usage(self, creator: str = "") -> tuple[int, int]:
        """Topics and bytes that are kept, of a creator or of all."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, self._catalog.usage, creator)

    async def documents(self, after: int = 0, limit: int = 100) -> list[tuple[int, bytes]]:
        """Everything, page by page, for the policy to label it anew."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, self._catalog.documents, after, limit)

    @property
    def damaged(self) -> int:
        """Advertisements that were met and were not as they were written."""
        return self._plain.damaged + self._xml.damaged

    @property
    def refused(self) -> int:
        """Queries that found too many others waiting."""
        return self._plain.refused + self._xml.refused

    async def close(self) -> None:
        """What was given is on disk; searches at work are stopped, or finish within a second."""
        if self._writing is not None:
            await asyncio.wait({self._writing})
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.evaluators.close()
        self._plain.close()
        self._xml.close()
        self._writer.shutdown()
        self._catalog.close()

    def _searchers(self, count: int, cursor_key: bytes) -> list[Searcher]:
        return [
            Searcher(
                connect_for_queries(self._catalog.path, time.monotonic_ns),
                self._catalog.path,
                cursor_key=cursor_key,
                stopwatch_ns=time.monotonic_ns,
                evaluate=self.evaluators,
            )
            for _ in range(count)
        ]

    async def _write(self) -> None:
        """Commit what waits, again and again until nothing does. Who comes meanwhile waits for the
        next commit, and shares it with all who come until then."""
        try:
            while self._waiting:
                count = min(len(self._waiting), WRITES_AT_ONCE)
                await self._write_some([self._waiting.popleft() for _ in range(count)])
        finally:
            self._writing = None

    async def _write_some(self, batch: list[tuple[Given, asyncio.Future[Outcome]]]) -> None:
        given = [each for each, _ in batch]
        run = partial(self._commit, given, self._now_ns())
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await asyncio.get_running_loop().run_in_executor(self._writer, run)
        except Exception as error:  # a mistake of ours; nobody must wait for ever
            outcomes = [error] * len(batch)
        for (_, done), outcome in zip(batch, outcomes, strict=True):
            if done.done():  # whoever asked has gone
                continue
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

    def _commit(self, given: list[Given], now_ns: int) -> list[Outcome | TocsinError]:
        """In the writer's thread. What cannot be kept is no harm to the rest."""
        found: list[Outcome | TocsinError | None] = []
        rows: list[Rows | IndexedWithdrawal] = []
        for each in given:
            try:
                rows.append(each if isinstance(each, IndexedWithdrawal) else rows_of(each))
                found.append(None)
            except TocsinError as error:
                found.append(error)
        try:
            outcomes = iter(self._catalog.put(rows, now_ns)) if rows else iter(())
        except TocsinError as error:  # of the disk
            return [each or error for each in found]
        return [each or next(outcomes) for each in found]


def _raise_for(outcome: Outcome, given: Given) -> None:
    match outcome:
        case Outcome.STORED | Outcome.REPEATED:
            return
        case Outcome.EXPIRED | Outcome.OLDER | Outcome.WITHDRAWN:
            why = {
                Outcome.EXPIRED: "has expired",
                Outcome.OLDER: "is older than one that is known",
                Outcome.WITHDRAWN: "was withdrawn",
            }[outcome]
            raise AdvertisementEnded(
                f"version {given.version} of the topic {given.uuid} {why}",
                remedy="Advertise a newer version.",
            )
        case Outcome.FOREIGN:
            raise BadAdvertisement(
                f"the topic {given.uuid} is another creator's",
                remedy="Create a topic of your own.",
            )
    whose = "of this creator" if outcome is Outcome.CREATOR_FULL else "in all"
    raise TopicCatalogFull(
        f"the catalog keeps as many topics, or bytes of them, as it may {whose}",
        remedy="Withdraw some, wait until some expire, or have the limit raised.",
    )
