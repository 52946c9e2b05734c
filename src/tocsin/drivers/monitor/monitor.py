"""Monitor: the monitoring service as the rest of the broker sees it.

The log is the truth, and the broker serves without a monitor. So a damaged database is set aside
and rebuilt from the log. If it cannot be used, or is damaged again soon, the broker goes on without
recording runs, and queries are answered with the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import apsw

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.config import Settings, tables_directory
from tocsin.drivers.monitor.database.damage import damaged_again, is_damage, set_aside, unusable
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import Queries
from tocsin.drivers.monitor.recorder import Recorder, open_recorder
from tocsin.errors import Busy, MonitorOff, TocsinError
from tocsin.ontology import Vocabulary, in_use
from tocsin.store.faults import is_full

T = TypeVar("T")

ASKED_AT_ONCE: Final = 2  # threads that answer; more would only wait for the tables
READ_OWN_WRITES_S: Final = 2.0  # how long a question waits for what was published before it
DAMAGED_AGAIN_S: Final = 600.0  # so soon after the last time it is the disk, and no accident
ROOM_AGAIN_S: Final = 5.0  # after a start on a full disk
TRIES_MAX: Final = 3  # of a question: each meets other tables than the one before


class Monitor:
    """Runs and activities: followed, kept, and asked about."""

    def __init__(
        self,
        port: BrokerPort,
        loop: asyncio.AbstractEventLoop,
        directory: Path,
        options: MonitorOptions | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self._port = port
        self._loop = loop
        self._note = port.runtime.note
        self._directory = directory
        self.options = options or MonitorOptions()
        self._vocabulary = vocabulary or in_use()
        self._askers = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="tocsin-runs")
        self.off: MonitorOff | None = None
        """Why there is no recorder of runs, if there is none."""
        self._damaged_s: float | None = None
        self._rebuilding: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_full = False  # there was no room for the tables: they are tried again
        self._recorder = self._open()

    def start(self) -> None:
        """Begin to follow the log. On the loop."""
        if self._recorder is not None:
            self._recorder.follower.start()
        elif self._is_full:
            self._loop.call_later(ROOM_AGAIN_S, self._open_again)

    def _open_again(self) -> None:
        """There was no room for the tables; perhaps there is by now. On the loop."""
        if self._is_closing:
            return
        self._is_full = False
        self._recorder = self._open()
        if self._recorder is not None:
            self.off = None
            self._note("info", "runs are recorded again: the disk has room")
        self.start()

    async def close(self) -> None:
        """Fold what was handed over, and let go of the disk."""
        self._is_closing = True
        if self._rebuilding is not None:
            await self._rebuilding
        if self._recorder is not None:
            self._recorder.follower.stop()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._recorder is not None:
            self._recorder.follower.join()
        self._askers.shutdown(wait=True, cancel_futures=True)
        if self._recorder is not None:
            self._recorder.close()

    async def ask_for(self, session: Session, question: Callable[[Queries, int], T]) -> T:
        """The same as `ask`, of the runs that the session may read: the others are not there. Asked
        again if rights change meanwhile; an answer may take seconds."""
        for _ in range(TRIES_MAX):
            permit = self._port.read_permit(session)
            version = 0 if permit is None else permit.version
            found = await self._ask_once(session, question)
            if permit is None or permit.version == version:
                return found
        raise Busy("rights change while this is answered", remedy="Ask again in a second.")

    async def _ask_once(self, session: Session, question: Callable[[Queries, int], T]) -> T:
        readable = self._port.readable(session, "run/*")

        def asked(queries: Queries, now_ns: int) -> T:
            with queries.index.reading(readable):
                return question(queries, now_ns)

        return await self.ask(asked if readable is not None else question)

    async def ask(self, question: Callable[[Queries, int], T]) -> T:
        """Answer in a thread, once everything that was published before is folded.

        Not for ever: a monitor that is far behind answers with what it knows. MonitorOff, if there
        is no recorder of runs.
        """
        head, now_ns = self._port.head, self._port.runtime.now_ns()
        for _ in range(TRIES_MAX):
            recorder = await self._ready()

            def work(recorder: Recorder = recorder) -> T:
                recorder.follower.wait_for(head, READ_OWN_WRITES_S)
                return question(recorder.queries, now_ns)

            try:
                found = await asyncio.get_running_loop().run_in_executor(self._askers, work)
                if recorder is self._recorder or self._is_closing:
                    return found
                # Or else the tables were let go while it waited: new ones will know more.
            except Exception as error:
                if is_damage(error):
                    self._damaged(recorder, error)
                elif recorder is self._recorder or not isinstance(error, apsw.Error):
                    raise
        raise MonitorOff("the database of runs is being rebuilt", remedy="Ask again in a while.")

    async def _ready(self) -> Recorder:
        if self._rebuilding is not None:
            await asyncio.shield(self._rebuilding)
        if self._recorder is None:
            raise self.off or MonitorOff("the monitor is closed", remedy="Ask when it is open.")
        return self._recorder

    # Opening, and what is done about damage

    def _open(self) -> Recorder | None:
        """Those who work on the tables. None if they cannot be used: then it is off."""
        try:
            try:
                return self._open_tables()
            except Exception as error:
                if not is_damage(error):
                    raise
                return self._open_rebuilt(error)
        except (apsw.Error, OSError, TocsinError) as error:
            self._is_full = is_full(error)
            self._turn_off(unusable(self._directory, error))
            return None

    def _open_tables(self) -> Recorder:
        return open_recorder(
            self._port,
            self._loop,
            self._directory,
            self.options,
            self._vocabulary,
            self._damaged_now,
        )

    def _open_rebuilt(self, why: Exception) -> Recorder:
        """Set the damaged tables aside, and begin with empty ones."""
        self._damaged_s = time.monotonic()
        aside = set_aside(self._directory)
        self._note(
            "error",
            "the monitor's database is damaged: it is set aside and rebuilt from the log",
            why=repr(why),
            file=str(aside),
            remedy="Check the disk; delete the file when you no longer need it.",
        )
        return self._open_tables()

    def _turn_off(self, why: MonitorOff) -> None:
        is_known = self.off is not None and self.off.problem == why.problem
        self.off = why
        if not is_known:
            self._note("warning", why.problem, remedy=why.remedy)

    def _damaged_now(self, error: Exception) -> None:
        """The folding thread met damage. On the loop."""
        if self._recorder is not None:
            self._damaged(self._recorder, error)

    def _damaged(self, recorder: Recorder, error: Exception) -> None:
        """Rebuild the database, unless that is under way already. On the loop."""
        if recorder is not self._recorder or self._is_closing:
            return
        self._recorder = None
        recorder.follower.stop()
        self._rebuilding = self._loop.create_task(self._rebuild(recorder, error))

    async def _rebuild(self, recorder: Recorder, error: Exception) -> None:
        last_s = self._damaged_s
        try:
            await asyncio.to_thread(recorder.close)
            if last_s is not None and time.monotonic() - last_s < DAMAGED_AGAIN_S:
                self._turn_off(damaged_again(self._directory, error))
                return
            self._recorder = await asyncio.to_thread(self._rebuilt, error)
            if not self._is_closing:
                self.start()
        finally:
            self._rebuilding = None

    def _rebuilt(self, why: Exception) -> Recorder | None:
        try:
            return self._open_rebuilt(why)
        except (apsw.Error, OSError, TocsinError) as error:
            self._turn_off(unusable(self._directory, error))
            return None

    # What is reported of it, also while it is off

    @property
    def behind(self) -> int:
        """How many events of the log are still to be read."""
        if self.off is not None:
            return 0
        through = 0 if self._recorder is None else self._recorder.follower.through
        return max(0, self._port.head - through)

    @property
    def missed(self) -> int:
        """How many events the log no longer had when the monitor wanted to read them."""
        return 0 if self._recorder is None else self._recorder.writer.missed

    @property
    def left_out(self) -> int:
        """How many messages about runs could not be taken since the start."""
        return 0 if self._recorder is None else self._recorder.follower.left_out

    @property
    def under_way(self) -> dict[str, int]:
        """How many runs are in each state that is no end, as they were last counted."""
        return {} if self._recorder is None else self._recorder.alerts.under_way

    @property
    def recorder(self) -> Recorder:
        """What works on the database, for those who know that it is open."""
        assert self._recorder is not None
        return self._recorder


def open_monitor(port: BrokerPort, settings: Settings) -> Monitor | None:
    """The monitor of a broker, started; None if the settings disable it. On the loop."""
    wanted = settings.monitor
    if not wanted.enabled:
        return None
    directory, named = Path(settings.log.directory), settings.pipeline.tables
    options = MonitorOptions(
        concepts=wanted.concepts,
        silence_s=wanted.silence_s,
        retain_age_s=wanted.retain_age_s,
        runs_max=wanted.runs_max,
        events_per_run=wanted.events_per_run,
        alerts=wanted.alerts,
        tables=tables_directory(directory, named),
        tables_named=bool(named),
        tables_old_s=settings.pipeline.old_s,
    )
    monitor = Monitor(port, asyncio.get_running_loop(), directory, options)
    monitor.start()
    return monitor
