"""AuditLog: who did what, when and from where, in files of their own beside the event log.

Records wait in memory for a moment and are written by a thread. A disk that takes none stops
nothing: they wait, the last of them are lost and counted, and the broker says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from tocsin.access.audit.lines import Fault
from tocsin.access.audit.query import AuditQuery
from tocsin.access.audit.records import (
    PERIOD_NS,
    AuditOptions,
    AuditRecord,
    AuditSummary,
    Kind,
    record_of,
)
from tocsin.access.decision import Decision
from tocsin.access.session import Session, internal
from tocsin.drivers.access.audit_files import AuditFiles, FileOptions
from tocsin.drivers.access.audit_reader import AuditPage, read_page, verify_files
from tocsin.drivers.logger import WriteLog

WAITING_MAX: Final = 20_000
SOON: Final = 1_000  # so many are written at once
DIRECTORY: Final = "audit"

T = TypeVar("T")


class AuditLog:
    """Is shown every decision; see the module. Begins with `start`."""

    def __init__(
        self,
        directory: Path,
        note: WriteLog,
        *,
        files: FileOptions | None = None,
        summing: AuditOptions | None = None,
        flush_s: float = 1.0,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.directory = directory / DIRECTORY
        self.report_published: Callable[[], None] = lambda: None  # called before it sums up
        self.written = 0
        self.lost = 0
        self._note = note
        self._now_ns = now_ns
        self._flush_s = flush_s
        self._files = AuditFiles(self.directory, files or FileOptions())
        self._summary = AuditSummary(summing or AuditOptions(), now_ns())
        self._next_sum_ns = now_ns() + PERIOD_NS
        self._waiting: list[AuditRecord] = []
        self._lost_since = 0  # since the disk took the last one
        self._sync = False
        self._problem = ""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self._writing = asyncio.Lock()
        self._soon = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    # What is written

    def decided(self, decision: Decision) -> None:
        self._add(self._summary.decided(decision, self._now_ns()))

    def published(self, session: Session, topic: str, reason: str, count: int) -> None:
        self._summary.published(session, topic, reason, count)

    def sign_in_failed(self, session: Session, what: str, why: str) -> None:
        """Somebody showed a credential that is not good; `what` says which, without its secret."""
        self._add_alike(Kind.SIGN_IN, session, "", what, why)

    def quota_reached(self, session: Session, quota: str, words: str) -> None:
        self._add_alike(Kind.QUOTA, session, "", quota, words)

    def changed(self, session: Session, resource: str, words: str) -> None:
        """A token or a rule was made or taken back. It is on the disk as soon as possible."""
        self._sync = True
        now_ns = self._now_ns()
        record = record_of(
            Kind.CHANGE,
            session,
            now_ns,
            action="manage",
            resource=resource,
            allowed=True,
            reason=words,
        )
        self._add(record)

    def _add_alike(
        self, kind: Kind, session: Session, action: str, resource: str, reason: str
    ) -> None:
        record = record_of(
            kind,
            session,
            self._now_ns(),
            action=action,
            resource=resource,
            allowed=False,
            reason=reason,
        )
        self._add(self._summary.one_by_one(record))

    def _add(self, record: AuditRecord | None) -> None:
        if record is None:
            return
        if len(self._waiting) >= WAITING_MAX:
            self.lost += 1
            self._lost_since += 1
            return
        self._waiting.append(record)
        if len(self._waiting) >= SOON:
            self._soon.set()

    # What became of it

    @property
    def summed(self) -> int:
        return self._summary.summed

    def complaints(self) -> list[str]:
        """What is wrong with the audit log; it keeps nobody from publishing."""
        return [self._problem] if self._problem else []

    async def page(self, query: AuditQuery) -> AuditPage:
        """What was asked for, up to this moment."""
        await self._flush()
        return await self._in_thread(lambda: read_page(self.directory, query))

    async def verify(self) -> tuple[int, list[Fault]]:
        """How many lines there are, and what is wrong with them."""
        await self._flush()
        return await self._in_thread(lambda: verify_files(self.directory))

    # Writing

    def start(self) -> None:
        begun = record_of(Kind.BEGIN, internal("audit"), self._now_ns(), reason="the broker starts")
        self._waiting.append(begun)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Write what there is."""
        self._is_closing = True
        self._soon.set()
        if self._task is not None:
            await self._task
        self._sum()
        await self._flush()
        await self._in_thread(self._files.close)
        self._thread.shutdown()

    async def _run(self) -> None:
        while not self._is_closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), self._flush_s)
            if self._now_ns() >= self._next_sum_ns:
                self._sum()
            full = bool(self._problem)
            await self._flush()
            if full and self._problem and not self._is_closing:  # no room yet: not in a circle
                await asyncio.sleep(self._flush_s)

    def _sum(self) -> None:
        now_ns = self._now_ns()
        self._next_sum_ns = now_ns + PERIOD_NS
        self.report_published()
        for record in self._summary.flush(now_ns):
            self._add(record)

    async def _flush(self) -> None:
        async with self._writing:
            self._soon.clear()
            records, self._waiting = self._waiting, []
            sync, self._sync = self._sync, False
            if not records:
                return
            if self._lost_since:
                reason = "more waited than there was room for"
                lost = AuditRecord(
                    time_ns=self._now_ns(), kind=Kind.LOST, count=self._lost_since, reason=reason
                )
                records.append(lost)
            try:
                await self._in_thread(lambda: self._files.append(records, sync=sync))
            except OSError as error:
                self._not_written(records[:-1] if self._lost_since else records, error)
                self._sync |= sync
            except Exception as error:  # a bug costs these records, and not the audit log
                self.lost += len(records)
                self._lost_since += len(records)
                self._note("error", "records of the audit log are lost", why=repr(error))
            else:
                self._was_written(records)

    def _was_written(self, records: list[AuditRecord]) -> None:
        self.written += len(records)
        self._lost_since = 0
        if self._problem:
            self._problem = ""
            self._note("info", "the audit log is written again")

    def _not_written(self, records: list[AuditRecord], error: OSError) -> None:
        """They wait, as long as there is room for them."""
        waiting = records + self._waiting
        gone = max(0, len(waiting) - WAITING_MAX)
        self._waiting = waiting[:WAITING_MAX]
        self.lost += gone
        self._lost_since += gone
        if not self._problem:
            self._note(
                "error",
                "the audit log cannot be written",
                directory=str(self.directory),
                why=error.strerror or str(error),
            )
        self._problem = (
            f"the audit log cannot be written ({error.strerror or error}): "
            f"{len(self._waiting)} records wait, and {self._lost_since} are lost"
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
