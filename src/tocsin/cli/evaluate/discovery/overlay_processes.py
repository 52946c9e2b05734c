"""The brokers of a topology as processes of this machine, linked over TCP on the loopback."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import psutil

from tocsin.cli.broker_process import BrokerProcess
from tocsin.client import Resources
from tocsin.client.transport.connection import Connection
from tocsin.errors import NothingArrived
from tocsin.sim.discovery.sequence import Counts, plain_counts
from tocsin.sim.discovery.topology import Topology

WAIT_S_MAX: Final = 120.0  # for a start, for links, for the flooding of registrations
POLL_S: Final = 0.05
AT_ONCE: Final = 3  # brokers that start; each keeps a processor busy until it listens
SETTINGS: Final = {
    "TOCSIN_ARCHIVE__ENABLED": "false",  # no archive and no account of runs: fewer processes
    "TOCSIN_MONITOR__ENABLED": "false",
}
_TERMINATED: Final = 128 + signal.SIGTERM


class OverlayProcesses:
    """Brokers that run and are linked, by name, and a client of each."""

    def __init__(self, brokers: Mapping[str, BrokerProcess]) -> None:
        self._processes = [psutil.Process(broker.pid) for broker in brokers.values()]
        self._http = {name: Connection(broker.url) for name, broker in brokers.items()}
        self.clients = {name: Resources(broker.url) for name, broker in brokers.items()}

    def close(self) -> None:
        for http in self._http.values():
            http.close()
        for client in self.clients.values():
            client.close()

    def use(self, options: Mapping[str, object]) -> None:
        """Set options of discovery at every broker."""
        body = json.dumps(options).encode()
        headers = [("Content-Type", "application/json")]
        for http in self._http.values():
            http.request("PATCH", "/overlay/options", body=body, headers=headers)

    def processor_s(self) -> float:
        """What all brokers together have used of processors since they started."""
        times = [process.cpu_times() for process in self._processes]
        return sum(each.user + each.system for each in times)

    def counts(self) -> dict[str, Counts]:
        """The counters of discovery, of every broker."""
        views = {name: self._overlay(name)["discovery"] for name in self._http}
        return {name: plain_counts(view["counters"]) for name, view in views.items()}

    def wait_for_links(self) -> None:
        """Until every broker reaches every other."""
        others = len(self._http) - 1
        self._until(lambda name: len(self._overlay(name)["brokers"]) == others, "links")

    def wait_for_resources(self, count: int) -> None:
        """Until every broker knows of so many."""

        def knows_all(name: str) -> bool:
            rows: int = self._overlay(name)["discovery"]["advertisements"]["rows"]
            return rows == count

        self._until(knows_all, "resources")

    def _overlay(self, name: str) -> dict[str, Any]:
        view: dict[str, Any] = json.loads(self._http[name].request("GET", "/overlay").body)
        return view

    def _until(self, holds: Callable[[str], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        for name in self._http:
            while not holds(name):
                if time.monotonic() > deadline:
                    raise NothingArrived(
                        f"broker {name} does not have all {what} after {WAIT_S_MAX:g} s",
                        remedy="Try again when this machine has less to do.",
                    )
                time.sleep(POLL_S)


@contextmanager
def overlay_of(topology: Topology, started: Callable[[], None]) -> Iterator[OverlayProcesses]:
    """Start the brokers and link them; calls `started` after each.

    All are stopped in the end, also if this process is told to end by a signal.
    """
    with ExitStack() as stack:
        stack.enter_context(_ends_by_exception())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-overlay-")))
        brokers: dict[str, BrokerProcess] = {}
        stack.callback(_stop_all, brokers)
        for level in levels(topology):
            for name, parent in level.items():
                peers = (brokers[parent].link,) if parent else ()
                brokers[name] = BrokerProcess(
                    directory / name, link="127.0.0.1:0", peers=peers, settings=SETTINGS
                )
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for _ in pool.map(lambda name: brokers[name].start(WAIT_S_MAX), level):
                    started()
        overlay = OverlayProcesses(brokers)
        stack.callback(overlay.close)
        overlay.wait_for_links()
        yield overlay


def levels(topology: Topology) -> list[dict[str, str]]:
    """Brokers that can start at once, each with the one that it connects to; the middle first."""
    neighbours = topology.neighbours()
    inner = topology.routers or topology.edges
    level = {inner[len(inner) // 2]: ""}
    known = set(level)
    found = []
    while level:
        found.append(level)
        level = {other: name for name in level for other in neighbours[name] if other not in known}
        known |= set(level)
    return found


def _stop_all(brokers: Mapping[str, BrokerProcess]) -> None:
    with ThreadPoolExecutor(max(1, len(brokers))) as pool:
        list(pool.map(BrokerProcess.stop, brokers.values()))


@contextmanager
def _ends_by_exception() -> Iterator[None]:
    """Let SIGTERM end this process as Ctrl-C does: by way of every `finally`."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
