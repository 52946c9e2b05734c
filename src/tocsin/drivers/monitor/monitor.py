"""Monitor: the monitoring service as the rest of the broker sees it.

The log is the truth, and the broker serves without a monitor. So a database that is damaged is set
aside and made anew from the log. One that cannot be used, or is damaged again soon, leaves the
broker without an account of runs, and whoever asks for one is told why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar

import apsw

from tocsin.config import Settings, tables_directory
from tocsin.drivers.monitor.account import Account, open_account
from tocsin.drivers.monitor.damage import damaged_again, is_damage, set_aside, unusable
from tocsin.drivers.monitor.house import House
from tocsin.drivers.monitor.lookout import Lookout
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.service import Service
from tocsin.drivers.monitor.store import MonitorStore
from tocsin.drivers.monitor.watch import Watch
from tocsin.errors import MonitorOff, TocsinError
from tocsin.ontology import Vocabulary, in_use
from tocsin.store.faults import is_full

T = TypeVar("T")

ASKED_AT_ONCE: Final = 2  # threads that answer; more would only wait for the tables
READ_OWN_WRITES_S: Final = 2.0  # how long a question waits for what was published before it
DAMAGED_AGAIN_S: Final = 600.0  # so soon after the last time it is the disk, and no accident
ROOM_AGAIN_S: Final = 5.0  # after a start on a full disk
TRIES_MAX: Final = 3  # of a question: each meets other tables than the one before


class OpenHouse(House, Protocol):
    """A node with its settings."""

    settings: Settings


class Monitor:
    """Runs and activities: followed, kept, and asked about."""

    def __init__(
        self,
        node: House,
        directory: Path,
        options: MonitorOptions | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self._node = node
        self._directory = directory
        self.options = options or MonitorOptions()
        self._vocabulary = vocabulary or in_use()
        self._askers = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="tocsin-runs")
        self.off: MonitorOff | None = None
        """Why there is no account of runs, if there is none."""
        self._damaged_s: float | None = None
        self._mending: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_full = False  # there was no room for the tables: they are tried again
        self._account = self._open()

    def start(self) -> None:
        """Begin to follow the log. On the loop."""
        if self._account is not None:
            self._account.service.start()
        elif self._is_full:
            self._node.loop.call_later(ROOM_AGAIN_S, self._open_again)

    def _open_again(self) -> None:
        """There was no room for the tables; perhaps there is by now. On the loop."""
        if self._is_closing:
            return
        self._is_full = False
        self._account = self._open()
        if self._account is not None:
            self.off = None
            self._node.note("info", "runs are recorded again: the disk has room")
        self.start()

    async def close(self) -> None:
        """Fold what was handed over, and let go of the disk."""
        self._is_closing = True
        if self._mending is not None:
            await self._mending
        if self._account is not None:
            self._account.service.stop()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._account is not None:
            self._account.service.join()
        self._askers.shutdown(wait=True, cancel_futures=True)
        if self._account is not None:
            self._account.close()

    async def ask(self, question: Callable[[Watch, int], T]) -> T:
        """Answer in a thread, once everything that was published before is folded.

        Not for ever: a monitor that is far behind answers with what it knows. MonitorOff, if there
        is no account of runs.
        """
        head, now_ns = self._node.broker.head, self._node.now_ns()
        for _ in range(TRIES_MAX):
            account = await self._at_hand()

            def work(account: Account = account) -> T:
                account.service.wait_for(head, READ_OWN_WRITES_S)
                return question(account.past, now_ns)

            try:
                found = await asyncio.get_running_loop().run_in_executor(self._askers, work)
                if account is self._account or self._is_closing:
                    return found
                # Or else the tables were let go while it waited: new ones will know more.
            except Exception as error:
                if is_damage(error):
                    self._damaged(account, error)
                elif account is self._account or not isinstance(error, apsw.Error):
                    raise
        raise MonitorOff("the database of runs is being rebuilt", remedy="Ask again in a while.")

    async def _at_hand(self) -> Account:
        if self._mending is not None:
            await asyncio.shield(self._mending)
        if self._account is None:
            raise self.off or MonitorOff("the monitor is closed", remedy="Ask when it is open.")
        return self._account

    # Opening, and what is done about damage

    def _open(self) -> Account | None:
        """Those who work on the tables. None if they cannot be used: then it is off."""
        try:
            try:
                return self._open_tables()
            except Exception as error:
                if not is_damage(error):
                    raise
                return self._open_anew(error)
        except (apsw.Error, OSError, TocsinError) as error:
            self._is_full = is_full(error)
            self._turn_off(unusable(self._directory, error))
            return None

    def _open_tables(self) -> Account:
        node, options = self._node, self.options
        return open_account(node, self._directory, options, self._vocabulary, self._damaged_now)

    def _open_anew(self, why: Exception) -> Account:
        """Set the damaged tables aside, and begin with empty ones."""
        self._damaged_s = time.monotonic()
        aside = set_aside(self._directory)
        self._node.note(
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
            self._node.note("warning", why.problem, remedy=why.remedy)

    def _damaged_now(self, error: Exception) -> None:
        """The folding thread met damage. On the loop."""
        if self._account is not None:
            self._damaged(self._account, error)

    def _damaged(self, account: Account, error: Exception) -> None:
        """Make the tables anew, unless somebody has seen to that already. On the loop."""
        if account is not self._account or self._is_closing:
            return
        self._account = None
        account.service.stop()
        self._mending = self._node.loop.create_task(self._mend(account, error))

    async def _mend(self, account: Account, error: Exception) -> None:
        last_s = self._damaged_s
        try:
            await asyncio.to_thread(account.close)
            if last_s is not None and time.monotonic() - last_s < DAMAGED_AGAIN_S:
                self._turn_off(damaged_again(self._directory, error))
                return
            self._account = await asyncio.to_thread(self._anew, error)
            if not self._is_closing:
                self.start()
        finally:
            self._mending = None

    def _anew(self, why: Exception) -> Account | None:
        try:
            return self._open_anew(why)
        except (apsw.Error, OSError, TocsinError) as error:
            self._turn_off(unusable(self._directory, error))
            return None

    # What is told of it, also while it is off

    @property
    def behind(self) -> int:
        """How many events of the log are still to be read."""
        if self.off is not None:
            return 0
        through = 0 if self._account is None else self._account.service.through
        return max(0, self._node.broker.head - through)

    @property
    def missed(self) -> int:
        """How many events the log no longer had when the monitor wanted to read them."""
        return 0 if self._account is None else self._account.store.missed

    @property
    def left_out(self) -> int:
        """How many messages about runs could not be taken since the start."""
        return 0 if self._account is None else self._account.service.left_out

    @property
    def under_way(self) -> dict[str, int]:
        """How many runs are in each state that is no end, as they were last counted."""
        return {} if self._account is None else self._account.lookout.under_way

    # The parts, for those who know that it is on

    @property
    def past(self) -> Watch:
        return self._open_account.past

    @property
    def service(self) -> Service:
        return self._open_account.service

    @property
    def lookout(self) -> Lookout:
        return self._open_account.lookout

    @property
    def _store(self) -> MonitorStore:
        return self._open_account.store

    @property
    def _open_account(self) -> Account:
        assert self._account is not None
        return self._account


def open_monitor(node: OpenHouse) -> Monitor | None:
    """The monitor of a node, at work; none if its settings want none. On the loop."""
    wanted = node.settings.monitor
    if not wanted.enabled:
        return None
    directory, named = Path(node.settings.log.directory), node.settings.pipeline.tables
    options = MonitorOptions(
        concepts=wanted.concepts,
        silence_s=wanted.silence_s,
        retain_age_s=wanted.retain_age_s,
        runs_max=wanted.runs_max,
        events_per_run=wanted.events_per_run,
        alerts=wanted.alerts,
        tables=tables_directory(directory, named),
        tables_named=bool(named),
        tables_old_s=node.settings.pipeline.old_s,
    )
    monitor = Monitor(node, directory, options)
    monitor.start()
    return monitor
