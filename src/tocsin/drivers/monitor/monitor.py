"""Monitor: the monitoring service as the rest of the broker sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar

from tocsin.config import Settings
from tocsin.drivers.monitor.alarms import Alarms
from tocsin.drivers.monitor.house import House
from tocsin.drivers.monitor.lookout import Lookout
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.service import Service
from tocsin.drivers.monitor.store import MonitorStore
from tocsin.drivers.monitor.watch import Watch
from tocsin.ontology import Vocabulary, in_use

T = TypeVar("T")

ASKED_AT_ONCE: Final = 2  # threads that answer; more would only wait for the tables
READ_OWN_WRITES_S: Final = 2.0  # how long a question waits for what was published before it


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
        self.options = options or MonitorOptions()
        vocabulary = vocabulary or in_use()
        self._store = MonitorStore(directory, self.options, vocabulary)
        self.past = Watch(directory, self.options)
        asks = vocabulary.expanded(self.options.concepts)
        self.lookout = Lookout(node, self._store, Alarms(self.past), vocabulary)
        self.service = Service(node, self._store, vocabulary, asks, self.lookout)
        self._askers = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="tocsin-runs")

    def start(self) -> None:
        """Begin to follow the log. On the loop."""
        self.service.start()

    async def close(self) -> None:
        """Fold what was handed over, and let go of the disk."""
        self.service.stop()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self.service.join()
        self._askers.shutdown(wait=True, cancel_futures=True)
        self.past.close()
        self._store.close()

    async def ask(self, question: Callable[[Watch, int], T]) -> T:
        """Answer in a thread, once everything that was published before is folded.

        Not for ever: a monitor that is far behind answers with what it knows.
        """
        head, now_ns = self._node.broker.head, self._node.now_ns()

        def work() -> T:
            self.service.wait_for(head, READ_OWN_WRITES_S)
            return question(self.past, now_ns)

        return await asyncio.get_running_loop().run_in_executor(self._askers, work)

    @property
    def behind(self) -> int:
        """How many events of the log are still to be read."""
        return max(0, self._node.broker.head - self.service.through)

    @property
    def missed(self) -> int:
        """How many events the log no longer had when the monitor wanted to read them."""
        return self._store.missed


def open_monitor(node: OpenHouse) -> Monitor | None:
    """The monitor of a node, at work; none if its settings want none. On the loop."""
    wanted = node.settings.monitor
    if not wanted.enabled:
        return None
    options = MonitorOptions(
        concepts=wanted.concepts,
        silence_s=wanted.silence_s,
        retain_age_s=wanted.retain_age_s,
        runs_max=wanted.runs_max,
        events_per_run=wanted.events_per_run,
        alerts=wanted.alerts,
    )
    monitor = Monitor(node, Path(node.settings.log.directory), options)
    monitor.start()
    return monitor
