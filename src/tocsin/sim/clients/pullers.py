"""Pullers: owners of boxes, by REST."""

from __future__ import annotations

from tocsin.access.session import Session, anonymous
from tocsin.broker.effects import Pulled
from tocsin.errors import BadToken, NoSuchBox
from tocsin.services.subscriptions.subscriptions import read_pull
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.clients.rest import pull_query
from tocsin.sim.machine import Machine
from tocsin.sim.runtime import SimTask
from tocsin.sim.world import Violation

SESSION = anonymous("http")
PULL_WAIT_MS_MAX = 60
CALM_PULL_WAIT_MS = 1_000
PULL_PATIENCE_MS = 100  # beyond the wait; then the answer is taken to be lost
THINK_MS_MAX = 40


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
        session = self._session()

        def arrive() -> None:
            task = self._machine.call(
                lambda services: services.subscriptions.pull(
                    session, self._box.id, read_pull(pull_query(events_max, wait_ms, ack))
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

    def _session(self) -> Session:
        access, watched = self._machine.access, self._box.watched
        if access is None or watched is None:
            return SESSION
        return access.owner_session(watched.holder, "http")

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
