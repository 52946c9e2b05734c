"""Archiver: the archive as the rest of the broker sees it.

The broker serves without one. The filling process is started when there is something to roll and
the time has come, and ended when there was nothing for a while. The log keeps what the archive has
not taken yet, until it is twice as large as it may be: then it removes events, and that is logged.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from tocsin.access.session import internal
from tocsin.archive.catalog import GRACE_S, Catalog
from tocsin.broker.log import StoreReader
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Timer
from tocsin.config import Settings
from tocsin.drivers.archive.messages import Failed, Roll, Rolled, WriterOptions
from tocsin.drivers.archive.sampler import DeliverySampler, OnDead
from tocsin.drivers.archive.writer_process import WriterProcess
from tocsin.errors.archive import other_log
from tocsin.services.directory.directory import Directory

TICK_S: Final = 1.0
IDLE_S: Final = 120.0  # then the filling process and its two hundred megabytes are let go
RETRY_S: Final = 10.0  # after a failure; doubled each time it happens again
RETRY_S_MAX: Final = 300.0
LET_GO_S: Final = 3_600.0  # between two looks at what is too old; see archive.retention
HELD_FACTOR: Final = 2  # the log grows to so many times retain_bytes for the archive's sake
RELIEF_S: Final = 10.0  # between two looks at whether it has
CLOSING_S: Final = 5.0  # for what is under way when we stop; a disk that hangs is not waited for
STARTING_S: Final = 0.05  # between two looks, when we stop, at whether a process was started
DIRECTORY: Final = "archive"  # in the data directory, unless the settings say otherwise
SESSION: Final = internal("archive")


class Archiver:
    """Fills the archive of one broker."""

    def __init__(
        self, port: BrokerPort, settings: Settings, directory: Directory, on_dead: OnDead
    ) -> None:
        self._port = port
        self._runtime = port.runtime
        self._settings = settings
        self._wanted = settings.archive
        self.directory = archive_directory(settings.log.directory, self._wanted.directory)
        self._sampler = DeliverySampler(port, SESSION, directory, on_dead)
        self._process: WriterProcess | None = None
        self._working: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._is_closing = False
        self._is_known = False  # whether `through` is what the directory says
        self.through = 0
        self.files = 0
        self.size_bytes = 0
        self.failures = 0
        self.left_out = 0
        self._unread: tuple[str, ...] = ()
        self.lost = 0
        """Events that the log had to let go before the archive had them."""
        self._let_go_to = 0
        self.off: Failed | None = None
        """Why nothing is archived, if nothing is."""
        self._failure: Failed | None = None
        self._failed_in_a_row = 0
        now_s = self._runtime.elapsed_s()
        self._waiting_since_s: float | None = None
        self._retry_at_s = self._tend_at_s = self._relieved_s = self._busy_s = now_s
        self._has_to_tend = self._has_samples = False
        self._let_go_s = now_s - LET_GO_S
        self._sample_at_s = now_s + self._wanted.sample_s
        port.hold_for_archive(SESSION, 0)

    def start(self) -> None:
        self._timer = self._runtime.call_later(TICK_S, self._tick)

    async def close(self) -> None:
        """Stop. What is not in the archive yet is in the log, and taken after the next start."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        give_up_s = self._runtime.elapsed_s() + CLOSING_S
        while self._process is not None or self._working is not None:
            if self._process is not None:  # then whoever waits for its answer goes on as well
                self._hand_over(self._process)
                await self._end_process()
            if self._working is not None:
                await asyncio.wait({self._working}, timeout=STARTING_S)
            if self._working is not None and self._runtime.elapsed_s() >= give_up_s:
                self._working.cancel()
                self._runtime.note(
                    "error", "the archive did not stop in time; the broker stops without it"
                )
                return

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None and not await process.close():
            self._runtime.note(
                "error",
                "the archive process does not stop; the broker goes on without waiting for it",
                pid=process.pid,
                remedy="Check the disk: a process that waits for a hanging disk cannot be killed.",
            )

    # Its status

    @property
    def waiting(self) -> int:
        """Events of the log that the archive has still to take."""
        return max(0, self._port.head - self.through)

    @property
    def age_s(self) -> float:
        """How long the first of them has waited."""
        since_s = self._waiting_since_s
        return 0.0 if since_s is None else max(0.0, self._runtime.elapsed_s() - since_s)

    def complaints(self) -> list[str]:
        """What a person should know who asks how the broker is."""
        failed = self.off or self._failure
        if failed is None:
            return []
        verb = "is off" if self.off else "cannot be written"
        return [f"the archive {verb}: {failed.problem} [{failed.code}]. {failed.remedy}"]

    # When

    def _tick(self) -> None:
        self._timer = self._runtime.call_later(TICK_S, self._tick)
        now_s = self._runtime.elapsed_s()
        if not self.waiting:
            self._waiting_since_s = None
        elif self._waiting_since_s is None:
            self._waiting_since_s = now_s
        if self._working is None and self._is_anything_due(now_s):
            self._working = asyncio.get_running_loop().create_task(self._work(now_s))
            self._working.add_done_callback(self._worked)

    def _is_anything_due(self, now_s: float) -> bool:
        return (
            self._is_roll_due(now_s)
            or now_s >= self._sample_at_s
            or (self.waiting > 0 and now_s >= self._relieved_s + RELIEF_S)
            or (self._process is not None and now_s >= self._busy_s + IDLE_S)
        )

    def _is_roll_due(self, now_s: float) -> bool:
        if self.off is not None or now_s < self._retry_at_s:
            return False
        if self.waiting >= self._wanted.roll_events or self.age_s >= self._wanted.roll_s:
            return self.waiting > 0
        if self._has_samples and self._process is None:
            return True
        return self._has_to_tend and now_s >= self._tend_at_s

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._working = None
        error = None if task.cancelled() else task.exception()
        if error is not None:  # a bug of ours, which must not cost the broker
            self._failed(Failed("T000", repr(error), "Please report this."))

    async def _work(self, now_s: float) -> None:
        if now_s >= self._sample_at_s:
            self._sample_at_s = now_s + self._wanted.sample_s
            await self._sampler.look()
            self._has_samples = bool(self._sampler)
        if not self._is_known:
            await self._look_how_far()
        if self._is_roll_due(now_s):
            await self._roll(now_s)
        elif self._process is not None and now_s >= self._busy_s + IDLE_S and not self._sampler:
            await self._end_process()
        if self._process is not None and not self._is_closing:
            self._hand_over(self._process)
        if self.waiting and now_s >= self._relieved_s + RELIEF_S:
            self._relieved_s = now_s
            await self._relieve()

    async def _look_how_far(self) -> None:
        through = await asyncio.to_thread(_last_archived, self.directory)
        self._is_known = True
        head = self._port.head
        if through > head:
            error = other_log(str(self.directory), f"it goes up to {through}, the log to {head}")
            self._turn_off(Failed(error.code, error.problem, error.remedy, is_final=True))
        else:
            self.through = through
            self._hold()

    # Rolling

    async def _roll(self, now_s: float) -> None:
        by_age = now_s >= self._let_go_s + LET_GO_S and not self._port.is_clock_in_doubt
        while not self._is_closing:
            asked = self._port.head
            answer = await self._ask(Roll(asked, by_age))
            if isinstance(answer, Failed):
                if not self._is_closing:
                    await self._not_rolled(answer)
                return
            if by_age:
                self._let_go_s, by_age = now_s, False
            came_on = answer.through > self.through
            self._rolled(answer)
            if answer.through >= asked or not came_on:
                return

    async def _ask(self, task: Roll) -> Rolled | Failed:
        try:
            if self._process is None:
                self._process = await WriterProcess.start(self._order())
        except OSError as error:
            return Failed("T404", f"the archive process cannot be started: {error}", "")
        return await self._process.ask(task)

    def _rolled(self, answer: Rolled) -> None:
        now_s = self._runtime.elapsed_s()
        self.through, self.files = answer.through, answer.files
        self.size_bytes = answer.size_bytes
        self.left_out += answer.left_out
        self._busy_s = now_s
        self._waiting_since_s = now_s if self.waiting else None
        self._has_to_tend = bool(answer.fresh or answer.superseded)
        self._tend_at_s = now_s + TICK_S
        self._tend_at_s += GRACE_S if answer.superseded else self._wanted.seal_age_s
        if self._failure is not None:
            self._runtime.note("info", "the archive is being written again", through=answer.through)
        self._failure, self._failed_in_a_row = None, 0
        self._hold()
        note = self._runtime.note
        if answer.left_out:
            note("error", "events could not be archived", count=answer.left_out)
        if answer.damaged:
            note(
                "error",
                "new archive files were damaged and are written again from the log",
                files=answer.damaged,
                remedy="Check the disk; `tocsin archive verify` shows what is missing.",
            )
        if answer.unread and answer.unread != self._unread:
            note(
                "warning",
                "new archive files cannot be read",
                files=answer.unread,
                remedy="Check their permissions and the disk.",
            )
        self._unread = answer.unread
        if answer.unsaved is not None:
            note("warning", "archive samples wait for the disk", why=answer.unsaved)

    async def _not_rolled(self, failed: Failed) -> None:
        await self._end_process()
        if failed.is_final:
            self._turn_off(failed)
        else:
            self._failed(failed)

    def _turn_off(self, failed: Failed) -> None:
        """Archive nothing more, and hold nothing back for it."""
        self.off = failed
        self._port.hold_for_archive(SESSION, None)
        self._runtime.note("error", failed.problem, code=failed.code, remedy=failed.remedy)

    def _failed(self, failed: Failed) -> None:
        self.failures += 1
        delay_s = min(RETRY_S_MAX, RETRY_S * 2**self._failed_in_a_row)
        self._failed_in_a_row = min(self._failed_in_a_row + 1, 10)
        self._retry_at_s = self._runtime.elapsed_s() + delay_s
        is_news = self._failure is None or self._failure.problem != failed.problem
        self._failure = failed
        if is_news:  # logged once, not with every try
            self._runtime.note(
                "error",
                f"the archive cannot be written: {failed.problem}",
                code=failed.code,
                remedy=failed.remedy,
                waiting=self.waiting,
            )

    def _order(self) -> WriterOptions:
        wanted = self._wanted
        return WriterOptions(
            store=self._settings.log.store,
            log=self._settings.log.directory,
            directory=str(self.directory),
            ontology=self._settings.blackboard.ontology,
            seal_bytes=wanted.seal_bytes,
            seal_age_s=wanted.seal_age_s,
            retain_age_s=wanted.retain_age_s,
            retain_bytes=wanted.retain_bytes,
            free_bytes_min=wanted.free_bytes_min,
        )

    # Beside the events

    def _hand_over(self, process: WriterProcess) -> None:
        self._has_samples = False
        for kind, rows in self._sampler.take().items():
            process.keep(kind, rows)

    # The log, which waits

    def _hold(self) -> None:
        if self.off is None:
            self._port.hold_for_archive(SESSION, max(self.through, self._let_go_to))

    async def _relieve(self) -> None:
        """Let the log go of events that the archive has not, if it grew far beyond its size."""
        size_max = HELD_FACTOR * self._settings.log.retain_bytes

        def look(reader: StoreReader) -> int:
            return reader.seq_for_size(size_max) if reader.size_bytes() > size_max else 0

        reach = await self._port.read(SESSION, "events", look)
        count = reach - max(self.through, self._let_go_to)
        if self.off is None and count > 0:
            self._let_go_to = reach
            self.lost += count
            self._hold()
            self._runtime.note(
                "error",
                "the log is over its limit: events that are not archived yet are removed",
                count=count,
                through=reach,
                remedy="Find out why the archive is not written; "
                "`tocsin archive verify` shows what is missing.",
            )


def _last_archived(directory: Path) -> int:
    return Catalog(directory).through()


def archive_directory(data: str, named: str) -> Path:
    """Where a broker with these settings has its archive."""
    return Path(named) if named else Path(data) / DIRECTORY


def open_archiver(
    port: BrokerPort, settings: Settings, directory: Directory, on_dead: OnDead
) -> Archiver | None:
    """A broker's archive, filled from now on; None if the settings want none. On the loop."""
    if not settings.archive.enabled:
        return None
    archiver = Archiver(port, settings, directory, on_dead)
    archiver.start()
    return archiver
