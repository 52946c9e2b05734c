"""Process: one life of a broker process, from a start to a crash or a stop.

It holds what a process holds in memory: the broker, the second broker of the message boxes, the
services with their coroutines. When it ends, nothing of it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from tocsin.broker.runtime import HttpAnswer
from tocsin.errors import DiskFailed, PeerFailed, ShuttingDown, TocsinError
from tocsin.event.instant import NS_PER_MS
from tocsin.sim.faults.clock import MachineClock
from tocsin.sim.faults.crashes import CrashKind, CrashPoint, PlannedCrash, PlannedCrashes
from tocsin.sim.faults.disk import FaultyDisk
from tocsin.sim.network import Delivered, Network, Request, Response
from tocsin.sim.node import SimNode
from tocsin.sim.runtime import Cancelled, SimTask
from tocsin.sim.services import Services
from tocsin.sim.world import Action, World
from tocsin.store.vfs import PowerCut


class OpenConnection(Protocol):
    """A connection that a client has to this process."""

    def stop(self) -> None: ...

    def process_ended(self) -> None: ...


CLOSING_MS = 500
CLOCK_READ_MS = 40


class Process:
    """Runs nodes and services until it ends."""

    def __init__(
        self,
        world: World,
        network: Network,
        clock: MachineClock,
        disk: FaultyDisk,
        crashes: PlannedCrashes,
        *,
        host: str,
        disk_ms_max: float,
        requests: count[int],
        new_id: Callable[[], str],
        on_end: Callable[[CrashKind], None],
    ) -> None:
        self.world = world
        self.clock = clock
        self.disk = disk
        self.disk_ms_max = disk_ms_max
        self.requests = requests
        self.new_id = new_id
        self.jitter = world.random.random
        self.is_alive = True
        self.is_stopping = False
        self.current: SimTask | None = None
        self.nodes: list[SimNode] = []
        self.services: Services | None = None
        self.connections: dict[OpenConnection, None] = {}
        self._network = network
        self._crashes = crashes
        self._host = host
        self._on_end = on_end
        self._tasks: dict[SimTask, None] = {}

    @property
    def node(self) -> SimNode:
        return self.nodes[0]

    def start(self) -> None:
        """The nodes are open: work."""
        self.later(CLOCK_READ_MS, CLOCK_READ_MS, self._read_clock)
        for node in self.nodes:
            node.wake()

    def _read_clock(self) -> None:
        """As a node does every few seconds."""
        self.clock.may_jump()
        for node in self.nodes:
            node.broker.clock.read(self.clock.wall_ns, self.clock.steady_ns)
            node.wake()
        self.later(CLOCK_READ_MS, CLOCK_READ_MS, self._read_clock)

    # What runs in it

    def later(self, low_ms: float, high_ms: float, action: Action) -> None:
        """Unless the process ends before."""

        def if_alive() -> None:
            if self.is_alive:
                action()

        if not self.is_alive:
            return
        if low_ms == high_ms:
            self.world.after_ms(low_ms, if_alive)
        else:
            self.world.soon(low_ms, high_ms, if_alive)

    def add(self, task: SimTask) -> None:
        self._tasks[task] = None

    def remove(self, task: SimTask) -> None:
        self._tasks.pop(task, None)

    def call(
        self,
        work: Callable[[Services], Coroutine[Any, Any, Any]],
        answer: Callable[[object], None],
    ) -> SimTask | None:
        """A request arrives, and is answered with what the coroutine returns or raises."""
        assert self.services is not None
        if self.is_stopping:
            answer(ShuttingDown("the broker is stopping", remedy="Send it again."))
            return None
        task = SimTask(self, work(self.services), answer)
        task.run()
        return task

    def handle(self, request: Request, respond: Callable[[Response], None]) -> None:
        """An HTTP request arrives."""
        assert self.services is not None
        services = self.services

        def answered(result: object) -> None:
            if isinstance(result, Exception):
                raise result  # services answer every error themselves
            assert isinstance(result, Response)
            if result.receipt is not None:
                result.receipt = _ProcessReceipt(self, result.receipt)
            respond(result)

        if not self.is_stopping:
            SimTask(self, services.answer(request), answered).run()

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout_s: float,
        answered: Callable[[HttpAnswer | TocsinError], None],
    ) -> None:
        """Send something to a consumer or another broker."""

        def done(response: Response | None) -> None:
            if not self.is_alive:
                return
            if response is None:
                answered(PeerFailed("no answer in time", remedy="Try again later."))
            else:
                answered(response.answer)

        path = url.split("/", 3)[3] if url.count("/") > 2 else ""
        request = Request(f"/{path}", body, headers, f"{self._host}:40000")
        self._network.request(url, request, timeout_s * 1e3, done)

    # Its end

    def due(self, point: CrashPoint) -> PlannedCrash | None:
        return None if self.world.calm else self._crashes.due(point)

    def reached(self, point: CrashPoint) -> None:
        """The process may crash here."""
        if self.is_alive:
            crash = self.due(point)
            if crash is not None:
                self.crash(crash.kind, point.value)

    def crash(self, kind: CrashKind, when: str) -> None:
        """The process ends, or begins to stop."""
        if not self.is_alive or (self.is_stopping and kind is CrashKind.STOP):
            return
        self.world.trace(f"{kind.value} while {when}")
        self.world.seen[f"crash: {when}"] += 1
        if kind is CrashKind.STOP:
            self._stop()
            return
        self.disk.has_power = False
        for node in self.nodes:
            with suppress(PowerCut, TocsinError):
                node.store.close()
        self._end(kind)

    def _stop(self) -> None:
        assert self.services is not None
        self.services.close_links()
        self.is_stopping = True
        for connection in list(self.connections):
            connection.stop()
        for node in self.nodes:
            for number, stream in list(node.streams.items()):
                node.port.close_stream(number)
                stream.end("the broker is stopping")
            node.broker.shut_down(self.clock.steady_ns)
            node.wake()
        deadline_ns = self.world.now_ns + CLOSING_MS * NS_PER_MS
        self.later(0, 1, lambda: self._close_when_idle(deadline_ns))

    def _close_when_idle(self, deadline_ns: int) -> None:
        is_idle = all(node.broker.is_idle() for node in self.nodes)
        if not is_idle and self.world.now_ns < deadline_ns:
            self.later(2, 2, lambda: self._close_when_idle(deadline_ns))
            return
        for node in self.nodes:
            with suppress(DiskFailed):
                node.store.close()
        self._end(CrashKind.STOP)

    def abandon(self) -> None:
        """End everything that runs in it."""
        self.is_alive = False
        for connection in list(self.connections):
            connection.process_ended()
        if self.services is not None:
            self.services.close()
        for task in list(self._tasks):
            with suppress(Exception, Cancelled):
                task.drop()

    def _end(self, kind: CrashKind) -> None:
        self.abandon()
        for node in self.nodes:
            node.checks.process_ended(node.broker)
        self._on_end(kind)


class _ProcessReceipt:
    """A receipt that is lost with its process."""

    def __init__(self, process: Process, receipt: Delivered) -> None:
        self._process = process
        self._receipt = receipt
        self.is_acknowledged: Callable[[], bool] = lambda: False
        receipt.is_acknowledged = lambda: self.is_acknowledged()

    def arrived(self) -> None:
        if self._process.is_alive:
            self._receipt.arrived()

    def lost(self) -> None:
        if self._process.is_alive:
            self._receipt.lost()
