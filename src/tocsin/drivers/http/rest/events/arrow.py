"""`GET /events` as Arrow: what the archive has, as it has it, and the rest from the log.

An answer is made batch by batch at the client's pace, in threads for that. It goes through the
event that `tocsin-next` names and ends before the next hole; `tocsin-first` then gives its end.

A damaged file, where the log cannot stand in for it, is a problem; its `tocsin-next` says where to
go on without it. If it is found when the answer has begun, that is broken off; a request that has
files checked then reports it.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tocsin.access.decision import Action, Readable
from tocsin.access.session import Session
from tocsin.archive.catalog import Catalog, Piece, overlapping
from tocsin.archive.facts import FactsReader
from tocsin.archive.parquet_reader import read_selected
from tocsin.archive.record import SCHEMA, to_batch, to_events
from tocsin.archive.selection import NoSuchColumn, cut_to, select
from tocsin.broker.log import Page, StoreReader
from tocsin.drivers.http.rest.endpoint import session_in
from tocsin.drivers.http.rest.responses import refusal
from tocsin.errors import BadRequest, Busy, ShuttingDown
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile
from tocsin.event.stored import Stored
from tocsin.ontology import in_use
from tocsin.wire.api.arrow import CHECKED, FIRST, HEAD, MEDIA_TYPE, NEXT, YES_OR_NO
from tocsin.wire.api.query import Query

if TYPE_CHECKING:
    from tocsin.broker.port import BrokerPort
    from tocsin.drivers.archive.archiver import Archiver

LIMIT_MAX: Final = 100_000  # what a reader has to ask for again when a connection is lost
LIMIT_DEFAULT: Final = 10_000
ANSWERS_MAX: Final = 8  # at once; each holds two batches in memory
THREADS: Final = 2  # Arrow reads and packs in these; a third would wait for a processor
ROWS_PER_BATCH: Final = 8_192
LOG_EVENTS: Final = 500  # converted at a time, so that nobody waits long for the interpreter
LOG_BYTES: Final = 4 << 20

EVENTS: Final = "events"  # the resource that is read

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What there is after an event: from `first` on without a hole through `through`."""

    first: int
    through: int
    head: int
    trimmed_to: int
    pieces: tuple[Piece, ...]


