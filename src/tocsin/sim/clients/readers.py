"""Readers: those who pull from a box, and those who follow a stream."""

from __future__ import annotations

from tocsin.access.session import anonymous
from tocsin.broker.effects import Pulled
from tocsin.errors import BadToken, NoSuchBox, TocsinError
from tocsin.event.instant import NS_PER_MS
from tocsin.event.stored import Stored
from tocsin.services.subscriptions.subscriptions import read_pull
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.clients.rest import pull_query
from tocsin.sim.machine import Machine
from tocsin.sim.runtime import SimTask
from tocsin.sim.workload import Want, wants
from tocsin.sim.world import Action, Violation

SESSION = anonymous("http")
PULL_WAIT_MS_MAX = 60
CALM_PULL_WAIT_MS = 1_000
PULL_PATIENCE_MS = 100  # beyond the wait; then the answer is taken to be lost
THINK_MS_MAX = 40
RECONNECT_MS_MAX = 60
STREAM_FAULT = 0.05
BLOCKED_MS_MAX = 80


class Puller:
    """One client of one box: pulls, and acknowledges with the next pull what it has got."""

    def __init__(self, machine: Machine, box: SubscriptionRecord) -> None:
        self._machine = machine
        self._world = machine.world
        self._network = machine.network
        self._checks = machine.checks
        self._box = box
        self._ack: str | None = None
        self._pulls = 0

    def pull(self) -> None:
        if self._box.is_ended:
            return
        self._pulls += 1
        number, ack = self._pulls, self._ack
        wait_ms = self._world.random.uniform(0, PULL_WAIT_MS_MAX)
        if self._world.calm:
            wait_ms = CALM_PULL_WAIT_MS
        events_max = self._world.random.randint(1, 6)
        tasks: list[SimTask] = []

        def arrive() -> None:
            task = self._machine.call(
                lambda services: services.subscriptions.pull(
                    SESSION, self._box.id, read_pull(pull_query(events_max, wait_ms, ack))
                ),
                lambda result: self._answered(number, ack, result),
            )
            tasks.extend(filter(None, [task]))

        def lost() -> None:
            if number == self._pulls:
                self._world.seen["pull answer lost"] += 1
                for task in tasks:
                    task.cancel()
                self.pull()

        self._network.carry(arrive)
        self._world.after_ms(wait_ms + PULL_PATIENCE_MS, lost)

    def _answered(self, number: int, ack: str | None, result: object) -> None:
        """The answer leaves the broker."""
        if isinstance(result, BadToken):
            raise Violation(f"box {self._box.id} does not know its token {ack}")
        if isinstance(result, Pulled) and result.events and ack is not None:
            first = result.events[0].seq
            if first <= int(ack):
                raise Violation(
                    f"box {self._box.id} hands out event {first} again, which its owner has "
                    f"acknowledged with {ack}"
                )
        self._network.carry(lambda: self._arrived(number, result))

    def _arrived(self, number: int, result: object) -> None:
        if number != self._pulls:  # it has hung up and asked again
            return
        if isinstance(result, Pulled):
            self._world.trace(f"{self._box.id} pulled {[s.seq for s in result.events]}")
            self._checks.took(self._box, result.events)
            self._ack = result.next
        self._pulls += 1
        if not isinstance(result, NoSuchBox):
            self._world.soon(0, THINK_MS_MAX, self.pull)


class StreamReader:
    """Follows a stream, and connects again where it was when the connection is lost."""

    def __init__(self, machine: Machine, want: Want) -> None:
        self._machine = machine
        self._world = machine.world
        self._network = machine.network
        self._log = machine.checks.log
        self._want = want
        self._number: int | None = None
        self._connection = 0
        self._arrival_ns = 0
        self._after: int | None = None  # the last event it knows to have passed
        self._has_lost = False

    def connect(self) -> None:
        node = self._machine.node
        if self._number is not None or node is None:
            self._world.soon(1, RECONNECT_MS_MAX, self.connect)
            return
        if self._after is None:
            self._after = node.broker.head
        self._connection += 1
        try:
            self._number = node.port.open_stream(
                SESSION, self, self._want.filter, self._after, "simulated"
            )
        except TocsinError:
            self._world.soon(1, RECONNECT_MS_MAX, self.connect)

    def write(self, events: list[Stored]) -> bool:
        """Events leave the broker for this reader; False: no more for now."""
        connection, number = self._connection, self._number
        self._arrive(lambda: self._got(connection, events))
        if self._world.fault(STREAM_FAULT):
            self._world.seen["stream cut"] += 1
            self._world.soon(0, 5, lambda: self._hang_up(connection))
        if self._world.fault(STREAM_FAULT * 3):
            self._world.seen["stream blocked"] += 1
            assert number is not None
            self._world.soon(1, BLOCKED_MS_MAX, lambda: self._ready(connection, number))
            return False
        return True

    def dropped(self, count: int) -> None:
        connection = self._connection
        self._world.seen["stream says what it lost"] += 1

        def arrived() -> None:
            if connection == self._connection:
                self._has_lost = True

        self._arrive(arrived)

    def end(self, reason: str) -> None:
        """The broker is gone. What it wrote last may be lost with it."""
        self._number = None
        self._connection += 1
        self._has_lost = False
        self._world.soon(1, RECONNECT_MS_MAX, self.connect)

    def is_owed(self) -> str | None:
        if self._after is None:
            return "a stream never opened"
        for seq in range(self._after + 1, self._log.last + 1):
            if wants(self._want, self._log.events[seq]) and not self._has_lost:
                return f"a stream has not got event {seq}"
        return None

    def _arrive(self, action: Action) -> None:
        """In the order of sending: one connection carries it all."""
        due_ns = self._world.now_ns + int(self._network.delay_ms() * NS_PER_MS)
        self._arrival_ns = max(self._arrival_ns, due_ns)
        self._world.at(self._arrival_ns, action)

    def _got(self, connection: int, events: list[Stored]) -> None:
        if connection != self._connection:
            return
        self._world.trace(f"stream got {[s.seq for s in events]}")
        for stored in events:
            assert self._after is not None
            if stored.seq <= self._after:
                raise Violation(f"a stream got event {stored.seq} after {self._after}")
            if not wants(self._want, stored.event):
                raise Violation(f"a stream got event {stored.seq}, which it did not ask for")
            if self._log.events.get(stored.seq) != stored.event:
                raise Violation(f"a stream got an event {stored.seq} that the log has not")
            for seq in range(self._after + 1, stored.seq):
                if wants(self._want, self._log.events[seq]) and not self._has_lost:
                    raise Violation(f"a stream got event {stored.seq} and not event {seq}")
            self._after, self._has_lost = stored.seq, False

    def _hang_up(self, connection: int) -> None:
        if connection == self._connection and self._number is not None:
            if self._machine.node is not None:
                self._machine.node.port.close_stream(self._number)
            self.end("the reader hung up")

    def _ready(self, connection: int, number: int) -> None:
        node = self._machine.node
        if connection == self._connection and node is not None and number in node.streams:
            node.port.stream_ready(number)