class _Damaged(Exception):
    """A file is bad, and the log no longer holds its events through this one."""

    def __init__(self, error: BadArchiveFile, through: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.through = through


class ArrowReader:
    """Answers who reads the log as Arrow."""

    def __init__(self, port: BrokerPort, archiver: Archiver | None) -> None:
        self._port = port
        self._archiver = archiver
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tocsin-arrow")
        self._lock = threading.Lock()  # for the catalog
        self._catalog: Catalog | None = None
        self._facts_reader: FactsReader | None = None
        self._answers = 0

    async def answer(self, request: Request) -> Response:
        session = session_in(request)
        self._port.check(session, Action.READ, EVENTS)  # of the archive's files too
        query = Query.parse(request.scope["query_string"], ("after", "limit", "columns", CHECKED))
        after = query.number("after", 0)
        limit = query.number("limit", LIMIT_DEFAULT, most=LIMIT_MAX)
        wanted = _wanted(query.text("columns"))
        is_checked = query.choice(CHECKED, "no", YES_OR_NO) == "yes"
        if self._answers >= ANSWERS_MAX:
            raise Busy(
                f"{ANSWERS_MAX} Arrow answers are being sent, which is the limit",
                remedy="Ask again in a second, or read with fewer tasks at a time.",
            )
        self._answers += 1
        try:
            plan = await self._plan(session, after, limit)
            if is_checked:
                plan = within_one_file(plan)
            batches = self._batches(session, plan, wanted, is_checked=is_checked)
            body = self._body(request, batches, wanted)
            # What is wrong with the first file is then still a problem.
            opening = await anext(body)
        except _Damaged as damaged:
            self._answers -= 1
            self._port.runtime.note(
                "error", "a file of the archive is damaged", why=str(damaged.error)
            )
            return refusal(damaged.error, headers={NEXT: str(damaged.through)})
        except BaseException:
            self._answers -= 1
            raise
        headers = {
            FIRST: str(plan.first),
            NEXT: str(max(after, plan.through)),
            HEAD: str(plan.head),
            "cache-control": "no-store",
        }
        whole = self._counted(opening, body)
        return StreamingResponse(whole, headers=headers, media_type=MEDIA_TYPE)

    async def _plan(self, session: Session, after: int, limit: int) -> ReadPlan:
        pieces = await self._in_thread(self._pieces)
        first, last = await self._port.read(session, EVENTS, lambda log: log.bounds())
        if pieces and pieces[-1].last > last:
            pieces = []  # the archive was filled from another log, and is none of ours
        return plan_read(pieces, first - 1, last, after=after, limit=limit)

    def _pieces(self) -> list[Piece]:
        archiver = self._archiver
        if archiver is None or archiver.off is not None:
            return []
        with self._lock:
            if self._catalog is None:
                self._catalog = Catalog(archiver.directory)
            return self._catalog.pieces()

    async def _counted(self, opening: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            yield opening
            async for chunk in body:
                yield chunk
        finally:
            self._answers -= 1

    async def _body(
        self, request: Request, batches: AsyncIterator[pa.RecordBatch], wanted: pa.Schema
    ) -> AsyncIterator[bytes]:
        """The stream, in chunks of a batch each."""
        packer = _Packer(wanted)
        await request.body()  # so that what is received next is that the client has left
        async for batch in batches:
            yield await self._in_thread(partial(packer.pack, batch))
            if await request.is_disconnected():
                return
            if self._port.runtime.is_stopping:
                raise ShuttingDown("the answer was broken off", remedy="Ask for the rest again.")
        yield packer.end()

    async def _batches(
        self, session: Session, plan: ReadPlan, wanted: pa.Schema, *, is_checked: bool
    ) -> AsyncIterator[pa.RecordBatch]:
        reached, pieces = plan.first - 1, plan.pieces
        while reached < plan.through:
            place = bisect_right(pieces, reached, key=lambda piece: piece.last)
            piece = pieces[place] if place < len(pieces) else None
            if piece is None or piece.first > reached + 1:
                through = plan.through if piece is None else min(plan.through, piece.first - 1)
                async for batch in self._from_log(session, reached, through):
                    yield cut_to(batch, wanted)
                reached = through
                continue
            given = 0
            try:
                if is_checked:
                    async for _ in self._from_file(piece, wanted, reached, plan.through):
                        pass
                async for batch in self._readable(session, piece, wanted, reached, plan.through):
                    given += 1
                    yield batch
                reached = piece.last
            except ArchiveFileGone:
                # It was merged. Nothing of it was given: an open file stays when it is removed.
                pieces = tuple(await self._in_thread(self._pieces))
                if piece in pieces:
                    raise
            except BadArchiveFile as error:
                if given:
                    raise
                if reached < plan.trimmed_to:
                    raise _Damaged(error, min(piece.last, plan.trimmed_to)) from error
                pieces = tuple(each for each in pieces if each != piece)
                self._port.runtime.note(
                    "error", "a damaged archive file is read from the log instead", why=str(error)
                )

    async def _readable(
        self, session: Session, piece: Piece, wanted: pa.Schema, after: int, through: int
    ) -> AsyncIterator[pa.RecordBatch]:
        """What the session may read of a file. Its rights are looked at with each batch."""
        if self._port.readable(session) is None:
            async for batch in self._from_file(piece, wanted, after, through):
                if self._port.readable(session) is not None:
                    raise ShuttingDown("the rights have changed", remedy="Ask for the rest again.")
                yield batch
            return
        # Whether an event may be read depends on all of it, whatever columns are wanted.
        async for batch in self._from_file(piece, SCHEMA, after, through):
            self._port.check(session, Action.READ, EVENTS)
            readable = self._port.readable(session)
            if readable is not None:
                batch = await self._in_thread(partial(_part_of, batch, readable))
            yield cut_to(batch, wanted)

    async def _from_file(
        self, piece: Piece, wanted: pa.Schema, after: int, through: int
    ) -> AsyncIterator[pa.RecordBatch]:
        batches = read_selected(piece, wanted, after=after, through=through, rows=ROWS_PER_BATCH)
        while (batch := await self._in_thread(partial(next, batches, None))) is not None:
            yield batch

    async def _from_log(
        self, session: Session, after: int, through: int
    ) -> AsyncIterator[pa.RecordBatch]:
        while after < through:
            limit = min(LOG_EVENTS, through - after)
            read = partial(_page, after=after, limit=limit)
            page = await self._port.read(session, EVENTS, read)
            self._port.report_corrupt(page.corrupt)
            if len(page.events) + len(page.corrupt) < max(1, page.next - after):
                # Trimmed meanwhile. The archive has it by now, and gives it to who asks again.
                raise ShuttingDown("the answer was broken off", remedy="Ask for the rest again.")
            after = page.next
            events, readable = page.events, self._port.readable(session)
            if readable is not None:
                events = [each for each in events if readable.has_event(each.event)]
            if events:
                yield await self._in_thread(partial(self._converted, events))

    def _converted(self, events: list[Stored]) -> pa.RecordBatch:
        if self._facts_reader is None:
            self._facts_reader = FactsReader(in_use())
        return to_batch(events, self._facts_reader)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _Packer:
    """Batches to the bytes of one Arrow stream, compressed."""

    def __init__(self, schema: pa.Schema) -> None:
        self._bytes = BytesIO()
        # LZ4 costs little at either end, and events compress to a fourth.
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pa.ipc.new_stream(self._bytes, schema, options=options)

    def pack(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._taken()

    def _taken(self) -> bytes:
        chunk = self._bytes.getvalue()
        self._bytes.seek(0)
        self._bytes.truncate()
        return chunk


def plan_read(
    pieces: Sequence[Piece], trimmed_to: int, head: int, *, after: int, limit: int
) -> ReadPlan:
    """What an answer after this event consists of; the log holds (trimmed_to, head]."""
    archived = pieces[bisect_right(pieces, after, key=lambda piece: piece.last) :]
    begins = [max(piece.first, after + 1) for piece in archived[:1]]
    if head > max(after, trimmed_to):
        begins.append(max(after, trimmed_to) + 1)
    first = min(begins, default=max(head, after) + 1)
    reached = first - 1
    for piece in archived:
        if piece.first > reached + 1:
            break
        reached = piece.last
    if reached >= trimmed_to:
        reached = max(reached, head)
    through = min(reached, first - 1 + limit)
    return ReadPlan(
        first=first,
        through=through,
        head=max(head, pieces[-1].last if pieces else 0),
        trimmed_to=trimmed_to,
        pieces=tuple(overlapping(list(archived), first - 1, through)),
    )


def within_one_file(found: ReadPlan) -> ReadPlan:
    """As much of it as comes from one file, or from the log before the next file."""
    if not found.pieces:
        return found
    piece = found.pieces[0]
    end = piece.last if piece.first <= found.first else piece.first - 1
    return replace(found, through=min(found.through, end))


def _part_of(batch: pa.RecordBatch, readable: Readable) -> pa.RecordBatch:
    """Of these events those that may be read."""
    return batch.filter(pa.array([readable.has_event(each.event) for each in to_events(batch)]))


def _page(log: StoreReader, *, after: int, limit: int) -> Page:
    return log.read(after, limit, LOG_BYTES)


def _wanted(columns: str | None) -> pa.Schema:
    if columns is None:
        return SCHEMA
    try:
        return select(columns.split(","))
    except NoSuchColumn as error:
        raise BadRequest(
            f"the query has an unknown column: {error}",
            remedy="Separate them by commas, and name members of facts as facts.ExitCode.",
        ) from None
